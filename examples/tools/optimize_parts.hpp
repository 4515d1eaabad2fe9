#pragma once
// Who chooses, who writes and who judges in a run of mtmc-optimize.

#include <mtmc/actions/replay_file.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/core/any.hpp>
#include <mtmc/loop/journal_replay.hpp>
#include <mtmc/mtmc.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"
#include "language_model.hpp"
#include "optimize_arguments.hpp"
#include "python_tasks.hpp"

namespace command_line {

/// The steps of a folder: the drafts of the runs in it, or else sequences that somebody wrote.
inline mtmc::ReplaySequence load_steps(const std::string& folder) {
  std::vector<std::string> journals;
  const auto note = [&journals](const std::string& run) {
    if (std::error_code ignored; std::filesystem::exists(mtmc::journal_path(run), ignored))
      journals.push_back(mtmc::journal_path(run));
  };
  note(folder);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator{folder, ignored}) note(entry.path().string());
  if (journals.empty()) return mtmc::load_replay_sequence(folder);
  std::sort(journals.begin(), journals.end());
  mtmc::ReplaySequence sequence;
  for (const auto& journal : journals)
    for (const auto& recorded : mtmc::read_journal(journal)) sequence.append(mtmc::replay_of(recorded));
  return sequence;
}

/// Who chooses, who writes, and what there is to choose from.
struct Parts {
  mtmc::AnyPolicy policy;
  mtmc::AnyCoder coder;
  mtmc::ActionSpace space;
};

inline mtmc::AnyPolicy make_policy(const Arguments& arguments, const mtmc::ActionSpace& space,
                                   LanguageModels& models) {
  // The served policy asks its server as soon as it is made.
  if (arguments.only_shows() && arguments.asks_policy()) return mtmc::RulesPolicy{};
  if (arguments.policy == "random") return mtmc::RandomPolicy{};
  const auto shown = [](mtmc::NeuralPolicy learnt, bool show) {
    if (show) std::fprintf(stderr, "policy %s\n", mtmc::describe(learnt.card()).c_str());
    return learnt;
  };
  if (arguments.policy.empty() && !arguments.asks_coder())
    return shown(mtmc::default_policy(), arguments.explain);
  if (arguments.policy == "learnt")
    return shown(arguments.weights.empty() ? mtmc::NeuralPolicy{}
                                           : mtmc::NeuralPolicy{mtmc::load_policy_weights(arguments.weights)},
                 !arguments.quiet);
  if (arguments.policy == "chat") return mtmc::ChatPolicy{models.policy_client()};
  if (arguments.policy == "free-form") return mtmc::FreeFormPolicy{models.policy_client()};
  if (arguments.policy == "served") return models.served_policy();
  if (arguments.policy == "single-pass") return mtmc::SinglePassPolicy{space};
  return mtmc::RulesPolicy{};
}

inline Parts make_parts(const Arguments& arguments, LanguageModels& models) {
  if (!arguments.replay.empty()) {
    const auto sequence = load_steps(arguments.replay);
    return {mtmc::ReplayPolicy{sequence}, mtmc::ReplayCoder{sequence}, mtmc::action_space_of(sequence)};
  }
  auto space = arguments.space == "paper" ? mtmc::ActionSpace::paper() : mtmc::ActionSpace::extended();
  auto policy = make_policy(arguments, space, models);
  if (arguments.asks_coder()) return {std::move(policy), models.coder(), std::move(space)};
  return {std::move(policy), mtmc::TransformCoder{}, std::move(space)};
}

/// An evaluator for each language, made when it is first asked for.
class Evaluators {
public:
  explicit Evaluators(const Arguments& arguments) : arguments_(arguments) {}
  [[nodiscard]] mtmc::AnyEvaluator& of(const mtmc::Task& task) {
    const auto& language = task.kernel.language;
    if (language == mtmc::languages::pytorch) {
      if (!pytorch_judge_) pytorch_judge_ = mtmc::AnyEvaluator{std::ref(pytorch())};
      return *pytorch_judge_;
    }
    auto& evaluator = evaluators_[language.name];
    if (!evaluator) evaluator = evaluator_for(language, arguments_.judge);
    return *evaluator;
  }
  /// The task of a problem in PyTorch.
  [[nodiscard]] mtmc::Task problem(const std::string& file) { return command_line::problem(pytorch(), file); }
  /// What a task is planned for: the device that the user named, or the one that is there.
  [[nodiscard]] mtmc::Device device_of(const mtmc::Task& task) {
    const bool on_gpu =
        task.kernel.language == mtmc::languages::cuda || task.kernel.language == mtmc::languages::pytorch;
    if (!arguments_.device.empty() && !on_gpu)
      throw mtmc::Error(mtmc::error_id::evaluator_unsupported,
                        "--device " + arguments_.device + " is a GPU, but the kernel is in " +
                            task.kernel.language.name + ", which runs on this processor",
                        "Leave --device out", "task " + task.name);
    if (!arguments_.device.empty()) return mtmc::find_device_preset(arguments_.device)->device;
    try {
      return of(task).device();
    } catch (const mtmc::Error& error) {
      if (!on_gpu) throw;
      throw error.with_remedy(error.remedy() + "; or name the GPU to plan for, as in --device H100");
    }
  }

private:
  mtmc::PyTorchEvaluator& pytorch() {
    if (!pytorch_) {
      auto options = arguments_.pytorch;
      if (arguments_.only_plans()) options.device = "cpu"; // recordings need no GPU
      pytorch_.emplace(std::move(options));
    }
    return *pytorch_;
  }

  const Arguments& arguments_;
  std::map<std::string, std::optional<mtmc::AnyEvaluator>> evaluators_;
  std::optional<mtmc::PyTorchEvaluator> pytorch_;
  std::optional<mtmc::AnyEvaluator> pytorch_judge_;
};

} // namespace command_line
