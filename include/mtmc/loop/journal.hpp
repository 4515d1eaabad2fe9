#pragma once
/// The journal of a run: resume point, cache and trajectory data set in one. Schema 1.
///
/// **The file.** JSON Lines, UTF-8, only ever appended to, by one writer at a time. A last line that is not
/// complete (the writer died) is dropped. Every line is an object that starts with
///
///     {"record": KIND, "run": ID, "time": SECONDS, ...}
///
/// `run` is a random id (16 hex digits), so that journals can be merged line by line; `time` counts
/// wall-clock seconds from the start of the run over all its sessions. A run's own file holds one run.
/// Readers skip kinds and fields they do not know; `schema` in `run` grows only when that would be wrong.
///
/// **Texts** lie beside the journal, once each, by content: wherever a kernel stands in a record, it is
/// `{"language": {...}, "id": SHA-256}` and its text is `kernels/<16 digits>.<cpp|cu|cl|py|txt>`; a coder's
/// answer is `"raw_text_id": SHA-256` and `texts/<16 digits>.txt`. They are stored before the record is
/// written, and a candidate's kernel and draft are recorded before it is compiled.
///
/// **Records**: kind, when it is written, and its fields (loop/journal_records.hpp; nouns as in
/// core/json.hpp).
///
///     run         first              schema, version, started, pid, host, task, device, set_up, max_steps,
///                                    budget
///     resume      by every later     version, started, pid, host, max_steps, budget
///                 session
///     structure   once per kernel    kernel, structure
///                 the search
///                 stands on
///     decision    when the policy    step, step_limit, parent_index, parent, legal, distribution, chosen,
///                 has chosen         seconds
///     draft       as it arrives      request, sample, repair, draft
///     evaluation  as it arrives      key, role, kernel, incumbent, evaluation
///     step        when the step is   step, parent_index, sample, repair, parent, action, draft, evaluation
///                 finished
///     round       after its last     step, outcomes, promotions, beam, best
///                 `step`
///     rewind      rarely             step: decisions, steps and rounds above from that step on are void
///     finish      at the end         stop_reason, steps, best, speed_up, measured, usage, seconds, error_id,
///                                    error
///
/// `draft` and `evaluation` come in the order of arrival; all other records in a fixed order. Of several
/// drafts or evaluations of one name the last counts. What a record says is said nowhere else: a `step` names
/// its draft (`draft` = request, `sample`, `repair`), its evaluation (`evaluation` = key) and, by `step` and
/// `parent_index`, its decision with the legal actions and their probabilities. `steps_of` puts them together
/// as `Step` values, `observation_of` as what the policy saw.
///
/// The `evaluation` of an `evaluation` record names the binary that was judged, and the incumbent's beside it
/// (`binary_hash`, `incumbent_binary_hash`: SHA-256 of the bytes that the device ran), where the backend
/// tells them; of the final kernel and the start kernel it is the record of role `closing`. Journals of
/// earlier versions do not have these fields, and are read as if nothing had been observed.
///
/// **Cache.** A draft is found by request id, sample and repair; an evaluation by `evaluation_key`: role,
/// kernel, incumbent, task, device with its compiler and driver, evaluator and protocol version.

#include <mtmc/loop/journal_records.hpp>
#include <mtmc/loop/kernel_store.hpp>
#include <mtmc/loop/run_folder.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Under which name a draft is kept: one and the same question has one answer per sample and repair.
struct DraftName {
  std::string request{}; ///< `CodingRequest::id()`
  int sample = 0;        ///< number of the sample
  int repair = 0;        ///< number of the repair; 0 = first draft

  /// An order, member by member, for maps.
  friend auto operator<=>(const DraftName&, const DraftName&) = default;
};

/// One run as its journal tells it, rewinds applied.
struct JournalRun {
  /// 16 hexadecimal digits.
  std::string id{};
  /// Its first record.
  RunRecord header{};
  /// One for each later session.
  std::vector<ResumeRecord> resumes{};
  /// By the kernel's id.
  std::map<std::string, Structure> structures{};
  /// In the order of the journal.
  std::vector<DecisionRecord> decisions{};
  /// By name; of several the last.
  std::map<DraftName, DraftRecord> drafts{};
  /// By key.
  std::map<std::string, EvaluationRecord> evaluations{};
  /// In the order of the journal.
  std::vector<StepRecord> steps{};
  /// One for each finished step.
  std::vector<RoundRecord> rounds{};
  /// The last one; nothing if the run was cut off.
  std::optional<FinishRecord> finish{};
  /// Every kernel of the run by its id.
  std::map<std::string, Kernel> kernels{};
  /// `time` of the last record, and of each draft, evaluation and decision, for the clock of a resumed run.
  double seconds = 0;
  std::map<DraftName, double> draft_times{};        ///< seconds from the start of the run
  std::map<std::string, double> evaluation_times{}; ///< seconds from the start of the run
  std::vector<double> decision_times{};             ///< seconds from the start of the run
};

