#pragma once
/// The trust protocol from top to bottom: what a candidate goes through, in this order.

#include <mtmc/core/evaluation.hpp>
#include <mtmc/evaluator/protocol/audit.hpp>
#include <mtmc/evaluator/protocol/branch_coverage.hpp>
#include <mtmc/evaluator/protocol/compile_stages.hpp>
#include <mtmc/evaluator/protocol/correctness_stage.hpp>
#include <mtmc/evaluator/protocol/evaluation_context.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>
#include <mtmc/evaluator/protocol/timed_stages.hpp>

#include <optional>
#include <span>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// One stage. Its answer: go on (nothing), or why the candidate is refused.
struct ProtocolStage {
  std::string_view name;
  /// What has been shown of a candidate that goes on.
  std::string_view shows;
  /// Members of `EvaluatorDefences` and `CpuDefences` that are at home here, each in one stage.
  std::span<const std::string_view> defences;
  /// Whether the stage has the device to itself. Those that do come last.
  bool on_device;
  /// Where its seconds are counted; null where the stage knows better or nobody asks.
  double EvaluationCost::* cost;
  std::optional<Refusal> (*run)(EvaluationContext& context);
};

namespace defences_of {
inline constexpr std::string_view screen[] = {"text_screen"};
inline constexpr std::string_view compilation[] = {"compiler_fence", "object_screen"};
inline constexpr std::string_view fresh_start[] = {"fresh_process"};
inline constexpr std::string_view correctness[] = {
    "sizes",     "secret_sizes",  "distributions", "far_distributions", "fresh_inputs",
    "poison",    "red_zones",     "guard_pages",   "inputs_unchanged",  "same_bits",
    "precision", "truth",         "sandbox",       "process_namespace", "state",
    "residue",   "calls_in_a_row"};
inline constexpr std::string_view timing[] = {"timed_results", "freeze", "reload"};
inline constexpr std::string_view plausibility[] = {"plausibility"};
} // namespace defences_of

/// All stages, in their order (design, section 5).
inline constexpr ProtocolStage protocol_stages[] = {
    {"screen", "the text holds nothing that no kernel may", defences_of::screen, false, nullptr, screen_text},
    {"launch lines",
     "launches and scratch memory can be planned for every size",
     {},
     false,
     nullptr,
     plan_candidate},
    {"compilation", "it compiles under limits, and the artefact holds nothing that no kernel may",
     defences_of::compilation, false, nullptr, compile_candidate},
    {"incumbent", "there is something to compare it with, compiled", {}, false, nullptr, find_incumbent},
    {"fresh start", "a promotion is the second look of another process, under other keys",
     defences_of::fresh_start, true, nullptr, start_promotion_afresh},
    {"correctness", "results are right at every size, cheapest first, and nothing else was touched",
     defences_of::correctness, true, &EvaluationCost::check, check_results},
    {"timing", "how fast it is, paired with the incumbent, every timed result right", defences_of::timing,
     true, &EvaluationCost::time, time_candidate},
    {"plausibility", "no size beats what the device can do", defences_of::plausibility, true,
     &EvaluationCost::time, check_times},
    {"audit",
     "what a promotion brings into use is right on far more inputs, sizes and calls than one evaluation sees",
     {},
     true,
     &EvaluationCost::check,
     audit_promotion},
    {"launches",
     "which launch takes how much of a call's time",
     {},
     true,
     &EvaluationCost::launches,
     divide_time},
    {"profile", "where its time goes, if that is asked for", {}, true, nullptr, take_profile},
    {"branches",
     "which ways its branches went in calls as an audit makes them",
     {},
     true,
     &EvaluationCost::check,
     observe_branches},
};

/// Leads a candidate through the stages, until one refuses it. With the device to itself from the first stage
/// that needs it; what the candidate leaves too little memory for is its own verdict.
[[nodiscard]] std::optional<Refusal> go_through_stages(EvaluationContext& context);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/stages_inl.hpp>
#endif
