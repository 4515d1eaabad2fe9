#pragma once
/// How the time of a call divides among its launches.

#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/timing/timing_statistics.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The calls that are timed to divide a candidate's time among its launches.
struct LaunchTiming {
  /// Place of the size in `Task::sizes`.
  std::size_t size = 0;
  /// Calls in a group, as its times were taken.
  std::size_t group = 1;
  /// Seconds of one call, as they were measured.
  double seconds = 0;
  /// Seconds that may be spent on it.
  double budget = 0;
};

namespace detail {

/// A group of calls on fresh inputs, ready to run. Their inputs live as long as it does.
struct ReadyCalls {
  std::vector<std::shared_ptr<const CaseInputs>> inputs{};
  std::vector<const LaunchPlan*> plans{};
};

[[nodiscard]] inline ReadyCalls ready_calls(Judge& judge, PreparedTask& prepared, Contestant& candidate,
                                            const LaunchTiming& timing) {
  const auto size = timing.size;
  ReadyCalls calls;
  for (std::size_t i = 0; i < timing.group; ++i) {
    calls.inputs.push_back(prepared.shared_inputs(prepared.book.next_timed(candidate.id, size)));
    auto& slot = judge.slot(prepared, candidate, size, i);
    judge.begin_loading(slot, prepared.layouts[size], *calls.inputs.back(), Poison{}, Refill::all,
                        calls.inputs.back());
    calls.plans.push_back(&slot.plan);
  }
  judge.finish_loading();
  judge.overwrite_residue(candidate);
  return calls;
}

/// Seconds of one call of a group whose launches are chosen by `choose`; nothing where it does not end well.
template <class Choose>
[[nodiscard]] std::optional<double> time_chosen(Judge& judge, PreparedTask& prepared, Contestant& candidate,
                                                const LaunchTiming& timing, const ReadyCalls& calls,
                                                bool cold, const Choose& choose) {
  std::vector<LaunchPlan> group;
  for (const auto* call : calls.plans) {
    group.push_back(*call);
    group.back().launches = choose(call->launches);
  }
  const double limit = judge.launch_limit(prepared, timing.size) * static_cast<double>(timing.group);
  const auto timed =
      judge.backend().time(*candidate.program, group, cold && judge.options().cold, deadline_in(limit));
  if (!timed.status.finished()) return std::nullopt;
  return timed.seconds / static_cast<double>(timing.group);
}

/// Times each launch of a group of calls by itself, in their order: first that launch of all calls, then the
/// next one of all. Caches are emptied before the first, as before a timed group, and not between. Nothing
/// where one does not end well.
[[nodiscard]] inline std::vector<double>
time_launches_once(Judge& judge, PreparedTask& prepared, Contestant& candidate, const LaunchTiming& timing) {
  const auto calls = ready_calls(judge, prepared, candidate, timing);
  std::vector<double> seconds;
  for (std::size_t launch = 0; launch < calls.plans.front()->launches.size(); ++launch) {
    const auto alone =
        time_chosen(judge, prepared, candidate, timing, calls, launch == 0,
                    [&](const std::vector<Launch>& all) { return std::vector<Launch>{all[launch]}; });
    if (!alone) return {};
    seconds.push_back(*alone);
  }
  return seconds;
}

/// Times a launch that is stopped behind none of its parts, behind the first, and so on, after the launches
/// before it, each time on fresh inputs. Nothing where one does not end well.
[[nodiscard]] inline std::vector<double> time_parts_once(Judge& judge, PreparedTask& prepared,
                                                         Contestant& divided, const LaunchTiming& timing,
                                                         std::size_t launch, std::size_t parts) {
  std::vector<double> seconds;
  for (std::size_t done = 0; done <= parts; ++done) {
    const auto calls = ready_calls(judge, prepared, divided, timing);
    const auto until =
        time_chosen(judge, prepared, divided, timing, calls, true, [&](const std::vector<Launch>& all) {
          std::vector<Launch> some(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(launch) + 1);
          if (done < parts) some.back().arguments.back().integer = static_cast<std::int64_t>(done);
          return some;
        });
    if (!until) return {};
    seconds.push_back(*until);
  }
  return seconds;
}

} // namespace detail

/// The launches of one call and how long each takes; see `Evaluation::launches`. A call of one launch is not
/// timed again. Empty where there is no time for it, or a launch alone does not end well.
[[nodiscard]] inline std::vector<LaunchTime>
time_launches(Judge& judge, PreparedTask& prepared, Contestant& candidate, const LaunchTiming& timing) {
  constexpr int max_rounds = 3;
  const auto& launches = candidate.plans[timing.size].launches;
  std::vector<std::vector<double>> seconds(launches.size());
  if (launches.size() == 1) seconds.front() = {timing.seconds};
  const auto start = std::chrono::steady_clock::now();
  for (int round = 1; launches.size() > 1 && round <= max_rounds; ++round) {
    const auto once = detail::time_launches_once(judge, prepared, candidate, timing);
    if (once.empty()) return {};
    for (std::size_t i = 0; i < once.size(); ++i) seconds[i].push_back(once[i]);
    if (seconds_since(start) * (round + 1) > timing.budget * round) break;
  }
  std::vector<LaunchTime> times;
  for (std::size_t i = 0; i < launches.size(); ++i)
    times.push_back({launches[i].entry, launches[i].line, median(seconds[i]), {}, {}});
  return times;
}

/// Divides the launches further, by the parts of their functions, where the backend can: a text that may be
/// stopped behind each part is compiled, and timed for its differences. It is never judged, and its times are
/// nobody's but theirs. Leaves `times` as they are where something of it does not work.
inline void time_parts(Judge& judge, PreparedTask& prepared, const Contestant& candidate,
                       const LaunchTiming& timing, std::vector<LaunchTime>& times) {
  constexpr int rounds = 3;
  const auto text = divided_by(judge.backend(), candidate.kernel);
  if (!text) return;
  CompileResult<AnyBackend::Program> result;
  const auto divided =
      judge.compile(prepared, text->kernel, judge.plans_of(prepared.task, text->kernel), result);
  if (!divided->program) return;
  for (std::size_t launch = 0; launch < times.size(); ++launch) {
    std::vector<PartTime> parts;
    for (const auto& part : text->parts)
      if (part.entry == times[launch].entry) parts.push_back({part.first_line, part.last_line, 0, {}});
    if (parts.size() < 2) continue;
    std::vector<std::vector<double>> seconds(parts.size() + 1);
    for (int round = 0; round < rounds; ++round) {
      const auto once = detail::time_parts_once(judge, prepared, *divided, timing, launch, parts.size());
      if (once.empty()) return;
      for (std::size_t i = 0; i < once.size(); ++i) seconds[i].push_back(once[i]);
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
      parts[i].seconds = std::max(0.0, median(seconds[i + 1]) - median(seconds[i]));
    times[launch].parts = std::move(parts);
  }
}

} // namespace mtmc
