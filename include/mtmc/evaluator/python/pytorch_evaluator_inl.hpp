#pragma once
/// Definitions of evaluator/python/pytorch_evaluator.hpp.

#include <mtmc/backend/cpu/device.hpp>
#include <mtmc/backend/cuda/context.hpp>
#include <mtmc/backend/cuda/cuda_device.hpp>
#include <mtmc/backend/python/check_recorded_plan.hpp>
#include <mtmc/backend/python/launcher_memory.hpp>
#include <mtmc/backend/python/paired_draws.hpp>
#include <mtmc/backend/python/plan_judge.hpp>
#include <mtmc/backend/python/problem_task.hpp>
#include <mtmc/backend/python/triton_compiler.hpp>
#include <mtmc/backend/python/triton_recorder.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/protocol/environment_record.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>
#include <mtmc/evaluator/python/pytorch_evaluator.hpp>
#include <mtmc/evaluator/timing/speed_up.hpp>
#include <mtmc/evaluator/timing/timing_statistics.hpp>
#include <mtmc/support/device_lock.hpp>
#include <mtmc/support/os_random.hpp>
#include <mtmc/support/parallel.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The processor, or a GPU as its driver describes it.
[[nodiscard]] inline Device device_of(const PyTorchEvaluatorOptions& options) {
  if (options.device == "cpu") return discover_cpu_device();
  if (options.device == "cuda") {
    try {
      return read_cuda_device(CudaContext("libcuda.so.1", options.ordinal));
    } catch (const Error& error) {
      throw Error(error_id::backend_device, "there is no GPU to judge on: " + error.message(),
                  "Judge on the processor, where kernels in Triton are refused (--judge-on cpu), or use a "
                  "machine with an NVIDIA GPU")
          .about("PyTorchEvaluatorOptions::device")
          .as(ErrorCategory::surroundings);
    }
  }
  throw Error(error_id::evaluator_unsupported, "there are no devices of the kind \"" + options.device + '"',
              "Choose \"cuda\" or \"cpu\"")
      .about("PyTorchEvaluatorOptions::device");
}

/// How CUDA_VISIBLE_DEVICES names the device, whatever that says in this process; empty for the processor.
[[nodiscard]] inline std::string visible_name_of(const PyTorchEvaluatorOptions& options) {
  if (options.device == "cpu") return {};
  return CudaContext("libcuda.so.1", options.ordinal).uuid();
}

/// A plan with its kernels.
struct LoweredPlan {
  RecordedPlan plan;
  std::vector<std::shared_ptr<const LoweredKernel>> kernels;
};

/// A module that can be called, in one configuration at least, or why it cannot.
struct PreparedModule {
  std::vector<LoweredPlan> configurations;
  std::optional<Refusal> refused;
  double seconds = 0; ///< what recording and lowering took
};

/// SHA-256 of the kernels' binaries, one behind the other; empty without any.
[[nodiscard]] inline std::string binary_hash_of(const LoweredPlan& made) {
  std::string all;
  for (const auto& kernel : made.kernels) all += kernel->cubin;
  return all.empty() ? all : sha256_hex(all);
}

/// How many configurations there are where each autotuned kernel takes its i-th, or its last one.
[[nodiscard]] inline int configurations_of(const RecordedPlan& plan) {
  int most = 1;
  for (const auto& choice : plan.choices) most = std::max(most, choice.configurations);
  return most;
}

/// What each autotuned kernel takes in the i-th configuration.
[[nodiscard]] inline std::map<std::string, int> choices_of(const RecordedPlan& plan, int number) {
  std::map<std::string, int> choices;
  for (const auto& choice : plan.choices)
    choices[choice.kernel] = std::min(number, choice.configurations - 1);
  return choices;
}

/// "softmax_kernel: BLOCK: 128, num_warps: 4", of all autotuned kernels.
[[nodiscard]] inline std::string configuration_text(const RecordedPlan& plan) {
  std::string text;
  for (const auto& choice : plan.choices)
    text += (text.empty() ? "" : "; ") + choice.kernel + ": " + choice.text;
  return text;
}

