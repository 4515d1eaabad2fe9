#pragma once
/// The one exception of the library and the register of its ids.

#include <mtmc/core/enum_names.hpp>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// Every id an `Error` of this library can carry: "mtmc", the area and three digits. Ids are stable: a
/// meaning is never reused. A host's own parts may throw `Error` with ids outside the `mtmc.` prefix.
namespace error_id {
/// A JSON text is not JSON, or a field has the wrong type, or a value is not one of its closed list.
inline constexpr std::string_view json_malformed = "mtmc.json.001";
/// A JSON document was written by a newer, incompatible version of the library.
inline constexpr std::string_view json_schema = "mtmc.json.002";
/// A task file, its source, or a file with captured content cannot be read.
inline constexpr std::string_view task_unreadable = "mtmc.task.001";
/// A task contradicts itself or lacks something: no sizes, no arguments, duplicate names, unknown entry, ...
inline constexpr std::string_view task_malformed = "mtmc.task.002";
/// A shape, value or launch expression cannot be evaluated: unknown symbol, overflow, division by zero,
/// syntax.
inline constexpr std::string_view task_expression = "mtmc.task.003";
/// A kernel's signature does not tell what the task left out.
inline constexpr std::string_view task_signature = "mtmc.task.004";
/// The start kernel or the reference does not compile, does not run, or is not reproducible.
inline constexpr std::string_view task_start_kernel = "mtmc.task.005";
/// The task cannot tell a right kernel from a wrong one: an obviously wrong result would pass.
inline constexpr std::string_view task_cannot_tell = "mtmc.task.006";
/// A launch line is malformed or names an unknown buffer.
inline constexpr std::string_view launch_malformed = "mtmc.launch.001";
/// A type-erased part was used after it was moved from.
inline constexpr std::string_view empty_part = "mtmc.core.001";
/// The compiler cannot be started or is too old.
inline constexpr std::string_view backend_compiler = "mtmc.backend.001";
/// Memory for buffers could not be allocated.
inline constexpr std::string_view backend_memory = "mtmc.backend.002";
/// The runner process cannot be built, started or spoken to.
inline constexpr std::string_view backend_runner = "mtmc.backend.003";
/// The device does not exist or was lost.
inline constexpr std::string_view backend_device = "mtmc.backend.004";
/// The lock that keeps a device to one process at a time could not be taken.
inline constexpr std::string_view backend_lock = "mtmc.backend.005";
/// The evaluator cannot judge this task: unsupported language, data type or argument.
inline constexpr std::string_view evaluator_unsupported = "mtmc.evaluator.001";
/// A host's hook (generate, compare) threw or answered nonsense.
inline constexpr std::string_view evaluator_hook = "mtmc.evaluator.002";
/// The caller's stop token ended an evaluation before it had an answer.
inline constexpr std::string_view evaluator_cancelled = "mtmc.evaluator.003";
/// The incumbent that a candidate is to be compared with does not compile or does not run.
inline constexpr std::string_view evaluator_incumbent = "mtmc.evaluator.004";
/// An evaluator gave an `Evaluation` without a verdict.
inline constexpr std::string_view evaluator_verdict = "mtmc.evaluator.005";
/// There is no program to run a worker with.
inline constexpr std::string_view worker_not_found = "mtmc.worker.001";
/// Workers cannot be started, or end while no candidate is at fault.
inline constexpr std::string_view worker_lost = "mtmc.worker.002";
/// Host and worker speak different versions of their protocol.
inline constexpr std::string_view worker_protocol = "mtmc.worker.003";
/// What is asked for cannot be given to a worker: a task with hooks, options that are no JSON, a backend it
/// does not have.
inline constexpr std::string_view worker_request = "mtmc.worker.004";
/// The judge in a worker threw something that is no `Error`.
inline constexpr std::string_view worker_judge = "mtmc.worker.005";
/// Options of the loop contradict each other.
inline constexpr std::string_view loop_options = "mtmc.loop.001";
/// A part of the loop (policy, coder, region finder, evaluator) threw.
inline constexpr std::string_view loop_part = "mtmc.loop.002";
/// The journal cannot be written: disk full, read-only folder, another writer.
inline constexpr std::string_view journal_write = "mtmc.journal.001";
/// The journal cannot be read.
inline constexpr std::string_view journal_read = "mtmc.journal.002";
/// The folder holds a run already that this one may neither overwrite nor go on with.
inline constexpr std::string_view journal_other_run = "mtmc.journal.003";
/// An endpoint's options are malformed: no URL, a setting that contradicts another.
inline constexpr std::string_view net_options = "mtmc.net.001";
/// A recording or a batch cannot be read or written.
inline constexpr std::string_view net_record = "mtmc.net.002";
/// An endpoint cannot do what is asked of it.
inline constexpr std::string_view net_endpoint = "mtmc.net.003";
/// An example library is malformed.
inline constexpr std::string_view coder_examples = "mtmc.coder.001";
/// A policy card is malformed, or another model's.
inline constexpr std::string_view policy_card = "mtmc.policy.001";
/// Weights of a learnt policy are damaged, or made for another version of what it sees.
inline constexpr std::string_view policy_weights = "mtmc.policy.002";
/// A report or result cannot be written.
inline constexpr std::string_view report_write = "mtmc.report.001";
/// A data set for training cannot be read, is empty, or does not fit what is asked of it.
inline constexpr std::string_view train_data = "mtmc.train.001";
/// Training diverged: a weight is not finite any more.
inline constexpr std::string_view train_diverged = "mtmc.train.002";
/// A checkpoint of training is damaged, of a newer form, or another training's.
inline constexpr std::string_view train_checkpoint = "mtmc.train.003";
/// A file of a training cannot be read or written: disk full, no permission, not there.
inline constexpr std::string_view train_files = "mtmc.train.004";
/// Results of a benchmark, or its checkout, cannot be read or written.
inline constexpr std::string_view bench_files = "mtmc.bench.001";
} // namespace error_id

