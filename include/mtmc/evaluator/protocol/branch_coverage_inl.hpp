#pragma once
/// Definitions of evaluator/protocol/branch_coverage.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/protocol/audit.hpp>
#include <mtmc/evaluator/protocol/audit_task.hpp>
#include <mtmc/evaluator/protocol/audit_turns.hpp>
#include <mtmc/evaluator/protocol/branch_coverage.hpp>
#include <mtmc/support/deadline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The lines of branches that went one way only, in order.
[[nodiscard]] inline std::set<int> uncovered_lines(std::span<const Branch> branches) {
  std::set<int> lines;
  for (const auto& branch : branches)
    if (!branch.is_covered()) lines.insert(branch.line);
  return lines;
}

MTMC_INLINE std::string words_about(std::span<const Branch> branches) {
  const auto count = std::to_string(branches.size()) + (branches.size() == 1 ? " branch" : " branches");
  const auto uncovered = std::count_if(branches.begin(), branches.end(),
                                       [](const Branch& branch) { return !branch.is_covered(); });
  if (branches.empty()) return "none";
  if (uncovered == 0) return count + ", each gone both ways";
  constexpr std::size_t most = 12;
  std::string lines;
  std::size_t named = 0;
  const auto all = uncovered_lines(branches);
  for (const int line : all) {
    if (named++ == most) break;
    lines += (lines.empty() ? "" : ", ") + std::to_string(line);
  }
  return std::to_string(uncovered) + " of " + count +
         " went one way only: " + (all.size() == 1 ? "line " : "lines ") + lines +
         (all.size() > most ? ", ..." : "");
}

/// A candidate compiled with probes, and its calls.
class ProbedCandidate {
public:
  /// Calls are made until then; all must outlive it.
  ProbedCandidate(Judge& judge, std::shared_ptr<AnyBackend::Program> program, Deadline until)
      : judge_(judge), program_(std::move(program)), until_(until) {}

  /// Whether it is of use to go on calling it.
  [[nodiscard]] bool goes_on() {
    return is_well_ && std::chrono::steady_clock::now() < until_ && !is_covered();
  }
  /// Whether a call that takes the candidate so many seconds is over in time.
  [[nodiscard]] bool has_time_for(double seconds) const {
    return std::chrono::steady_clock::now() + std::chrono::duration<double>(slower * seconds) < until_;
  }
  /// Whether any call has shown something.
  [[nodiscard]] bool has_ended_well() const noexcept { return has_ended_well_; }
  [[nodiscard]] std::vector<Branch> branches() { return branches_of(judge_.backend(), *program_); }

  /// The candidate as `context` has it, with probes.
  [[nodiscard]] std::shared_ptr<Contestant> at_sizes_of(const EvaluationContext& context) const {
    auto contestant = at_other_sizes(*context.candidate, context.plans);
    contestant->program = program_;
    return contestant;
  }

  /// Calls it once on each of those inputs.
  void call(PreparedTask& task, Contestant& contestant, std::span<const CaseId> cases) {
    const auto poison = judge_.noise_or_zeros();
    std::map<std::size_t, std::size_t> places;
    std::vector<std::shared_ptr<const CaseInputs>> inputs; // outlive the calls
    std::vector<LaunchPlan> group;
    for (const auto& id : cases) {
      inputs.push_back(task.shared_inputs(id));
      auto& slot = judge_.slot(task, contestant, id.size, places[id.size]++);
      judge_.begin_loading(slot, task.layouts[id.size], *inputs.back(), poison, Refill::all, inputs.back());
      group.push_back(slot.plan);
    }
    judge_.finish_loading();
    judge_.heed_stop();
    const double limit = slower * judge_.launch_limit(task, cases.front().size);
    constexpr std::chrono::seconds patience{5};
    const auto timed = judge_.backend().time(*program_, group, false,
                                             std::min(deadline_in(limit), later_by(patience, until_)));
    has_ended_well_ = has_ended_well_ || timed.status.finished();
    // Beyond the listed sizes there may be launches that cannot be made.
    is_well_ = timed.status.finished() || timed.status.outcome == RunOutcome::launch_failed;
  }

private:
  /// Without the compiler's optimisations it takes its time.
  static constexpr double slower = 32;

