#pragma once
/// What recorded kernels look like to a policy that reads: texts, structures and speeds, beside the trees of
/// a data set, which know kernels by their ids only.
///
/// **The file.** JSON Lines, UTF-8: `{"kind":"texts","schema":1}`, then records whose `kind` is `task`,
/// `device`, `kernel` or `sight`. Tasks, devices and kernels are there once each under their digest or id;
/// a sight refers to them.

#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/json_message.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/loop/journal.hpp>
#include <mtmc/train/kernel_tree.hpp>
#include <mtmc/train/training_files.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Version of the form of files of texts. It grows when a reader of the older one would misunderstand it.
inline constexpr int kernel_texts_schema_version = 1;

/// A kernel as an evaluator on a device judged it: all that a policy saw there but the way to it.
struct KernelSight {
  std::string task{};                     ///< `task_digest()`
  std::string device{};                   ///< `device_digest()`
  std::string evaluator{};                ///< what the evaluator says of itself
  std::string kernel{};                   ///< `Kernel::id()`
  std::optional<Evaluation> evaluation{}; ///< what was known of its speed
  std::vector<Action> legal{};            ///< all that were on offer, each once
  /// How histories told of what was tried on it: each action and the kernel it led to once.
  std::vector<ActionOutcome> tried{};

  friend bool operator==(const KernelSight&, const KernelSight&) = default; ///< member by member
};

namespace detail {

inline void visit_fields(JsonFields& visit, KernelSight& noun) {
  visit.required("task", noun.task);
  visit.required("device", noun.device);
  visit.optional("evaluator", noun.evaluator);
  visit.required("kernel", noun.kernel);
  visit.optional("evaluation", noun.evaluation);
  visit.required("legal", noun.legal);
  visit.optional("tried", noun.tried);
}

} // namespace detail

/// The texts of many runs. What several runs say of one kernel is the first one's; actions that a later run
/// was offered besides are added.
class KernelTexts {
public:
  /// Adds the kernels on which a run decided something.
  void add(const JournalRun& run) {
    const std::string task = task_digest(run.header.task), device = device_digest(run.header.device);
    tasks_.try_emplace(task, run.header.task);
    devices_.try_emplace(device, run.header.device);
    for (const DecisionRecord& decision : run.decisions) {
      if (!run.structures.contains(decision.parent) || !run.kernels.contains(decision.parent)) continue;
      Observation seen = observation_of(run, decision);
      kernels_.try_emplace(decision.parent, Text{std::move(seen.kernel), std::move(seen.structure)});
      KernelSight sight{task, device, run.header.set_up.evaluator, decision.parent};
      sight.evaluation = std::move(seen.evaluation);
      sight.legal = decision.legal;
      add(sight);
    }
    for (const RoundRecord& round : run.rounds)
      for (const ActionOutcome& outcome : round.outcomes) {
        const auto at = sights_.find(Key{task, device, run.header.set_up.evaluator, outcome.parent});
        if (at != sights_.end()) add_outcome(at->second, outcome);
      }
  }

  /// The sight of a tree's kernel; null where none is known.
  [[nodiscard]] const KernelSight* sight(const KernelTree& tree, const std::string& kernel) const {
    const auto found = sights_.find(Key{tree.task_digest, tree.device_digest, tree.evaluator, kernel});
    return found == sights_.end() ? nullptr : &found->second;
  }
  /// What was seen there, without history. The sight is one of these texts.
  [[nodiscard]] Observation observation(const KernelSight& sight) const {
    const Text& text = kernels_.at(sight.kernel);
    Observation seen;
    seen.task = tasks_.at(sight.task);
    seen.device = devices_.at(sight.device);
    seen.kernel = text.kernel;
    seen.structure = text.structure;
    seen.evaluation = sight.evaluation;
    return seen;
  }
  /// Number of sights.
  [[nodiscard]] std::size_t size() const noexcept { return sights_.size(); }

