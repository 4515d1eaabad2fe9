#pragma once
/// Judges PyTorch modules with Triton kernels against a problem in PyTorch: records, lowers, calls.

#include <mtmc/backend/python/plan_judge.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/evaluator/python/pytorch_evaluator_options.hpp>

#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// An evaluator for tasks whose kernel is a problem in PyTorch (`problem_task`): a text that defines `Model`,
/// `get_inputs()` and `get_init_inputs()`. A candidate is a text that defines `ModelNew`, or the problem
/// itself, whose operators are then called as those of candidates are, so that a copy of it is as fast as it.
///
/// The Python of a candidate is never trusted and never timed: it is recorded without a device
/// (`TritonRecorder`), its kernels are lowered by a process that never saw the text (`TritonCompiler`), and
/// the recorded plan is called and compared by the judge (`PlanJudge`). Of the environment, the versions of
/// torch and triton, the precision of matrix products and convolutions, and "flaw", where the problem tells
/// little, are in `Evaluation::environment`.
class PyTorchEvaluator {
public:
  /// Evaluations disturb each other's times.
  static constexpr int max_concurrency = 1;

  /// Starts Python, which takes seconds. Throws `Error` (`mtmc.backend.001`) where it cannot be used, and
  /// what the CUDA backend throws where there is no such device.
  explicit PyTorchEvaluator(PyTorchEvaluatorOptions options = {});
  PyTorchEvaluator(PyTorchEvaluator&&) noexcept;            ///< takes over the processes
  PyTorchEvaluator& operator=(PyTorchEvaluator&&) noexcept; ///< takes over the processes
  ~PyTorchEvaluator();

  /// What it judges on.
  [[nodiscard]] const Device& device() const noexcept;

  /// The task of a problem's text, recorded for this device: what goes in and comes out, for prompts and
  /// reports. `problem_task` of the recording, inputs by the names that `Model.forward` gives them where it
  /// is told (`names`). Throws `Error` (`mtmc.evaluator.001`) that says why it cannot be recorded.
  [[nodiscard]] Task task(std::string name, std::string text, std::span<const std::string> names = {},
                          std::stop_token stop = {});

  /// Judges. Throws `Error`: `mtmc.evaluator.001` where the task's kernel is no problem in PyTorch or cannot
  /// be recorded, `mtmc.evaluator.003` where it is stopped, `mtmc.backend.001` where Python is lost.
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop = {});

  /// The same against the problem as PyTorch runs it (eager), and by any rules: `compatible` takes five
  /// trials within 1e-4 and the mean of a hundred calls, as KernelBench does; a speed-up has no interval
  /// then.
  [[nodiscard]] Evaluation evaluate_by(JudgingRules rules, const EvaluationRequest& request,
                                       std::stop_token stop = {});

  /// A call of the problem itself, as PyTorch runs it or after `torch.compile`: a candidate's baseline.
  [[nodiscard]] Evaluation evaluate_baseline(const Task& task, bool compiled, std::stop_token stop = {});

  /// A script that does everything when it is run and leaves what it gave in a variable, inputs included, as
  /// TritonBench's tests do (`RecordingRequest::Role::script`): whether `golden`, or where there is none the
  /// script itself, gives the same in another process, within 1e-3 of the results' scale; and how long all of
  /// its launches take. Throws as `evaluate`, also where the script leaves no tensor there.
  [[nodiscard]] Evaluation evaluate_script(const std::string& text, const std::string& variable,
                                           const std::string* golden = nullptr, std::stop_token stop = {});

  /// Names the protocol and what it is set to, for cache keys.
  [[nodiscard]] std::string identity() const;

private:
  struct State;
  struct Question;
  [[nodiscard]] Evaluation answer(const Question& question, const std::stop_token& stop);
  std::unique_ptr<State> state_;
};

static_assert(check_evaluator<PyTorchEvaluator>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/python/pytorch_evaluator_inl.hpp>
#endif
