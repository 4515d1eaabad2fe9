#pragma once
/// The records of a journal; loop/journal.hpp says how they stand in the file.

#include <mtmc/core/json.hpp>
#include <mtmc/loop/budget.hpp>
#include <mtmc/loop/search.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Version of the journal. It grows when a reader of the older version would misunderstand a journal; new
/// kinds of records and new optional fields do not change it.
inline constexpr int journal_schema_version = 1;

/// What decides the course of a run besides the task: a run is only resumed with the same.
struct SetUp {
  /// `LoopOptions::samples`.
  int samples = 1;
  /// `LoopOptions::repairs`.
  int repairs = 0;
  /// `LoopOptions::beam`.
  int beam = 1;
  /// `LoopOptions::selection`.
  Selection selection = Selection::argmax;
  /// `LoopOptions::temperature`.
  double temperature = 1;
  /// `LoopOptions::seed`.
  std::uint64_t seed = 0;
  /// `LoopOptions::minimum_gain`.
  double minimum_gain = 1;
  /// `LoopOptions::mask_failed_actions`.
  bool mask_failed_actions = true;
  /// Ids of the action space's optimisation types.
  std::vector<std::string> optimizations{};
  /// What the parts say of themselves; empty where a part says nothing.
  std::string policy{};
  std::string coder{};         ///< identity of the coder
  std::string region_finder{}; ///< identity of the region finder
  std::string evaluator{};     ///< identity of the evaluator
  UnknownFields unknown{};     ///< fields of a newer form

  friend bool operator==(const SetUp&, const SetUp&) = default; ///< member by member
};

/// `run`: the first record of a run.
struct RunRecord {
  /// Version of the journal's form.
  int schema = journal_schema_version;
  /// Version of the library that wrote it.
  std::string version{};
  /// UTC, ISO 8601.
  std::string started{};
  std::int64_t pid = 0;    ///< process that wrote it
  std::string host{};      ///< machine that wrote it
  Task task{};             ///< the task, whole
  Device device{};         ///< the device kernels were judged on
  SetUp set_up{};          ///< what the run may only be resumed with
  int max_steps = 0;       ///< largest number of steps
  Budget budget{};         ///< limits of the first session
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const RunRecord&, const RunRecord&) = default; ///< member by member
};

/// `resume`: another session took the run up; its limits are those from here on.
struct ResumeRecord {
  std::string version{};   ///< version of the library that wrote it
  std::string started{};   ///< UTC, ISO 8601
  std::int64_t pid = 0;    ///< process that wrote it
  std::string host{};      ///< machine that wrote it
  int max_steps = 0;       ///< largest number of steps
  Budget budget{};         ///< limits from here on
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const ResumeRecord&, const ResumeRecord&) = default; ///< member by member
};

/// `structure`: what the region finder said of a kernel the search stood on.
struct StructureRecord {
  std::string kernel{};    ///< id of the kernel
  Structure structure{};   ///< its regions and what is known of them
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const StructureRecord&, const StructureRecord&) = default; ///< member by member
};

/// `decision`: a policy's answer for one kernel of one step.
struct DecisionRecord {
  /// 0-based.
  int step = 0;
  /// Largest number of steps.
  int step_limit = 0;
  /// 0-based place of the kernel in the beam of this step.
  int parent_index = 0;
  /// Id of the kernel.
  std::string parent{};
  /// As the policy saw them: without the masked ones, `stop` last.
  std::vector<Action> legal{};
  /// The policy's answer.
  ActionDistribution distribution{};
  /// Keys of the actions taken, first choice first; "stop" alone where the policy chose to stop.
  std::vector<std::string> chosen{};
  /// Wall-clock seconds the policy took.
  double seconds = 0;
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const DecisionRecord&, const DecisionRecord&) = default; ///< member by member
};

/// `draft`: a coder's answer, as soon as it was there.
struct DraftRecord {
  /// `CodingRequest::id()`.
  std::string request{};
  int sample = 0;          ///< number of the sample
  int repair = 0;          ///< number of the repair; 0 = first draft
  Draft draft{};           ///< the answer; texts are stored apart
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const DraftRecord&, const DraftRecord&) = default; ///< member by member
};

/// What an evaluation was made for.
enum class EvaluationRole {
  /// The start kernel, alone.
  start,
  /// A draft against the best so far.
  candidate,
  /// A candidate's second look before it becomes the best.
  promotion,
  /// The best against the start kernel, at the end.
  closing
};

