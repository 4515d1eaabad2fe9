#pragma once
/// A region finder and a coder that answer each question once, for many searches on one task: with a
/// `RememberingEvaluator` beside them a search through known kernels costs little but its journal.
///
/// What they remember lies in memory as long as they live, every kernel's structure and drafts: make them
/// for one task, and let them go with it. They may be called from several threads at once.

#include <mtmc/core/any.hpp>
#include <mtmc/loop/journal.hpp>

#include <cstddef>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A region finder around another that looks at each kernel once.
class RememberingRegionFinder {
public:
  /// Takes the finder over.
  explicit RememberingRegionFinder(AnyRegionFinder finder) : finder_(std::move(finder)) {}

  /// The structure of the kernel, known by the task's name and the kernel's id.
  [[nodiscard]] Structure find(const Task& task, const Kernel& kernel) const {
    const std::string key = task.name + '\n' + kernel.id();
    {
      const std::lock_guard lock{mutex_};
      if (const auto known = structures_.find(key); known != structures_.end()) return known->second;
    }
    Structure structure = finder_.find(task, kernel);
    const std::lock_guard lock{mutex_};
    return structures_.try_emplace(key, std::move(structure)).first->second;
  }

  /// That of the finder within, which gives the same answers.
  [[nodiscard]] std::string identity() const { return finder_.identity(); }
  /// That of the finder within.
  [[nodiscard]] int concurrency_limit() const { return finder_.concurrency_limit(); }
  /// Kernels that are known.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock{mutex_};
    return structures_.size();
  }

private:
  AnyRegionFinder finder_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Structure> structures_{};
};

/// A coder around another that writes each step once. The same question, by task, kernel, action, repaired
/// kernel and sample, has the same answer, so what the coder within sees beside them (history, times) must
/// not matter to it. What is no answer is not remembered: a broken endpoint, a spent budget, a cancelled or
/// a pending draft.
class RememberingCoder {
public:
  /// Takes the coder over.
  explicit RememberingCoder(AnyCoder coder) : coder_(std::move(coder)) {}

  /// The draft, which costs nothing (`Draft::usage` is 0) where it is known.
  [[nodiscard]] Draft implement(const CodingRequest& request, std::stop_token stop) {
    const std::string key = request.id() + ' ' + std::to_string(request.sample);
    {
      const std::lock_guard lock{mutex_};
      if (const auto known = drafts_.find(key); known != drafts_.end()) return known->second;
    }
    Draft draft = coder_.implement(request, std::move(stop));
    if (!detail::is_answer(draft)) return draft;
    Draft known = draft;
    known.usage = {};
    const std::lock_guard lock{mutex_};
    drafts_.try_emplace(key, std::move(known));
    return draft;
  }

  /// That of the coder within.
  [[nodiscard]] bool writes(std::string_view optimization, const Language& language) const {
    return coder_.writes(optimization, language);
  }

  /// That of the coder within, known by the task's name, the kernel's id and the actions.
  [[nodiscard]] std::vector<Action> feasible_actions(const CodingRequest& about,
                                                     std::vector<Action> actions) {
    const std::string key = about.seen.task.name + '\n' + about.seen.kernel.id();
    {
      const std::lock_guard lock{mutex_};
      if (const auto known = feasible_.find(key); known != feasible_.end() && known->second.first == actions)
        return known->second.second;
    }
    std::vector<Action> feasible = coder_.feasible_actions(about, actions);
    const std::lock_guard lock{mutex_};
    feasible_.insert_or_assign(key, std::pair{std::move(actions), feasible});
    return feasible;
  }

  /// That of the coder within, which gives the same answers.
  [[nodiscard]] std::string identity() const { return coder_.identity(); }
  /// That of the coder within.
  [[nodiscard]] int concurrency_limit() const { return coder_.concurrency_limit(); }
  /// Drafts that are known.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock{mutex_};
    return drafts_.size();
  }

private:
  AnyCoder coder_;
  mutable std::mutex mutex_;
  std::map<std::string, Draft> drafts_{};
  /// What was offered on a kernel, and what of it is feasible.
  std::map<std::string, std::pair<std::vector<Action>, std::vector<Action>>> feasible_{};
};

static_assert(check_region_finder<RememberingRegionFinder>() && check_coder<RememberingCoder>() &&
              KnowsWhatItWrites<RememberingCoder> && KnowsFeasibleActions<RememberingCoder>);

} // namespace mtmc