/// Keeps the last ones of what is costly to make.
template <class Value> class RecentlyMade {
public:
  explicit RecentlyMade(std::size_t most) : most_(std::max<std::size_t>(most, 2)) {}

  /// Null if it was not kept.
  [[nodiscard]] std::shared_ptr<const Value> find(const std::string& key) const {
    const auto found = kept_.find(key);
    return found == kept_.end() ? nullptr : found->second;
  }
  std::shared_ptr<const Value> keep(const std::string& key, Value value) {
    if (order_.size() >= most_) {
      kept_.erase(order_.front());
      order_.pop_front();
    }
    order_.push_back(key);
    return kept_[key] = std::make_shared<const Value>(std::move(value));
  }

private:
  std::size_t most_;
  std::deque<std::string> order_;
  std::map<std::string, std::shared_ptr<const Value>> kept_;
};

/// What Python does for an evaluator.
struct StartedPython {
  TritonRecorder recorder;
  TritonCompiler compiler;
  PlanJudge judge;
};

/// Each of the three imports PyTorch, which takes seconds, so they start at the same time.
[[nodiscard]] inline StartedPython start_python(const PyTorchEvaluatorOptions& options,
                                                const std::string& visible) {
  std::optional<TritonRecorder> recorder;
  std::optional<TritonCompiler> compiler;
  std::optional<PlanJudge> judge;
  const std::function<void()> starts[] = {
      [&] { recorder.emplace(options.python); }, [&] { compiler.emplace(options.python); },
      [&] { judge.emplace(options.python, options.device, visible, options.configurations + 1); }};
  for_each_parallel(3, 3, [&](std::size_t i) { starts[i](); });
  return {std::move(*recorder), std::move(*compiler), std::move(*judge)};
}

} // namespace detail

struct PyTorchEvaluator::State {
  explicit State(PyTorchEvaluatorOptions given)
      : options(std::move(given)), device(detail::device_of(options)),
        target(device.kind == "cpu" ? RecordedTarget{} : recorded_target(device)),
        visible(detail::visible_name_of(options)), python(detail::start_python(options, visible)),
        lock(visible.empty() ? DeviceLock() : DeviceLock(options.device_lock_folder, visible)),
        problems(options.kept_recordings), candidates(options.kept_recordings) {
    for (const auto& [name, version] : python.recorder.versions()) device.software[name] = version;
  }

  /// Waits until nobody else uses the device.
  [[nodiscard]] DeviceLock::Hold device_alone() const {
    try {
      return lock.alone();
    } catch (const std::system_error& error) {
      throw Error(error_id::evaluator_unsupported, error.what(),
                  "Name a folder that this process can write to")
          .about("PyTorchEvaluatorOptions::device_lock_folder");
    }
  }

  /// The problem of a task, recorded.
  [[nodiscard]] std::shared_ptr<const RecordedPlan> problem_of(const Task& task,
                                                               const std::stop_token& stop) {
    const auto key = task.kernel.id();
    if (auto known = problems.find(key)) return known;
    auto recording = python.recorder.record(
        {.role = RecordingRequest::Role::problem, .text = task.kernel.source, .target = target}, stop);
    demand_no_stop(stop);
    if (recording.plan) return problems.keep(key, std::move(*recording.plan));
    const auto reason = recording.timed_out ? Diagnostic{.message = "recording it takes too long",
                                                         .remedy = "Raise PythonOptions::record_timeout"}
                                            : recording.diagnostics.at(0);
    throw Error(error_id::evaluator_unsupported,
                "the problem cannot be recorded: " + reason.message +
                    (reason.line > 0 ? " (line " + std::to_string(reason.line) + ')' : std::string()),
                reason.remedy, "task " + task.name);
  }

  /// A candidate's plan with its kernels, or why there is none.
  [[nodiscard]] std::shared_ptr<const detail::PreparedModule> candidate_of(const Kernel& kernel,
                                                                           const Task& task,
                                                                           const RecordedPlan& problem,
                                                                           const std::stop_token& stop) {
    const auto key = kernel.id() + task.kernel.id();
    if (auto known = candidates.find(key)) return known;
    const auto begin = std::chrono::steady_clock::now();
    auto made = made_candidate(kernel, problem, stop);
    demand_no_stop(stop);
    made.seconds = seconds_since(begin);
    return candidates.keep(key, std::move(made));
  }