namespace detail {
inline constexpr EnumName<EvaluationRole> evaluation_role_names[] = {
    {EvaluationRole::start, "start"},
    {EvaluationRole::candidate, "candidate"},
    {EvaluationRole::promotion, "promotion"},
    {EvaluationRole::closing, "closing"},
};
} // namespace detail
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<EvaluationRole>> enum_names(EvaluationRole) noexcept {
  return detail::evaluation_role_names;
}

/// `evaluation`: an evaluator's answer, as soon as it was there.
struct EvaluationRecord {
  /// `evaluation_key()`.
  std::string key{};
  /// Why it was judged.
  EvaluationRole role = EvaluationRole::candidate;
  /// Id of the kernel.
  std::string kernel{};
  /// Empty if there was none.
  std::string incumbent{};
  Evaluation evaluation{}; ///< the answer
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const EvaluationRecord&, const EvaluationRecord&) = default; ///< member by member
};

/// `step`: one draft of a finished step and what came of it. The draft and the evaluation are records above
/// it: the last ones of that name.
struct StepRecord {
  /// 0-based.
  int step = 0;
  /// Place of the parent in the beam.
  int parent_index = 0;
  /// Number of the sample.
  int sample = 0;
  /// Number of the repair; 0 = first draft.
  int repair = 0;
  /// Id of the parent kernel.
  std::string parent{};
  /// Key of the action, one of those its decision has chosen.
  std::string action{};
  /// `DraftRecord::request`; with sample and repair it names the draft.
  std::string draft{};
  /// `EvaluationRecord::key`; empty if there was no kernel to judge.
  std::string evaluation{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const StepRecord&, const StepRecord&) = default; ///< member by member
};

/// What became of one action of a step, or of one kernel where the search continues from several of an
/// action.
struct ActionOutcome {
  /// Place of the parent in the beam.
  int parent_index = 0;
  /// Id of the parent kernel.
  std::string parent{};
  /// The kernel the entry speaks of: the best of the action's drafts; empty if there was none.
  std::string kernel{};
  /// Its line in the history; `kept` if the search goes on from the kernel.
  HistoryEntry entry{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const ActionOutcome&, const ActionOutcome&) = default; ///< member by member
};

/// One second look.
struct PromotionOutcome {
  /// Id of the kernel.
  std::string kernel{};
  /// `EvaluationRecord::key`.
  std::string evaluation{};
  /// Whether the kernel became the best.
  bool confirmed = false;
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const PromotionOutcome&, const PromotionOutcome&) = default; ///< member by member
};

/// A kernel the search stands on.
struct BeamEntry {
  /// Id of the kernel.
  std::string kernel{};
  /// The kernel it was made from; empty for the start kernel.
  std::string parent{};
  /// `EvaluationRecord::key` of what is known of its speed.
  std::string evaluation{};
  /// Over the start kernel, by the product of the measured ratios on the way.
  SpeedUp speed_up{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const BeamEntry&, const BeamEntry&) = default; ///< member by member
};

/// `round`: a step is finished; with it the search moves on.
struct RoundRecord {
  /// 0-based.
  int step = 0;
  /// What became of the step's actions.
  std::vector<ActionOutcome> outcomes{};
  /// Second looks of the step.
  std::vector<PromotionOutcome> promotions{};
  /// What the next step starts from.
  std::vector<BeamEntry> beam{};
  /// Id of the best kernel so far.
  std::string best{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const RoundRecord&, const RoundRecord&) = default; ///< member by member
};

/// `rewind`: the run went on differently from here (another version of a part, say). Decisions, steps and
/// rounds above that are of this step or a later one are void; drafts and evaluations stay.
struct RewindRecord {
  int step = 0;            ///< first step that is void
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const RewindRecord&, const RewindRecord&) = default; ///< member by member
};

/// `finish`: the run ended in order. It may be resumed all the same, with a larger budget or when answers are
/// there.
struct FinishRecord {
  /// Why the run ended.
  StopReason stop_reason = StopReason::failed;
  /// Finished steps.
  int steps = 0;
  /// Id of the best kernel.
  std::string best{};
  /// Best against start.
  SpeedUp speed_up{};
  /// Whether the speed-up was measured at the end, best against start.
  bool measured = false;
  /// Of all drafts and decisions.
  Usage usage{};
  /// Wall-clock seconds over all sessions.
  double seconds = 0;
  /// Id and text of the error that ended it; empty if none.
  std::string error_id{};
  std::string error{};     ///< the error's text
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const FinishRecord&, const FinishRecord&) = default; ///< member by member
};