/// The name under which an evaluation is kept. `task` and `device` are `task_digest` and `device_digest`,
/// `evaluator` what the evaluator says of itself, `incumbent` empty if there is none.
[[nodiscard]] std::string evaluation_key(EvaluationRole role, std::string_view kernel,
                                         std::string_view incumbent, std::string_view task,
                                         std::string_view device, std::string_view evaluator);

/// Identity of a task: everything in its JSON form.
[[nodiscard]] std::string task_digest(const Task& task);

/// Identity of a device as far as times depend on it: name, kind, architecture, units, compiler and driver.
/// Measured rates are left out, since they are never twice the same.
[[nodiscard]] std::string device_digest(const Device& device);

namespace detail {

[[nodiscard]] std::string dump(const Json& value);

/// Whether a value's text is read as the same value: NaN and infinities are not.
[[nodiscard]] bool is_finite(const Json& value);

/// Applies `change` to every place of a record where a kernel stands.
template <class Change> void for_each_kernel(std::string_view kind, Json& body, Change&& change) {
  const auto visit = [&change](Json& owner, const char* field) {
    if (owner.is_object() && owner.contains(field) && owner[field].is_object()) change(owner[field]);
  };
  if (kind == "run" && body.contains("task")) {
    visit(body["task"], "kernel");
    visit(body["task"], "reference");
  } else if (kind == "draft" && body.contains("draft")) {
    visit(body["draft"], "kernel");
  }
}

/// Moves the texts of a record into the store. `kernel_id` is the id of a draft's kernel, which is stored
/// already; empty where it is not known.
void detach_texts(std::string_view kind, Json& body, KernelStore& store, std::string_view kernel_id);

/// Forgets decisions, steps and rounds from a step on.
void rewind(JournalRun& run, int step);

/// One line of a journal, taken apart.
struct JournalLine {
  std::string kind;
  std::string run;
  double time = 0;
  Json body;
};

[[nodiscard]] std::string line_place(const std::string& path, int number);

[[nodiscard]] JournalLine parse_line(std::string_view text, const std::string& path, int number);

/// The complete lines of a journal's content. A last line that lacks its line break or is no JSON is left
/// out: its writer died.
[[nodiscard]] std::vector<std::string_view> complete_lines(std::string_view content);

/// Whether a line of a journal is a record of that kind, by its first bytes: it is not parsed.
[[nodiscard]] inline bool is_record(std::string_view line, std::string_view kind) {
  constexpr std::string_view begin = "{\"record\":\"";
  return line.starts_with(begin) && line.substr(begin.size()).starts_with(kind) &&
         line.substr(begin.size() + kind.size()).starts_with('"');
}

/// Reads what `lines` hold into one value per run, in the order of their first lines.
[[nodiscard]] std::vector<JournalRun> read_runs(const std::vector<std::string_view>& lines,
                                                const std::string& path, const KernelStore& store);

} // namespace detail

/// Reads a journal and the texts beside it: one value per run. Throws `Error` (`mtmc.journal.002`,
/// `mtmc.json.002`) that names the line.
[[nodiscard]] std::vector<JournalRun> read_journal(const std::string& path);

namespace detail {

/// Whether a policy chose to stop.
[[nodiscard]] bool stops(const DecisionRecord& decision);

/// The part of a step that its decision tells; the action is `stop`.
[[nodiscard]] Step step_of(const DecisionRecord& decision);

/// Whether a draft settles its question. A broken endpoint or a used-up budget does not: the same question
/// may be asked again.
[[nodiscard]] bool is_answer(const Draft& draft) noexcept;

/// The names of the drafts that finished steps stand on.
[[nodiscard]] std::set<DraftName> drafts_of_steps(const JournalRun& run);

/// The first of the finished steps at the end of a run that an error ended in which no draft was answered: an
/// endpoint that was down is to use up no step and no action. Nothing if there is none, or if the step that
/// the error broke off has answers: they fit the history they were asked with.
[[nodiscard]] std::optional<int> first_unanswered_step(const JournalRun& run);

} // namespace detail

/// The steps of a run as the design's noun, in the order of the journal: every draft of every finished step,
/// and each decision to stop as a step without draft.
[[nodiscard]] std::vector<Step> steps_of(const JournalRun& run);

/// What was tried on the way to each kernel of a search, by the kernel's id.
using Histories = std::map<std::string, std::vector<HistoryEntry>>;

/// Adds a finished step. A kernel's history holds all that was tried on it and on the kernels it was made
/// from; `kept` says there whether an entry lies on the way to that kernel.
void add_round(Histories& histories, const RoundRecord& round);

/// What the policy saw when it took one of the run's decisions (a task's hooks aside, which no file holds).
[[nodiscard]] Observation observation_of(const JournalRun& run, const DecisionRecord& decision);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/loop/journal_inl.hpp>
#endif