/// Who can do something about an `Error`.
enum class ErrorCategory {
  /// The caller gave something malformed or contradictory: a task, a document, an option.
  input,
  /// What is outside of the program fails: a compiler, a device, a file, a server.
  surroundings,
  /// A defect: of this library, or of a host's part or hook.
  internal,
};

namespace detail {
inline constexpr EnumName<ErrorCategory> error_category_names[] = {
    {ErrorCategory::input, "input"},
    {ErrorCategory::surroundings, "surroundings"},
    {ErrorCategory::internal, "internal"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<ErrorCategory>> enum_names(ErrorCategory) noexcept {
  return detail::error_category_names;
}

/// An id and its category.
struct ErrorKind {
  /// One of `error_id`.
  std::string_view id;
  /// Whose fault it is.
  ErrorCategory category;
};

/// All of `error_id` with their categories.
inline constexpr ErrorKind error_kinds[] = {
    {error_id::json_malformed, ErrorCategory::input},
    {error_id::json_schema, ErrorCategory::input},
    {error_id::task_unreadable, ErrorCategory::input},
    {error_id::task_malformed, ErrorCategory::input},
    {error_id::task_expression, ErrorCategory::input},
    {error_id::task_signature, ErrorCategory::input},
    {error_id::task_start_kernel, ErrorCategory::input},
    {error_id::task_cannot_tell, ErrorCategory::input},
    {error_id::launch_malformed, ErrorCategory::input},
    {error_id::empty_part, ErrorCategory::internal},
    {error_id::backend_compiler, ErrorCategory::surroundings},
    {error_id::backend_memory, ErrorCategory::surroundings},
    {error_id::backend_runner, ErrorCategory::surroundings},
    {error_id::backend_device, ErrorCategory::surroundings},
    {error_id::backend_lock, ErrorCategory::surroundings},
    {error_id::evaluator_unsupported, ErrorCategory::input},
    {error_id::evaluator_hook, ErrorCategory::internal},
    {error_id::evaluator_cancelled, ErrorCategory::surroundings},
    {error_id::evaluator_incumbent, ErrorCategory::surroundings},
    {error_id::evaluator_verdict, ErrorCategory::internal},
    {error_id::worker_not_found, ErrorCategory::surroundings},
    {error_id::worker_lost, ErrorCategory::surroundings},
    {error_id::worker_protocol, ErrorCategory::surroundings},
    {error_id::worker_request, ErrorCategory::surroundings},
    {error_id::worker_judge, ErrorCategory::internal},
    {error_id::loop_options, ErrorCategory::input},
    {error_id::loop_part, ErrorCategory::internal},
    {error_id::journal_write, ErrorCategory::surroundings},
    {error_id::journal_read, ErrorCategory::surroundings},
    {error_id::journal_other_run, ErrorCategory::input},
    {error_id::net_options, ErrorCategory::input},
    {error_id::net_record, ErrorCategory::surroundings},
    {error_id::net_endpoint, ErrorCategory::surroundings},
    {error_id::coder_examples, ErrorCategory::surroundings},
    {error_id::policy_card, ErrorCategory::input},
    {error_id::policy_weights, ErrorCategory::input},
    {error_id::report_write, ErrorCategory::surroundings},
    {error_id::train_data, ErrorCategory::input},
    {error_id::train_diverged, ErrorCategory::input},
    {error_id::train_checkpoint, ErrorCategory::input},
    {error_id::train_files, ErrorCategory::surroundings},
    {error_id::bench_files, ErrorCategory::input},
};

/// The category of an id; `surroundings` for one that is not of this library.
[[nodiscard]] constexpr ErrorCategory category_of(std::string_view id) noexcept {
  for (const auto& kind : error_kinds)
    if (kind.id == id) return kind.category;
  return ErrorCategory::surroundings;
}

/// Thrown where the surroundings are broken, the host's input is malformed, or a part has a defect. A
/// candidate that fails is never an `Error` but a `Verdict`.
///
/// `what()` reads `[id] message (place). remedy (option)`; what is empty is left out.
class Error : public std::runtime_error {
public:
  /// `message` says what happened, `remedy` what to do about it, `place` where (a file, a field, a line; may
  /// be empty). The category is that of the id.
  Error(std::string_view id, std::string_view message, std::string_view remedy, std::string_view place = {})
      : Error(id, message, remedy, place, category_of(id), {}) {}

  /// The same error with `outer` before its place: "task.json" and "line 3" give "task.json, line 3".
  [[nodiscard]] Error within(std::string_view outer) const {
    std::string place(outer);
    if (!place.empty() && !place_.empty()) place += ", ";
    return {id_, message_, remedy_, place + place_, category_, option_};
  }
  /// The same error with `option` as the one it speaks of, such as "KernelEvaluatorOptions::start_seconds".
  [[nodiscard]] Error about(std::string_view option) const {
    return {id_, message_, remedy_, place_, category_, option};
  }
  /// The same error in another category, for ids of a host's own.
  [[nodiscard]] Error as(ErrorCategory category) const {
    return {id_, message_, remedy_, place_, category, option_};
  }
  /// The same error with another remedy.
  [[nodiscard]] Error with_remedy(std::string_view remedy) const {
    return {id_, message_, remedy, place_, category_, option_};
  }

  /// Stable id, `mtmc.<area>.<nnn>`.
  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  /// Who can do something about it.
  [[nodiscard]] ErrorCategory category() const noexcept { return category_; }
  /// What happened, without id, place, remedy and option.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  /// What to do about it.
  [[nodiscard]] const std::string& remedy() const noexcept { return remedy_; }
  /// Where it happened; empty if nowhere in particular.
  [[nodiscard]] const std::string& place() const noexcept { return place_; }
  /// The option that was wrong or that helps, as `Type::member`; empty if none does.
  [[nodiscard]] const std::string& option() const noexcept { return option_; }

private:
  Error(std::string_view id, std::string_view message, std::string_view remedy, std::string_view place,
        ErrorCategory category, std::string_view option)
      : std::runtime_error(compose(id, message, remedy, place, option)), id_(id), message_(message),
        remedy_(remedy), place_(place), option_(option), category_(category) {}

  static std::string compose(std::string_view id, std::string_view message, std::string_view remedy,
                             std::string_view place, std::string_view option) {
    std::string text = "[";
    text.append(id).append("] ").append(message);
    if (!place.empty()) text.append(" (").append(place).append(")");
    if (!remedy.empty()) text.append(". ").append(remedy);
    if (!option.empty()) text.append(remedy.empty() ? ". See " : " (").append(option);
    if (!option.empty() && !remedy.empty()) text.push_back(')');
    return text;
  }

  std::string id_;
  std::string message_;
  std::string remedy_;
  std::string place_;
  std::string option_;
  ErrorCategory category_;
};

} // namespace mtmc