  [[nodiscard]] bool is_covered() {
    const auto all = branches();
    return std::all_of(all.begin(), all.end(), [](const Branch& branch) { return branch.is_covered(); });
  }

  Judge& judge_;
  std::shared_ptr<AnyBackend::Program> program_;
  Deadline until_;
  bool is_well_ = true;
  bool has_ended_well_ = false;
};

/// Calls at the listed sizes, the cheapest first.
inline void call_at_listed_sizes(ProbedCandidate& probed, EvaluationContext& context) {
  auto& task = context.task;
  std::vector<std::size_t> listed(task.listed);
  std::iota(listed.begin(), listed.end(), std::size_t{0});
  std::sort(listed.begin(), listed.end(),
            [&](std::size_t a, std::size_t b) { return task.layouts[a].bytes() < task.layouts[b].bytes(); });
  auto contestant = probed.at_sizes_of(context);
  for (const auto size : listed) {
    if (!probed.goes_on()) return;
    if (!probed.has_time_for(context.seconds[size])) continue;
    const CaseId id{size, Distribution::normal, false, task.book.next_check(context.candidate->id)};
    probed.call(task, *contestant, {&id, 1});
    contestant->slots.clear();
  }
}

/// Calls as an audit does.
inline void call_as_audited(ProbedCandidate& probed, EvaluationContext& audit) {
  auto contestant = probed.at_sizes_of(audit);
  constexpr std::size_t small_rounds = 3;
  auto small = small_sizes_of(audit);
  auto large = large_sizes_of(audit);
  for (std::size_t round = 0; probed.goes_on(); ++round) {
    auto& turn =
        small.empty() || (!large.empty() && round % small_rounds == small_rounds - 1) ? large : small;
    const auto sizes = turn.next();
    if (sizes.empty()) return;
    probed.call(audit.task, *contestant,
                cases_of_an_audit(audit, sizes, audit.task.book.next_check(audit.candidate->id)));
    contestant->slots.clear();
  }
}

/// For a branch that went one way only.
[[nodiscard]] inline Refusal uncovered_refusal(std::span<const Branch> branches) {
  Refusal refusal{Verdict::refused, std::string(refusal_rule::branches), {}};
  for (const int line : uncovered_lines(branches)) {
    Diagnostic diagnostic;
    diagnostic.line = line;
    diagnostic.message = "no check has met what stands behind this line's condition: it was the same in all "
                         "calls";
    diagnostic.remedy = "Leave the special case out, or add a size or a captured input that meets it to the "
                        "task";
    refusal.diagnostics.push_back(std::move(diagnostic));
  }
  return refusal;
}

/// The branches of the candidate after calls of it; nothing where none could be made, or none ended well.
[[nodiscard]] inline std::optional<std::vector<Branch>> observed_branches(EvaluationContext& context) {
  auto& judge = context.judge;
  auto program = judge.compile_probed(context.task, *context.candidate);
  if (!program) return std::nullopt;
  const auto until = std::min(context.until, deadline_in(context.shared.options.audit_seconds / 2));
  ProbedCandidate probed(judge, std::move(program), until);
  call_at_listed_sizes(probed, context);
  if (context.audit) call_as_audited(probed, *context.audit);
  if (!probed.has_ended_well()) return std::nullopt;
  return probed.branches();
}

MTMC_INLINE std::optional<Refusal> observe_branches(EvaluationContext& context) {
  if (!needs_audit(context)) return std::nullopt;
  auto& said = context.evaluation.environment[environment_key::branches];
  said = "not observed";
  if (!has_ability(context.judge.backend(), BackendAbility::branches)) return std::nullopt;
  std::optional<std::vector<Branch>> branches;
  try {
    branches = observed_branches(context);
  } catch (const Error& error) {
    // What a program of the judge's own lacks (memory, a driver that takes PTX) is no candidate's fault.
    if (error.id() == error_id::evaluator_cancelled) throw;
    said += ": " + error.message();
  }
  if (branches) said = words_about(*branches);
  if (!context.shared.options.refuse_uncovered_branches) return std::nullopt;
  if (!branches)
    return refusal(Verdict::refused, refusal_rule::branches, "nobody can tell which branches checks have met",
                   "Write the kernel so that it compiles without optimisation, too");
  if (uncovered_lines(*branches).empty()) return std::nullopt;
  return uncovered_refusal(*branches);
}

} // namespace mtmc::detail