namespace detail {

inline void visit_fields(JsonFields& visit, Budget& noun) {
  visit.optional("seconds", noun.seconds);
  visit.optional("tokens", noun.tokens);
  visit.optional("cost", noun.cost);
  visit.optional("patience", noun.patience);
}
inline void visit_fields(JsonFields& visit, SetUp& noun) {
  visit.required("samples", noun.samples);
  visit.required("repairs", noun.repairs);
  visit.required("beam", noun.beam);
  visit.required("selection", noun.selection);
  visit.required("temperature", noun.temperature);
  visit.required("seed", noun.seed);
  visit.required("minimum_gain", noun.minimum_gain);
  visit.required("mask_failed_actions", noun.mask_failed_actions);
  visit.required("optimizations", noun.optimizations);
  visit.optional("policy", noun.policy);
  visit.optional("coder", noun.coder);
  visit.optional("region_finder", noun.region_finder);
  visit.optional("evaluator", noun.evaluator);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, RunRecord& noun) {
  visit.required("schema", noun.schema);
  visit.required("version", noun.version);
  visit.required("started", noun.started);
  visit.required("pid", noun.pid);
  visit.required("host", noun.host);
  visit.required("task", noun.task);
  visit.required("device", noun.device);
  visit.required("set_up", noun.set_up);
  visit.required("max_steps", noun.max_steps);
  visit.optional("budget", noun.budget);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, ResumeRecord& noun) {
  visit.required("version", noun.version);
  visit.required("started", noun.started);
  visit.required("pid", noun.pid);
  visit.required("host", noun.host);
  visit.required("max_steps", noun.max_steps);
  visit.optional("budget", noun.budget);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, StructureRecord& noun) {
  visit.required("kernel", noun.kernel);
  visit.required("structure", noun.structure);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, DecisionRecord& noun) {
  visit.required("step", noun.step);
  visit.required("step_limit", noun.step_limit);
  visit.optional("parent_index", noun.parent_index);
  visit.required("parent", noun.parent);
  visit.required("legal", noun.legal);
  visit.required("distribution", noun.distribution);
  visit.required("chosen", noun.chosen);
  visit.optional("seconds", noun.seconds);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, DraftRecord& noun) {
  visit.required("request", noun.request);
  visit.optional("sample", noun.sample);
  visit.optional("repair", noun.repair);
  visit.required("draft", noun.draft);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, EvaluationRecord& noun) {
  visit.required("key", noun.key);
  visit.required("role", noun.role);
  visit.required("kernel", noun.kernel);
  visit.optional("incumbent", noun.incumbent);
  visit.required("evaluation", noun.evaluation);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, StepRecord& noun) {
  visit.required("step", noun.step);
  visit.optional("parent_index", noun.parent_index);
  visit.optional("sample", noun.sample);
  visit.optional("repair", noun.repair);
  visit.required("parent", noun.parent);
  visit.required("action", noun.action);
  visit.required("draft", noun.draft);
  visit.optional("evaluation", noun.evaluation);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, ActionOutcome& noun) {
  visit.optional("parent_index", noun.parent_index);
  visit.required("parent", noun.parent);
  visit.optional("kernel", noun.kernel);
  visit.required("entry", noun.entry);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, PromotionOutcome& noun) {
  visit.required("kernel", noun.kernel);
  visit.required("evaluation", noun.evaluation);
  visit.required("confirmed", noun.confirmed);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, BeamEntry& noun) {
  visit.required("kernel", noun.kernel);
  visit.optional("parent", noun.parent);
  visit.required("evaluation", noun.evaluation);
  visit.required("speed_up", noun.speed_up);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, RoundRecord& noun) {
  visit.required("step", noun.step);
  visit.optional("outcomes", noun.outcomes);
  visit.optional("promotions", noun.promotions);
  visit.required("beam", noun.beam);
  visit.required("best", noun.best);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, RewindRecord& noun) {
  visit.required("step", noun.step);
  visit.unknown(noun.unknown);
}
inline void visit_fields(JsonFields& visit, FinishRecord& noun) {
  visit.required("stop_reason", noun.stop_reason);
  visit.required("steps", noun.steps);
  visit.required("best", noun.best);
  visit.required("speed_up", noun.speed_up);
  visit.optional("measured", noun.measured);
  visit.optional("usage", noun.usage);
  visit.optional("seconds", noun.seconds);
  visit.optional("error_id", noun.error_id);
  visit.optional("error", noun.error);
  visit.unknown(noun.unknown);
}

} // namespace detail

} // namespace mtmc
