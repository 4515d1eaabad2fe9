#pragma once
/// What the conformance suite found out about a backend.

#include <mtmc/core/enum_names.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::test {

/// How one check ended.
enum class ConformanceOutcome {
  passed,
  failed,
  /// Not tried: the probe has no text for it, or a check that it builds on did not pass.
  skipped
};

namespace detail {
inline constexpr EnumName<ConformanceOutcome> conformance_outcome_names[] = {
    {ConformanceOutcome::passed, "passed"},
    {ConformanceOutcome::failed, "failed"},
    {ConformanceOutcome::skipped, "skipped"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<ConformanceOutcome>>
enum_names(ConformanceOutcome) noexcept {
  return detail::conformance_outcome_names;
}

/// One thing that a backend promises, and whether it keeps it.
struct ConformanceCheck {
  /// Stable name, area and point: "memory.round_trip".
  std::string name;
  /// What is promised, in a sentence.
  std::string promise;
  ConformanceOutcome outcome = ConformanceOutcome::passed;
  /// Failed: what was expected, what came, what to do. Skipped: why. Passed: empty, or a remark.
  std::string message{};
  /// Wall-clock seconds the check took.
  double seconds = 0;

  friend bool operator==(const ConformanceCheck&, const ConformanceCheck&) = default;
};

/// All checks of one backend, in the order in which they were made.
struct ConformanceReport {
  /// The device's name; empty if there is none.
  std::string device{};
  std::vector<ConformanceCheck> checks{};

  /// Whether something was tried and nothing failed. What was skipped is no failure: look at `count`.
  [[nodiscard]] bool passed() const noexcept {
    return count(ConformanceOutcome::passed) > 0 && count(ConformanceOutcome::failed) == 0;
  }
  /// How many checks ended so.
  [[nodiscard]] std::size_t count(ConformanceOutcome outcome) const noexcept {
    std::size_t found = 0;
    for (const auto& check : checks) found += check.outcome == outcome ? 1 : 0;
    return found;
  }
  /// The check of that name, or null.
  [[nodiscard]] const ConformanceCheck* find(std::string_view name) const noexcept {
    for (const auto& check : checks)
      if (check.name == name) return &check;
    return nullptr;
  }
  /// For people: a line with the numbers, a line for each check, and below it the message if there is one.
  [[nodiscard]] std::string to_text() const {
    std::string text = (device.empty() ? std::string("a backend without a device") : device) + ": " +
                       std::to_string(count(ConformanceOutcome::passed)) + " passed, " +
                       std::to_string(count(ConformanceOutcome::failed)) + " failed, " +
                       std::to_string(count(ConformanceOutcome::skipped)) + " skipped\n";
    std::size_t width = 0;
    for (const auto& check : checks) width = std::max(width, check.name.size());
    for (const auto& check : checks) {
      std::string outcome(to_string(check.outcome));
      outcome.resize(9, ' ');
      text.append("  ").append(outcome).append(check.name);
      text.append(width - check.name.size() + 2, ' ').append(check.promise).append("\n");
      if (!check.message.empty()) text.append(11, ' ').append(check.message).append("\n");
    }
    return text;
  }

  friend bool operator==(const ConformanceReport&, const ConformanceReport&) = default;
};

} // namespace mtmc::test