  [[nodiscard]] detail::PreparedModule made_candidate(const Kernel& kernel, const RecordedPlan& problem,
                                                      const std::stop_token& stop) const {
    detail::PreparedModule made;
    RecordingRequest request{.text = kernel.source,
                             .constructor = problem.constructor,
                             .inputs = problem.inputs,
                             .target = target};
    detail::LoweredPlan first;
    made.refused = prepare(request, problem, stop, first);
    if (made.refused) return made;
    made.configurations.push_back(std::move(first));
    const int count =
        std::min(detail::configurations_of(made.configurations[0].plan), std::max(options.configurations, 1));
    std::vector<std::optional<detail::LoweredPlan>> others(static_cast<std::size_t>(count - 1));
    detail::for_each_parallel(others.size(), at_once(), [&](std::size_t i) {
      auto variant = request;
      variant.choices = detail::choices_of(made.configurations[0].plan, static_cast<int>(i) + 1);
      detail::LoweredPlan other; // one that needs too much is none
      if (!prepare(variant, problem, stop, other)) others[i] = std::move(other);
    });
    for (auto& other : others)
      if (other) made.configurations.push_back(std::move(*other));
    return made;
  }

  /// Questions to the recorder or the compiler, each of which keeps a processor busy, at the same time.
  [[nodiscard]] static int at_once() {
    constexpr unsigned most = 8;
    return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, most));
  }

  /// Records and lowers a candidate; why that cannot be done, if it cannot.
  [[nodiscard]] std::optional<Refusal> prepare(const RecordingRequest& request, const RecordedPlan& problem,
                                               const std::stop_token& stop, detail::LoweredPlan& made) const {
    if (auto refused = record(request, stop, made)) return refused;
    if (auto differs = check_paired_draws(problem, made.plan))
      return Refusal{Verdict::refused, std::string(refusal_rule::weights), {std::move(*differs)}};
    if (auto other = check_same_results(problem, made.plan))
      return Refusal{Verdict::wrong_result, std::string(refusal_rule::reference), {std::move(*other)}};
    if (options.library_calls == LibraryCalls::refuse)
      for (const auto& step : made.plan.phases.forward)
        if (step.operation)
          return refusal(Verdict::refused, refusal_rule::library_calls,
                         "the operator " + step.operation->name + " of PyTorch remains",
                         "Compute everything in kernels", step.line);
    return lower_all(stop, made);
  }

  [[nodiscard]] std::optional<Refusal> record(const RecordingRequest& request, const std::stop_token& stop,
                                              detail::LoweredPlan& made) const {
    auto recording = python.recorder.record(request, stop);
    demand_no_stop(stop);
    if (recording.timed_out)
      return refusal(Verdict::compile_timeout, refusal_rule::compile_deadline,
                     "its constructor and call take too long on tensors without content",
                     "Do less on the host");
    if (!recording.plan)
      return Refusal{Verdict::compile_error, std::string(refusal_rule::recording),
                     std::move(recording.diagnostics)};
    made.plan = std::move(*recording.plan);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Refusal> lower_all(const std::stop_token& stop,
                                                 detail::LoweredPlan& made) const {
    const auto count = made.plan.kernels.size();
    std::vector<std::optional<Refusal>> refused(count);
    made.kernels.resize(count);
    detail::for_each_parallel(count, at_once(), [&](std::size_t i) {
      refused[i] = lower(made.plan.kernels[i], stop, made.kernels[i]);
    });
    for (auto& one : refused)
      if (one) return one;
    made.plan = with_launcher_memory(std::move(made.plan), made.kernels);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Refusal> lower(const RecordedKernel& kernel, const std::stop_token& stop,
                                             std::shared_ptr<const LoweredKernel>& made) const {
    if (options.device == "cpu")
      return refusal(Verdict::refused, refusal_rule::launch,
                     "the kernel " + kernel.name + " is launched, and there is no GPU",
                     "Judge it where there is one", kernel.line);
    auto lowering = python.compiler.lower(kernel, target, stop);
    if (lowering.timed_out)
      return refusal(Verdict::compile_timeout, refusal_rule::compile_deadline,
                     "lowering " + kernel.name + " takes too long", "Unroll less, and use smaller blocks",
                     kernel.line);
    if (!lowering.kernel)
      return Refusal{lowering.refused ? Verdict::refused : Verdict::compile_error,
                     std::string(lowering.refused ? refusal_rule::screen : refusal_rule::compiler),
                     std::move(lowering.diagnostics)};
    made = std::move(lowering.kernel);
    return std::nullopt;
  }

  static void demand_no_stop(const std::stop_token& stop) {
    if (stop.stop_requested())
      throw Error(error_id::evaluator_cancelled, "the evaluation was cancelled", "Ask again to go on");
  }

  /// The next key of inputs and weights. Judgements take up to a million keys from it.
  [[nodiscard]] std::int64_t next_key() {
    constexpr std::uint64_t apart = std::uint64_t{1} << 20, most = std::uint64_t{1} << 50;
    const auto key = options.seed ? *options.seed + apart * questions++ : random_key_from_os();
    return static_cast<std::int64_t>(key % most);
  }

  /// How thoroughly a candidate is judged.
  [[nodiscard]] PlanJudging judging(Purpose purpose, JudgingRules rules) {
    const bool promote = purpose == Purpose::promote;
    PlanJudging what;
    what.key = next_key();
    what.cases = std::max(options.cases, 2);
    what.call_seconds = options.call_seconds;
    what.seconds = promote ? options.promote_seconds : options.explore_seconds;
    what.most_pairs = promote ? options.promote_pairs : options.explore_pairs;
    what.promote = promote;
    what.rules = rules;
    if (rules == JudgingRules::compatible) { // KernelBench's scripts, since 2025-11
      what.cases = 5;
      what.least_pairs = 100;
      what.tolerance = 1e-4;
    }
    return what;
  }

  /// Asks the judge. Throws where it could not judge.
  [[nodiscard]] JudgedPlan judged(const PlanJudging& what, const std::string& name,
                                  const std::stop_token& stop) const {
    const std::chrono::duration<double> time(options.evaluation_seconds);
    const auto hold = device_alone();
    auto answer = python.judge.judge(what, std::chrono::duration_cast<std::chrono::milliseconds>(time), stop);
    demand_no_stop(stop);
    if (!answer.timed_out && !answer.diagnostics.empty())
      throw Error(error_id::evaluator_unsupported, "the judge failed: " + answer.diagnostics[0].message,
                  answer.diagnostics[0].remedy, "task " + name);
    return answer;
  }

  /// Why a candidate was not found correct.
  [[nodiscard]] std::optional<Refusal> refusal_of(const JudgedPlan& answer) const {
    if (answer.timed_out)
      return refusal(Verdict::timeout, refusal_rule::evaluation_deadline,
                     "the evaluation takes more than " + readable_seconds(options.evaluation_seconds),
                     "Do less work");
    if (answer.verdict == Verdict::correct) return std::nullopt;
    return refusal(answer.verdict, answer.rule, answer.message, answer.remedy);
  }

  [[nodiscard]] std::map<std::string, std::string> environment() const {
    auto record = environment_record(device);
    record["truth"] = "f64";
    record["products"] = "f32";
    record["convolutions"] = options.device == "cuda" ? "TF32" : "f32";
    return record;
  }

  PyTorchEvaluatorOptions options;
  Device device;
  RecordedTarget target;
  std::string visible; ///< as CUDA_VISIBLE_DEVICES names the device
  detail::StartedPython python;
  DeviceLock lock;
  detail::RecentlyMade<RecordedPlan> problems;
  detail::RecentlyMade<detail::PreparedModule> candidates;
  /// Which configuration of a kernel was the fastest, by the kernel's id.
  std::map<std::string, std::size_t> winners;
  std::uint64_t questions = 0;

  [[nodiscard]] std::size_t winner_of(const Kernel& kernel) const {
    const auto found = winners.find(kernel.id());
    return found == winners.end() ? 0 : found->second;
  }
};

namespace detail {

/// The problem itself: its operators called like those of a candidate, or its module as PyTorch runs it.
[[nodiscard]] inline PlanContestant contestant_of(const Task& task, const RecordedPlan& problem, bool eager) {
  return {.plan = &problem, .module = eager ? task.kernel.source : std::string()};
}
[[nodiscard]] inline PlanContestant contestant_of(const LoweredPlan& made) {
  return {.plan = &made.plan, .kernels = made.kernels};
}

/// What a stage of a judgement took.
[[nodiscard]] inline double seconds_in(const JudgedPlan& judged, const std::string& stage) {
  const auto found = judged.spent.find(stage);
  return found == judged.spent.end() ? 0 : found->second;
}

/// Seconds and speed-up of an evaluation from the pairs of times.
inline void record_pairs(const JudgedPlan& judged, double confidence, const ProblemSize& at,
                         Evaluation& evaluation) {
  SizeEvaluation size;
  size.size = at;
  size.checked_elements = judged.checked_elements;
  size.total_elements = judged.checked_elements;
  size.largest_error = judged.largest_error;
  size.samples = static_cast<int>(judged.candidate_seconds.size());
  size.seconds = evaluation.seconds = median(judged.candidate_seconds);
  if (!judged.incumbent_seconds.empty()) {
    size.incumbent_seconds = median(judged.incumbent_seconds);
    std::vector<double> logarithms;
    for (std::size_t i = 0; i < judged.candidate_seconds.size() && i < judged.incumbent_seconds.size(); ++i)
      logarithms.push_back(std::log(std::max(judged.incumbent_seconds[i], 1e-9) /
                                    std::max(judged.candidate_seconds[i], 1e-9)));
    const auto interval = median_interval(
        logarithms, TimingLooks{}.error_left(static_cast<int>(logarithms.size()), confidence));
    size.speed_up = evaluation.speed_up = speed_up_of(interval);
    evaluation.comparison = comparison_of(decide(interval));
  }
  evaluation.sizes = {std::move(size)};
}

/// The same from calls on the same inputs, of which the means count.
inline void record_means(const JudgedPlan& judged, const ProblemSize& at, Evaluation& evaluation) {
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  };
  SizeEvaluation size;
  size.size = at;
  size.checked_elements = size.total_elements = judged.checked_elements;
  size.samples = static_cast<int>(judged.candidate_seconds.size());
  size.seconds = evaluation.seconds = mean(judged.candidate_seconds);
  size.incumbent_seconds = mean(judged.incumbent_seconds);
  if (size.incumbent_seconds > 0 && size.seconds > 0)
    size.speed_up = evaluation.speed_up = SpeedUp::without_interval(size.incumbent_seconds / size.seconds);
  evaluation.sizes = {std::move(size)};
}

} // namespace detail

