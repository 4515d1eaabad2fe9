#pragma once
/// Kernels that take too long, never end, or crash. The last checks, because a backend may not survive them.

#include <mtmc/evaluator/conformance/trial.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mtmc::inline MTMC_ABI::test {

namespace detail {

/// Seconds after a deadline by which a run must have been given up: preparing it may take a while.
inline constexpr double late_seconds = 20;

/// That a fresh program still runs, unless the backend says that its process must be replaced.
[[nodiscard]] inline Finding check_recovery(Trial& trial) {
  if (is_spent(trial.backend())) return {};
  const auto text = trial.unseen(trial.probe().vector_add);
  BoundPlan bound(trial.backend(), trial.plan(text, 1000));
  bound.run(*trial.fresh_program(text));
  return bound.wrong_sum(1, 1, "After a failed kernel the backend must work with fresh programs")
      .value_or(Finding{});
}

/// Operations, each of which needs the result of the one before: 0.8 s at 5 GHz and four cycles each, on any
/// device far longer than the deadline of the check, and yet an end for those that cannot be stopped.
inline constexpr std::int64_t long_repeats = 1'000'000'000;
inline constexpr std::chrono::milliseconds short_limit{200};

[[nodiscard]] inline Finding check_deadline(Trial& trial, bool timed) {
  const auto& text = trial.probe().slow_add;
  BoundPlan bound(trial.backend(), trial.plan(text, 16, long_repeats));
  const auto program = trial.fresh_program(text);
  const auto deadline = soon(short_limit);
  const auto status = timed ? trial.backend().time(*program, {&bound.plan(), 1}, true, deadline).status
                            : trial.backend().run(*program, bound.plan(), deadline);
  if (status.outcome != RunOutcome::timed_out)
    return unexpected(std::string("timed_out from ") + (timed ? "`time`" : "`run`") +
                          " for a kernel that takes seconds, with a deadline of 0.2 s",
                      in_words(status), "Wait with the deadline, and look at the clock after a wait");
  return check_recovery(trial);
}

[[nodiscard]] inline Finding check_never_ends(Trial& trial) {
  const auto& text = trial.probe().never_ends;
  if (text.empty()) return not_tried("the probe has no text `never_ends`");
  for (const bool timed : {false, true}) {
    BoundPlan bound(trial.backend(), trial.plan(text, 16));
    const auto program = trial.fresh_program(text);
    const auto start = std::chrono::steady_clock::now();
    const auto deadline = soon(std::chrono::milliseconds{300});
    const auto status = timed ? trial.backend().time(*program, {&bound.plan(), 1}, true, deadline).status
                              : trial.backend().run(*program, bound.plan(), deadline);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (status.outcome != RunOutcome::timed_out)
      return unexpected(std::string("timed_out from ") + (timed ? "`time`" : "`run`"), in_words(status),
                        "Wait with the deadline, and end the kernel when it is over");
    if (taken.count() > 0.3 + late_seconds)
      return unexpected("an answer soon after the deadline of 0.3 s",
                        "one after " + std::to_string(taken.count()) + " s",
                        "Wait with the deadline, not for the kernel");
    if (auto finding = check_recovery(trial); finding.outcome != ConformanceOutcome::passed) return finding;
    if (is_spent(trial.backend())) break;
  }
  return {};
}

[[nodiscard]] inline Finding check_crash(Trial& trial) {
  const auto& text = trial.probe().crashes;
  if (text.empty()) return not_tried("the probe has no text `crashes`");
  BoundPlan bound(trial.backend(), trial.plan(text, 16));
  const auto status = trial.backend().run(*trial.fresh_program(text), bound.plan(), soon());
  if (status.outcome == RunOutcome::device_lost)
    return {ConformanceOutcome::passed, "the device was lost, so a fresh backend is needed now"};
  if (status.outcome != RunOutcome::faulted)
    return unexpected("faulted, or device_lost", in_words(status),
                      "Run kernels where a crash is noticed: a process or a context of their own");
  if (status.message.empty())
    return unexpected("a sentence about the crash", "an empty RunStatus::message",
                      "Say what is known: the signal, the driver's error");
  return check_recovery(trial);
}

/// For backends that have guard pages.
[[nodiscard]] inline Finding check_guard_page(Trial& trial) {
  constexpr std::size_t n = 1000;
  const auto& text = trial.probe().vector_add;
  const auto page = static_cast<std::size_t>(trial.backend().guard_page_bytes());
  if (page == 0) return {ConformanceOutcome::passed, "there is nothing to try: it has none on this machine"};
  BoundPlan bound(trial.backend(), trial.plan(text, n));
  const std::size_t bytes = (n * sizeof(float) + page - 1) / page * page;
  const auto end = trial.backend().allocate(bytes);
  for (const std::size_t beyond : {std::size_t{0}, std::size_t{1}}) {
    const std::size_t inside = (n - beyond) * sizeof(float);
    for (auto& argument : bound.plan().launches.front().arguments)
      if (argument.name == "C")
        argument.bound = {static_cast<std::uint64_t>(end.handle()), static_cast<std::int64_t>(bytes - inside),
                          static_cast<std::int64_t>(inside)};
    const auto status = trial.backend().run(*trial.fresh_program(text), bound.plan(), soon());
    if (status.outcome != (beyond == 0 ? RunOutcome::finished : RunOutcome::faulted))
      return unexpected(beyond == 0 ? "a run up to the last byte of a page to finish"
                                    : "a write of four bytes behind the last page to be faulted",
                        in_words(status),
                        "guard_page_bytes() promises that there is no memory next to an allocation");
  }
  return check_recovery(trial);
}

/// For backends that map guarded memory: a run whose output ends at its last byte finishes, and one that goes
/// on for an element is faulted; likewise at its first byte. After a fault the backend may be spent, so that
/// each side is a check of its own.
[[nodiscard]] inline Finding check_guarded_allocation(Trial& trial, bool before) {
  constexpr std::int64_t n = 1000;
  const auto& text = trial.probe().vector_add;
  // A type-erased backend has the function whatever it holds.
  if (!has_ability(trial.backend(), BackendAbility::guarded_allocation))
    return {ConformanceOutcome::passed, "there is nothing to try: the backend maps no memory"};
  const auto known = trial.backend().guarded_allocation();
  if (known.granularity == 0)
    return known.missing.empty()
               ? unexpected("a granularity, or why there is no such memory", "neither",
                            "Fill in `granularity`, or `missing` where it is 0")
               : Finding{ConformanceOutcome::passed, "there is nothing to try: " + known.missing};
  // Only an address can be moved before a buffer.
  if (before && !has_ability(trial.backend(), BackendAbility::runs_judge_kernels))
    return {ConformanceOutcome::passed, "there is nothing to try: handles of buffers are no addresses"};
  BoundPlan bound(trial.backend(), trial.plan(text, n));
  const auto content = n * static_cast<std::int64_t>(sizeof(float));
  const auto granularity = static_cast<std::int64_t>(known.granularity);
  const auto bytes = (content + granularity - 1) / granularity * granularity;
  const auto memory = trial.backend().allocate_guarded(static_cast<std::size_t>(bytes));
  for (const std::int64_t beyond : {0, 1}) {
    const auto missed = beyond * static_cast<std::int64_t>(sizeof(float));
    for (auto& argument : bound.plan().launches.front().arguments)
      if (argument.name == "C")
        argument.bound = {static_cast<std::uint64_t>(memory.handle()) -
                              static_cast<std::uint64_t>(before ? missed : 0),
                          before ? 0 : bytes - content + missed, content};
    const auto status = trial.backend().run(*trial.fresh_program(text), bound.plan(), soon());
    if (status.outcome == (beyond == 0 ? RunOutcome::finished : RunOutcome::faulted)) continue;
    return unexpected(beyond == 0 ? "a run within guarded memory to finish"
                                  : std::string("a write of four bytes ") + (before ? "before" : "behind") +
                                        " guarded memory to be faulted",
                      in_words(status), "allocate_guarded() promises that there is no memory beside it");
  }
  return check_recovery(trial);
}

} // namespace detail

