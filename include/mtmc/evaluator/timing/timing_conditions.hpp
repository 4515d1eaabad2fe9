#pragma once
/// Whether a timing was disturbed, and what its reader should know of that. Pure functions; a warning never
/// changes a verdict.

#include <mtmc/core/conditions.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/evaluator/timing/timing_statistics.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What deserves a warning. The two that come from coarse counters must also be clear of their coarseness by
/// `sure` standard deviations, so that a timing of some milliseconds is not accused by a single tick.
struct DisturbanceLimits {
  /// Relative change between the halves of the times.
  double drift = 0.05;
  /// Processors kept busy by others. On a quiet virtual machine with 16 processors 0.00 were measured (100
  /// windows of 20 ms; up to 0.07 with windows of 5 ms), with one process that computes 0.97 to 1.03.
  double others_busy = 0.1;
  /// Share of the processors' time.
  double steal = 0.02;
  double sure = 3; ///< standard deviations
};

/// What a timing met, and whether that is worth a warning.
struct TimingConditions {
  /// See `environment_key::drift`; `drifted` if it is beyond the limit and beyond the spread of the times.
  double drift = 1;
  /// `drift` is worth a warning.
  bool drifted = false;
  /// Processors that were watched.
  int processors = 0;
  /// Processors kept busy by others on average; nothing = not known.
  std::optional<double> others_busy{};
  /// `others_busy` is worth a warning.
  bool busy = false;
  /// Share of the time that the hypervisor took; nothing = not known.
  std::optional<double> steal{};
  /// `steal` is worth a warning.
  bool stolen = false;
  /// How often the clock was lowered; nothing = not known.
  std::optional<std::int64_t> throttled{};
  /// The reasons that occurred.
  std::vector<std::string> throttled_by{};
  std::optional<double> clock_hz{};         ///< the clock at the end
  std::map<std::string, double> readings{}; ///< `Conditions::readings` at the end
};

/// Standard deviation, roughly, of the logarithm of `drift_of` times that do not drift: from the spread
/// within each half, as if they were normal.
[[nodiscard]] inline double drift_noise(std::span<const double> seconds) {
  if (seconds.size() < 6) return 0;
  const auto half = seconds.size() / 2;
  const double spread = (relative_spread(seconds.first(half)) + relative_spread(seconds.last(half))) / 2;
  // A normal deviation is 1.48 median absolute deviations; that of a median 1.25 of those of the mean; two
  // medians are compared.
  return 1.4826 * 1.2533 * spread * std::sqrt(2 / static_cast<double>(half));
}

/// Takes one size's times into account: those of the incumbent, where there is one, because they are the
/// same for every candidate.
inline void add_times(TimingConditions& conditions, std::span<const double> seconds,
                      const DisturbanceLimits& limits = {}) {
  const double drift = drift_of(seconds);
  const double change = std::abs(std::log(drift));
  if (change > std::abs(std::log(conditions.drift))) conditions.drift = drift;
  if (change > std::max(std::log1p(limits.drift), 2 * drift_noise(seconds))) conditions.drifted = true;
}

/// What happened between two readings of a backend's counters.
[[nodiscard]] inline TimingConditions conditions_between(const Conditions& before, const Conditions& after,
                                                         const DisturbanceLimits& limits = {}) {
  TimingConditions result;
  result.processors = after.processors;
  result.clock_hz = after.clock_hz;
  result.readings = after.readings;
  const double seconds = after.watched_seconds - before.watched_seconds;
  const double doubt =
      limits.sure * std::sqrt(std::max(0.0, after.counter_variance - before.counter_variance));
  if (after.others_seconds && seconds > 0) {
    const double used = *after.others_seconds - before.others_seconds.value_or(0);
    result.others_busy = std::max(0.0, used / seconds);
    result.busy = used > std::max(doubt, limits.others_busy * seconds);
  }
  if (after.stolen_seconds && seconds > 0 && after.processors > 0) {
    const double stolen = *after.stolen_seconds - before.stolen_seconds.value_or(0);
    const double all = seconds * after.processors;
    result.steal = std::max(0.0, stolen / all);
    result.stolen = stolen > std::max(doubt, limits.steal * all);
  }
  for (const auto& [what, count] : after.throttle_events) {
    const auto earlier = before.throttle_events.find(what);
    const auto events = earlier == before.throttle_events.end() ? 0 : count - earlier->second;
    result.throttled = result.throttled.value_or(0) + std::max<std::int64_t>(0, events);
    if (events > 0) result.throttled_by.push_back(what);
  }
  return result;
}