MTMC_INLINE PyTorchEvaluator::PyTorchEvaluator(PyTorchEvaluatorOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
MTMC_INLINE PyTorchEvaluator::PyTorchEvaluator(PyTorchEvaluator&&) noexcept = default;
MTMC_INLINE PyTorchEvaluator& PyTorchEvaluator::operator=(PyTorchEvaluator&&) noexcept = default;
MTMC_INLINE PyTorchEvaluator::~PyTorchEvaluator() = default;

MTMC_INLINE const Device& PyTorchEvaluator::device() const noexcept { return state_->device; }

MTMC_INLINE std::string PyTorchEvaluator::identity() const {
  return "recorded plans 3, " + state_->options.device + ", library " +
         std::string(to_string(state_->options.library_calls));
}

MTMC_INLINE Task PyTorchEvaluator::task(std::string name, std::string text,
                                        std::span<const std::string> names, std::stop_token stop) {
  Task task;
  task.name = std::move(name);
  task.kernel = {languages::pytorch, std::move(text), {}};
  const auto problem = state_->problem_of(task, stop);
  return problem_task(std::move(task.name), std::move(task.kernel.source), *problem, names);
}

/// An evaluation that is asked for.
struct PyTorchEvaluator::Question {
  const Task& task;
  const Kernel& candidate;
  const Kernel* incumbent = nullptr;
  Purpose purpose = Purpose::explore;
  JudgingRules rules = JudgingRules::strict;
  bool eager = false;    ///< the problem itself is called as its module
  bool compiled = false; ///< after `torch.compile`

  [[nodiscard]] static Question of(const EvaluationRequest& request) {
    return {.task = request.task,
            .candidate = request.candidate,
            .incumbent = request.incumbent ? &*request.incumbent : nullptr,
            .purpose = request.purpose};
  }
};

MTMC_INLINE Evaluation PyTorchEvaluator::evaluate(const EvaluationRequest& request, std::stop_token stop) {
  return answer(Question::of(request), stop);
}

MTMC_INLINE Evaluation PyTorchEvaluator::evaluate_by(JudgingRules rules, const EvaluationRequest& request,
                                                     std::stop_token stop) {
  auto question = Question::of(request);
  question.rules = rules;
  question.eager = true;
  return answer(question, stop);
}

MTMC_INLINE Evaluation PyTorchEvaluator::evaluate_baseline(const Task& task, bool compiled,
                                                           std::stop_token stop) {
  return answer({.task = task, .candidate = task.kernel, .eager = true, .compiled = compiled}, stop);
}

MTMC_INLINE Evaluation PyTorchEvaluator::answer(const Question& question, const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  auto& state = *state_;
  const auto& task = question.task;
  if (task.kernel.language != languages::pytorch)
    throw Error(error_id::evaluator_unsupported,
                "the task's kernel is in " + task.kernel.language.name + ", not in pytorch",
                "Make the task from a problem in PyTorch (problem_task)", "task " + task.name);
  const auto problem = state.problem_of(task, stop);
  const auto made_of = [&](const Kernel& kernel) {
    return kernel.id() == task.kernel.id() ? nullptr : state.candidate_of(kernel, task, *problem, stop);
  };
  Evaluation evaluation;
  evaluation.environment = state.environment();
  const auto refuse = [&](const Refusal& reason) {
    evaluation.verdict = reason.verdict;
    evaluation.rule = reason.rule;
    evaluation.diagnostics = reason.diagnostics;
    evaluation.cost.total = seconds_since(begin);
    return evaluation;
  };
  const auto made = made_of(question.candidate);
  if (made) evaluation.cost.compile = made->seconds;
  if (made && made->refused) return refuse(*made->refused);
  const auto beaten = question.incumbent != nullptr ? made_of(*question.incumbent) : nullptr;
  if (beaten && beaten->refused)
    throw Error(error_id::evaluator_incumbent,
                "the incumbent cannot be called: " + beaten->refused->diagnostics.at(0).message,
                "Give a kernel that was found correct", "task " + task.name);
  // Which of an incumbent's configurations is the fastest is not known of what another process judged.
  if (beaten && beaten->configurations.size() > 1 && !state.winners.contains(question.incumbent->id()))
    (void)answer({.task = task, .candidate = *question.incumbent}, stop);

  auto what = state.judging(question.purpose, question.rules);
  what.problem = problem.get();
  what.atomics = task.atomics;
  what.candidate = made ? detail::contestant_of(made->configurations[0])
                        : detail::contestant_of(task, *problem, question.eager);
  what.candidate.compiled = question.compiled;
  if (question.compiled) what.call_seconds = std::max(what.call_seconds, state.options.compiled_seconds);
  for (std::size_t i = 1; made && i < made->configurations.size(); ++i)
    what.variants.push_back(detail::contestant_of(made->configurations[i]));
  PlanContestant incumbent;
  if (question.incumbent != nullptr) {
    incumbent = beaten ? detail::contestant_of(beaten->configurations[state.winner_of(*question.incumbent)])
                       : detail::contestant_of(task, *problem, question.eager);
    what.incumbent = &incumbent;
  }
  const auto judged = state.judged(what, task.name, stop);
  if (auto refused = state.refusal_of(judged)) return refuse(*refused);
  evaluation.verdict = Verdict::correct;
  evaluation.resources["library_share"] = judged.library_share;
  evaluation.resources["start_seconds"] = detail::seconds_in(judged, "start");
  evaluation.resources["problem_error"] = judged.problem_error;
  evaluation.resources["problem_far"] = static_cast<double>(judged.problem_far);
  if (judged.memory_bytes > 0)
    evaluation.resources["memory_bytes"] = static_cast<double>(judged.memory_bytes);
  evaluation.cost.time = detail::seconds_in(judged, "time");
  if (made) {
    const auto winner = static_cast<std::size_t>(judged.chosen) % made->configurations.size();
    const auto& called = made->configurations[winner];
    state.winners[question.candidate.id()] = winner;
    evaluation.binary_hash = detail::binary_hash_of(called);
    if (!called.plan.choices.empty())
      evaluation.environment["configuration"] = detail::configuration_text(called.plan);
  }
  if (beaten)
    evaluation.incumbent_binary_hash =
        detail::binary_hash_of(beaten->configurations[state.winner_of(*question.incumbent)]);
  if (!judged.flaw.empty()) evaluation.environment[environment_key::flaw] = judged.flaw;
  const auto size = task.main_size() != nullptr ? *task.main_size() : ProblemSize{};
  if (question.rules == JudgingRules::strict)
    detail::record_pairs(judged, state.options.confidence, size, evaluation);
  else
    detail::record_means(judged, size, evaluation);
  evaluation.cost.total = seconds_since(begin);
  evaluation.cost.check = evaluation.cost.total - evaluation.cost.compile - evaluation.cost.time;
  return evaluation;
}

MTMC_INLINE Evaluation PyTorchEvaluator::evaluate_script(const std::string& text, const std::string& variable,
                                                         const std::string* golden, std::stop_token stop) {
  const auto begin = std::chrono::steady_clock::now();
  auto& state = *state_;
  Evaluation evaluation;
  evaluation.environment = state.environment();
  evaluation.environment["truth"] = golden == nullptr ? "itself in another process" : "the golden script";
  const auto prepared = [&](const std::string& script, detail::LoweredPlan& made) {
    auto refused = state.record({.role = RecordingRequest::Role::script,
                                 .text = script,
                                 .class_name = variable,
                                 .target = state.target},
                                stop, made);
    return refused ? refused : state.lower_all(stop, made);
  };
  const auto refuse = [&](const Refusal& reason) {
    evaluation.verdict = reason.verdict;
    evaluation.rule = reason.rule;
    evaluation.diagnostics = reason.diagnostics;
    evaluation.cost.total = seconds_since(begin);
    return evaluation;
  };
  detail::LoweredPlan made, right;
  if (auto refused = prepared(text, made)) return refuse(*refused);
  if (golden != nullptr)
    if (auto refused = prepared(*golden, right))
      throw Error(error_id::evaluator_unsupported,
                  "the golden script cannot be recorded: " + refused->diagnostics.at(0).message,
                  refused->diagnostics.at(0).remedy);
  const auto& wanted = golden == nullptr ? made : right;
  if (wanted.plan.outputs.empty())
    throw Error(error_id::evaluator_unsupported,
                "the script leaves no tensor in `" + variable + "`, so that nothing can be compared",
                "Have it keep its results there");
  if (auto other = check_same_results(wanted.plan, made.plan))
    return refuse({Verdict::wrong_result, std::string(refusal_rule::reference), {std::move(*other)}});
  evaluation.cost.compile = seconds_since(begin);
  auto what = state.judging(Purpose::explore, JudgingRules::reproducible);
  const auto incumbent = detail::contestant_of(wanted);
  what.problem = &wanted.plan;
  what.candidate = detail::contestant_of(made);
  what.incumbent = &incumbent;
  what.tolerance = 1e-3;
  const auto judged = state.judged(what, variable, stop);
  if (auto refused = state.refusal_of(judged)) return refuse(*refused);
  evaluation.verdict = Verdict::correct;
  evaluation.resources["library_share"] = judged.library_share;
  evaluation.seconds = median(judged.candidate_seconds);
  SizeEvaluation size;
  size.seconds = evaluation.seconds;
  size.samples = static_cast<int>(judged.candidate_seconds.size());
  size.checked_elements = size.total_elements = judged.checked_elements;
  size.largest_error = judged.largest_error;
  evaluation.sizes = {std::move(size)};
  evaluation.cost.total = seconds_since(begin);
  evaluation.cost.check = evaluation.cost.total - evaluation.cost.compile;
  return evaluation;
}

} // namespace mtmc
