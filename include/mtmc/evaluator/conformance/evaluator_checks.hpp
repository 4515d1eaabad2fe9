#pragma once
/// The whole trust protocol on a backend.

#include <mtmc/evaluator/conformance/trial.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::test {

/// A backend that stays where it is: forwards everything, optional abilities included. For
/// `KernelEvaluator`, which takes its backend over.
template <class B> class BackendReference {
public:
  using Program = typename B::Program;
  using Buffer = typename B::Buffer;
  static constexpr bool isolates_programs = mtmc::isolates_programs<B>;

  explicit BackendReference(B& backend) : backend_(&backend) {}

  [[nodiscard]] const Device& device() { return backend_->device(); }
  [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                               std::stop_token stop) {
    return backend_->compile(kernel, options, std::move(stop));
  }
  [[nodiscard]] Buffer allocate(std::size_t bytes) { return backend_->allocate(bytes); }
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
    backend_->upload(buffer, offset, content);
  }
  void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
    backend_->download(buffer, offset, target);
  }
  [[nodiscard]] RunStatus run(Program& program, const LaunchPlan& plan, Deadline deadline) {
    return backend_->run(program, plan, deadline);
  }
  [[nodiscard]] TimedRun time(Program& program, std::span<const LaunchPlan> group, bool cold,
                              Deadline deadline) {
    return backend_->time(program, group, cold, deadline);
  }

  [[nodiscard]] int concurrency_limit() const { return concurrency_limit_of(*backend_); }
  [[nodiscard]] std::string identity() const { return identity_of(*backend_); }
  void fill(Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value) requires
      requires(B& backend) {
    backend.fill(buffer, offset, bytes, value);
  }
  { backend_->fill(buffer, offset, bytes, value); }
  [[nodiscard]] auto screen(const Kernel& kernel) requires requires(B& backend) { backend.screen(kernel); }
  { return backend_->screen(kernel); }
  [[nodiscard]] auto resources(Program& program) requires requires(B& backend) { backend.resources(program); }
  { return backend_->resources(program); }
  auto measure_ceilings() requires requires(B& backend) { backend.measure_ceilings(); }
  { return backend_->measure_ceilings(); }
  [[nodiscard]] auto measure_read_bandwidth() requires requires(B& backend) {
    backend.measure_read_bandwidth();
  }
  { return backend_->measure_read_bandwidth(); }

private:
  B* backend_;
};

namespace detail {

template <class B> using TrialEvaluator = KernelEvaluator<BackendReference<B>>;

/// The task whose start kernel is `slow_add`.
[[nodiscard]] inline Task evaluated_task(const BackendProbe& probe) {
  auto task = probe_task(probe, probe.slow_add);
  task.sizes = {{.symbols = {{"n", 8192}, {"repeats", 5000}}},
                {.symbols = {{"n", 1001}, {"repeats", 3}}, .weight = 0}};
  return task;
}

/// A verdict in words, with its first reason.
[[nodiscard]] inline std::string in_words(const Evaluation& evaluation) {
  std::string text(to_string(evaluation.verdict));
  if (!evaluation.diagnostics.empty()) text += " (" + evaluation.diagnostics.front().message + ")";
  return text;
}

template <class B>
[[nodiscard]] Evaluation judged(TrialEvaluator<B>& evaluator, const BackendProbe& probe,
                                const std::string& candidate, bool compared) {
  EvaluationRequest request;
  request.task = evaluated_task(probe);
  request.candidate = {probe.language, candidate, {}};
  if (compared) request.incumbent = request.task.kernel;
  return evaluator.evaluate(request, {});
}

inline constexpr std::string_view all_else_passed =
    "Look at the message; every call that the evaluator makes has passed a check of its own";

} // namespace detail

/// The verdicts that `KernelEvaluator` comes to with this backend.
template <class B> void check_evaluator(Trial<B>& trial) {
  const auto& probe = trial.probe();
  std::optional<detail::TrialEvaluator<B>> evaluator;
  trial.check("evaluator.right", "KernelEvaluator finds a right kernel correct", {"run.offsets", "time.cold"},
              [&]() -> Finding {
                evaluator.emplace(BackendReference<B>(trial.backend()));
                const auto answer = detail::judged<B>(*evaluator, probe, trial.unseen(probe.slow_add), false);
                if (answer.correct() && answer.seconds > 0) return {};
                return unexpected("the verdict correct, with seconds", detail::in_words(answer),
                                  detail::all_else_passed);
              });
  trial.check("evaluator.wrong", "KernelEvaluator refuses a kernel that writes nothing",
              {"evaluator.right", "run.writes_nothing"}, [&]() -> Finding {
                const auto answer = detail::judged<B>(*evaluator, probe, probe.writes_nothing, false);
                if (answer.verdict == Verdict::wrong_result) return {};
                return unexpected("the verdict wrong_result", detail::in_words(answer),
                                  detail::all_else_passed);
              });
  trial.check("evaluator.faster", "KernelEvaluator finds the faster of two kernels faster",
              {"evaluator.right", "time.more_work"}, [&]() -> Finding {
                const auto answer = detail::judged<B>(*evaluator, probe, probe.vector_add, true);
                if (answer.correct() && answer.comparison == Comparison::faster) return {};
                return unexpected(
                    "the verdict correct and the comparison faster",
                    detail::in_words(answer) + ", " + std::string(to_string(answer.comparison)) +
                        (answer.speed_up ? " by " + std::to_string(answer.speed_up->value) : ""),
                    "Look at what `time` measures: `slow_add` does far more work");
              });
}

} // namespace mtmc::test