namespace detail {
[[nodiscard]] inline std::string decimals(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
} // namespace detail

/// " (core, package)"; empty if no reason is known.
[[nodiscard]] inline std::string throttle_reasons(const TimingConditions& conditions) {
  std::string text;
  for (const auto& reason : conditions.throttled_by) text += (text.empty() ? " (" : ", ") + reason;
  return text.empty() ? text : text + ')';
}

/// Names of what deserves a warning, with blanks between.
[[nodiscard]] inline std::string disturbances(const TimingConditions& conditions) {
  std::string names;
  const auto add = [&names](bool is, const char* name) {
    if (is) names += (names.empty() ? "" : " ") + std::string(name);
  };
  add(conditions.drifted, environment_key::drift);
  add(conditions.busy, environment_key::others_busy);
  add(conditions.stolen, environment_key::steal);
  add(conditions.throttled.value_or(0) > 0, environment_key::throttled);
  return names;
}

/// One warning for each disturbance, for the engineer who reads the numbers. `compared`: there are pairs.
[[nodiscard]] inline std::vector<Diagnostic> timing_warnings(const TimingConditions& conditions,
                                                             bool compared) {
  std::vector<Diagnostic> warnings;
  const auto warn = [&warnings](std::string message, std::string remedy) {
    Diagnostic warning;
    warning.severity = Severity::warning;
    warning.message = std::move(message);
    warning.remedy = std::move(remedy);
    warnings.push_back(std::move(warning));
  };
  // A pair is taken within moments: both of its halves met nearly the same.
  const std::string effect = compared
                                 ? "; the speed-up compares kernels timed in turn, so what hits both mostly "
                                   "cancels, but its interval and the seconds are uncertain"
                                 : "; the seconds are uncertain";
  if (conditions.drifted)
    warn("the machine got " +
             detail::decimals(100 * std::abs(conditions.drift - 1),
                              conditions.drift > 1 ? "%.0f %% slower" : "%.0f %% faster") +
             " from the first half of the timing to the second" + effect,
         "Where the seconds matter, time again on a machine with a fixed clock (governor `performance`, no "
         "boost) and nothing else to do");
  if (conditions.busy)
    warn("others kept " + detail::decimals(*conditions.others_busy, "%.1f") + " of " +
             std::to_string(conditions.processors) + " processors busy while this was timed" + effect +
             (compared ? ", and a kernel that uses all processors looks slower than it is" : ""),
         "Stop the other programs (top shows them) or give this one processors of its own (taskset, cpuset), "
         "and time again");
  if (conditions.stolen)
    warn("the hypervisor gave " + detail::decimals(100 * *conditions.steal, "%.1f %%") +
             " of the processors' time to other machines while this was timed" + effect,
         "Time again later, or on a machine whose processors are not shared (a dedicated or a larger "
         "instance)");
  if (conditions.throttled.value_or(0) > 0)
    warn("the clock was lowered " + std::to_string(*conditions.throttled) +
             (*conditions.throttled == 1 ? " time" : " times") + " for heat or power" +
             throttle_reasons(conditions) + " while this was timed" + effect,
         "Let the machine cool, improve its cooling, or fix the clock at one it can hold");
  return warnings;
}

/// Writes what is known into the environment record and, if `warn`, adds the warnings behind the diagnostics
/// that there are.
inline void record_conditions(const TimingConditions& conditions, bool warn, Evaluation& evaluation) {
  auto& record = evaluation.environment;
  record[environment_key::drift] = detail::decimals(conditions.drift, "%.3f");
  if (conditions.others_busy)
    record[environment_key::others_busy] = detail::decimals(*conditions.others_busy, "%.2f");
  if (conditions.steal) record[environment_key::steal] = detail::decimals(*conditions.steal, "%.3f");
  if (conditions.throttled)
    record[environment_key::throttled] = std::to_string(*conditions.throttled) + throttle_reasons(conditions);
  if (conditions.clock_hz)
    record[environment_key::clock] = detail::decimals(*conditions.clock_hz / 1e6, "%.0f");
  for (const auto& [key, value] : conditions.readings) record[key] = detail::decimals(value, "%.0f");
  if (auto names = disturbances(conditions); !names.empty())
    record[environment_key::disturbed_by] = std::move(names);
  if (!warn) return;
  for (auto& warning : timing_warnings(conditions, evaluation.speed_up.has_value()))
    evaluation.diagnostics.push_back(std::move(warning));
}

} // namespace mtmc
