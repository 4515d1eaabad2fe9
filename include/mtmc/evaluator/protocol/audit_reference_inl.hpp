#pragma once
/// Definitions of evaluator/protocol/audit_reference.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/content/comparison.hpp>
#include <mtmc/evaluator/content/double_truth.hpp>
#include <mtmc/evaluator/content/tolerance.hpp>
#include <mtmc/evaluator/protocol/audit_reference.hpp>
#include <mtmc/evaluator/protocol/joint_runs.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What the reference and its twin made of the same inputs.
struct ResultAndTruth {
  const KeptContents& own;
  const KeptContents& truth;
};

/// The same of one case: of its inputs, and of the same moved by a rounding.
struct RunsOfCase {
  const CaseId& id;
  ResultAndTruth plain;
  ResultAndTruth moved;
};

/// Adds what is known of one f32 result. Whether that is enough to judge others by.
[[nodiscard]] inline bool add_truth_about(const PreparedTask& prepared, const RunsOfCase& runs,
                                          std::size_t buffer, ReferenceResult& known) {
  const auto type = DataType::f32;
  for (const auto* run : {&runs.plain, &runs.moved})
    if (!all_finite(run->truth[buffer], DataType::f64) || !all_finite(run->own[buffer], type)) return false;
  // From the unit of f64, in which the truth's moves are measured, to that of f32.
  const double units = epsilon_of(DataType::f64) / epsilon_of(type);
  known.amplification[buffer] =
      std::max(1.0, units * measured_amplification(runs.plain.truth[buffer], runs.moved.truth[buffer],
                                                   DataType::f64, 1));
  auto conditioning = prepared.conditioning_of(runs.id, buffer, true);
  conditioning.amplification = known.amplification[buffer];
  if (relative_tolerance(type, conditioning, true) >= largest_deliberate_tolerance) return false;
  const auto strict = prepared.tolerance(runs.id, buffer, known, true);
  // Where one row decides, its error is one draw of many, and may be none by chance: two are taken.
  double error = 0;
  for (const auto* run : {&runs.plain, &runs.moved})
    error = std::max(
        error,
        compare_output(run->own[buffer], type, run->truth[buffer], DataType::f64, strict).largest_error);
  // Far inputs cancel here and there, by chance where the reference rounds less than others: two ulp in a
  // sine were 1.8 times as much as twice its error.
  known.widenings[buffer] = widening_without_truth(error);
  // Denormal intermediates have few bits: honest layer norms of tiny rows were off by 1.2 and 1.4 times that.
  constexpr double denormal = 4;
  if (known.scales[buffer] < static_cast<double>(std::numeric_limits<float>::min()))
    known.widenings[buffer] *= denormal;
  return strict.relative * known.widenings[buffer] < largest_deliberate_tolerance;
}

/// What is known of one case.
[[nodiscard]] inline std::shared_ptr<const ReferenceResult> result_of(const PreparedTask& prepared,
                                                                      const RunsOfCase& runs) {
  const auto& buffers = prepared.layouts[runs.id.size].buffers;
  auto known = std::make_shared<ReferenceResult>();
  known->contents = runs.plain.own;
  known->truths = runs.plain.truth;
  known->scales.assign(buffers.size(), 0);
  known->amplification.assign(buffers.size(), 1);
  known->widenings.assign(buffers.size(), 1);
  known->mute.assign(buffers.size(), true);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].is_written()) continue;
    known->scales[i] = output_scale(runs.plain.own[i], buffers[i].type);
    const bool has_truth = buffers[i].type == DataType::f32;
    known->mute[i] = has_truth && !add_truth_about(prepared, runs, i, *known);
    if (!has_truth || known->mute[i]) known->truths.drop(i);
  }
  return known;
}

/// A case about which nothing is known.
[[nodiscard]] inline std::shared_ptr<const ReferenceResult> mute_result(const ProblemLayout& layout) {
  auto known = std::make_shared<ReferenceResult>();
  known->contents = KeptContents(BufferContents(layout.buffers.size()));
  known->scales.assign(layout.buffers.size(), 0);
  known->mute.assign(layout.buffers.size(), true);
  return known;
}

/// Inputs that are each moved by a rounding.
[[nodiscard]] inline CaseInputs moved_by_rounding(const PreparedTask& prepared, const CaseId& id,
                                                  const CaseInputs& inputs) {
  auto moved = inputs;
  const auto& buffers = prepared.layouts[id.size].buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].is_read())
      perturb_last_place(moved.change(i), buffers[i].type, prepared.book.key_of(id) + i);
  return moved;
}

MTMC_INLINE std::vector<std::shared_ptr<const ReferenceResult>>
references_of(Judge& judge, PreparedTask& prepared, std::span<const CaseId> cases, InputsOfCases inputs) {
  std::vector<std::shared_ptr<const ReferenceResult>> results(cases.size());
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    results[i] =
        prepared.far ? prepared.book.find(cases[i]) : judge.reference(prepared, cases[i], *inputs[i]);
    if (!results[i]) missing.push_back(i);
  }
  if (missing.empty()) return results;
  std::vector<CaseInputs> moved;
  std::vector<JointCall> plain_calls;
  std::vector<JointCall> moved_calls;
  moved.reserve(missing.size()); // calls refer to them
  for (const auto i : missing) {
    moved.push_back(moved_by_rounding(prepared, cases[i], *inputs[i]));
    plain_calls.push_back({cases[i].size, inputs[i].get()});
    moved_calls.push_back({cases[i].size, &moved.back()});
  }
  const auto reference = planned(judge, prepared, *prepared.reference);
  const auto twin = planned(judge, *prepared.twin);
  const auto own = run_jointly(judge, reference, plain_calls, Poison{});
  const auto own_moved = run_jointly(judge, reference, moved_calls, Poison{});
  const auto truth = run_jointly(judge, twin, plain_calls, Poison{});
  const auto shaken = run_jointly(judge, twin, moved_calls, Poison{});
  for (std::size_t n = 0; n < missing.size(); ++n) {
    const auto i = missing[n];
    results[i] = own[n] && own_moved[n] && truth[n] && shaken[n]
                     ? result_of(prepared, {cases[i], {*own[n], *truth[n]}, {*own_moved[n], *shaken[n]}})
                     : mute_result(prepared.layouts[cases[i].size]);
    prepared.book.keep(cases[i], results[i]);
  }
  return results;
}

MTMC_INLINE std::vector<std::shared_ptr<const ReferenceResult>>
certain_references_of(Judge& judge, PreparedTask& prepared, std::span<const CaseId> cases,
                      InputsOfCases inputs) {
  if (!isolates_programs(judge.backend()))
    for (const auto& id : cases) prepared.book.forget(id);
  return references_of(judge, prepared, cases, inputs);
}

} // namespace mtmc::detail