/// What `run` and `time` do with kernels that do not end well.
inline void check_failures(Trial& trial) {
  trial.check("run.deadline", "a kernel that is still running at its deadline is timed_out", {"run.result"},
              [&] { return detail::check_deadline(trial, false); });
  trial.check("time.deadline", "so is one that is timed", {"time.cold"},
              [&] { return detail::check_deadline(trial, true); });
  trial.check("run.never_ends", "a kernel that never ends is timed_out, and the backend lives on",
              {"run.result"}, [&] { return detail::check_never_ends(trial); });
  trial.check("run.crashes", "a kernel that crashes is faulted or device_lost, and the backend lives on",
              {"run.result"}, [&] { return detail::check_crash(trial); });
  if (trial.type().declared.has(BackendAbility::guard_page_bytes))
    trial.check("run.guard_page", "a kernel that leaves an allocation whose pages are guarded is faulted",
                {"run.offsets"}, [&] { return detail::check_guard_page(trial); });
  if (!trial.type().declared.has(BackendAbility::guarded_allocation)) return;
  trial.check("run.guarded_end", "a kernel that goes on behind guarded memory is faulted", {"run.offsets"},
              [&] { return detail::check_guarded_allocation(trial, false); });
  trial.check("run.guarded_begin", "a kernel that begins before guarded memory is faulted", {"run.offsets"},
              [&] { return detail::check_guarded_allocation(trial, true); });
}

} // namespace mtmc::test