  /// The texts in the form that `add_lines` reads; equal texts give equal lines.
  [[nodiscard]] std::string lines() const {
    std::string text = line({{"kind", "texts"}, {"schema", kernel_texts_schema_version}});
    for (const auto& [id, task] : tasks_) text += line({{"kind", "task"}, {"id", id}, {"task", task}});
    for (const auto& [id, device] : devices_)
      text += line({{"kind", "device"}, {"id", id}, {"device", device}});
    for (const auto& [id, one] : kernels_)
      text += line({{"kind", "kernel"}, {"id", id}, {"kernel", one.kernel}, {"structure", one.structure}});
    for (const auto& [key, sight] : sights_) text += line({{"kind", "sight"}, {"sight", sight}});
    return text;
  }
  /// Adds what a file of texts holds; `place` names it in errors. Throws `Error` (`mtmc.train.001`) that
  /// names the line where it is damaged, or refers to what it does not hold, or is of a newer form.
  void add_lines(std::string_view text, const std::string& place) {
    int number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string here = place + ", line " + std::to_string(++number);
      try {
        detail::Json record = parse_json(text.substr(at, end - at), here);
        detail::unmark_not_finite(record);
        take(record, number == 1);
      } catch (const Error& error) {
        throw Error(error_id::train_data, "the texts are damaged: " + error.message(),
                    "Make them anew from the journals", here);
      } catch (const detail::Json::exception& error) {
        throw Error(error_id::train_data, std::string("the texts are damaged: ") + error.what(),
                    "Make them anew from the journals", here);
      }
      at = end + 1;
    }
  }

private:
  struct Text {
    Kernel kernel{};
    Structure structure{};
  };
  /// Digests of task and device, evaluator, kernel.
  using Key = std::array<std::string, 4>;

  void add(const KernelSight& sight) {
    Key key{sight.task, sight.device, sight.evaluator, sight.kernel};
    const auto [at, is_new] = sights_.try_emplace(std::move(key), sight);
    if (is_new) return;
    for (const Action& action : sight.legal) {
      auto& known = at->second.legal;
      const bool knows = std::any_of(known.begin(), known.end(),
                                     [&](const Action& one) { return one.key() == action.key(); });
      if (!knows) known.push_back(action);
    }
    for (const ActionOutcome& outcome : sight.tried) add_outcome(at->second, outcome);
  }
  static void add_outcome(KernelSight& sight, const ActionOutcome& outcome) {
    const bool knows = std::any_of(sight.tried.begin(), sight.tried.end(), [&](const ActionOutcome& one) {
      return one.entry.action_key == outcome.entry.action_key && one.kernel == outcome.kernel &&
             one.entry.verdict == outcome.entry.verdict;
    });
    if (!knows) sight.tried.push_back(outcome);
  }
  [[nodiscard]] static std::string line(detail::Json record) {
    detail::mark_not_finite(record);
    return record.dump(-1, ' ', false, detail::Json::error_handler_t::replace) + '\n';
  }
  void take(const detail::Json& record, bool first) {
    const auto kind = record.at("kind").get<std::string>();
    if (first != (kind == "texts"))
      throw Error(error_id::train_data, "its first line, and no other, is of the kind texts", {});
    if (first && record.at("schema").get<int>() > kernel_texts_schema_version)
      throw Error(error_id::train_data, "it is of a newer form", {});
    if (kind == "task") tasks_.try_emplace(record.at("id"), record.at("task").get<Task>());
    if (kind == "device") devices_.try_emplace(record.at("id"), record.at("device").get<Device>());
    if (kind == "kernel")
      kernels_.try_emplace(record.at("id"),
                           Text{record.at("kernel").get<Kernel>(), record.at("structure").get<Structure>()});
    if (kind != "sight") return;
    auto sight = record.at("sight").get<KernelSight>();
    if (!tasks_.contains(sight.task) || !devices_.contains(sight.device) || !kernels_.contains(sight.kernel))
      throw Error(error_id::train_data, "a sight is of a task, device or kernel that is not there", {});
    add(sight);
  }

  std::map<std::string, Task> tasks_{};     ///< by digest
  std::map<std::string, Device> devices_{}; ///< by digest
  std::map<std::string, Text> kernels_{};   ///< by id
  std::map<Key, KernelSight> sights_{};
};

/// Writes a file of texts; it is whole or not there. Throws `Error` where it cannot be written.
inline void write_kernel_texts(const KernelTexts& texts, const std::string& path) {
  write_training_file(path, texts.lines());
}

/// Reads one. Throws as `KernelTexts::add_lines`.
[[nodiscard]] inline KernelTexts read_kernel_texts(const std::string& path) {
  KernelTexts texts;
  texts.add_lines(read_training_file(path), path);
  return texts;
}

} // namespace mtmc
