#pragma once
/// What the conformance suite found out about a backend.

#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/enum_names.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::test {

/// How one check ended.
enum class ConformanceOutcome {
  passed,
  failed,
  /// Not tried: the probe has no text for it, or a check that it builds on did not pass. A gap: the answer is
  /// not known.
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
  /// How it ended.
  ConformanceOutcome outcome = ConformanceOutcome::passed;
  /// Failed: what was expected, what came, what to do. Skipped: why. Passed: empty, or a remark.
  std::string message{};
  /// Wall-clock seconds the check took.
  double seconds = 0;

  friend bool operator==(const ConformanceCheck&, const ConformanceCheck&) = default; ///< member by member
};

/// An optional ability of a backend, or of its type in a worker.
struct ConformanceAbility {
  /// Whether the backend has it.
  enum class Presence {
    found,
    absent,
    /// Absent, and yet there is a member of that name: it has another signature, or is not accessible.
    declared_otherwise
  };
  /// One of `BackendAbility`, by name.
  std::string name;
  /// How it is declared.
  std::string declaration;
  Presence presence = Presence::absent; ///< whether the backend has it

  /// Member by member.
  friend bool operator==(const ConformanceAbility&, const ConformanceAbility&) = default;
};

/// What all checks together say.
enum class ConformanceResult {
  passed,
  /// Nothing failed, but something was not tried.
  passed_with_gaps,
  /// Something failed, or nothing was tried.
  failed
};

namespace detail {
inline constexpr EnumName<ConformanceResult> conformance_result_names[] = {
    {ConformanceResult::passed, "passed"},
    {ConformanceResult::passed_with_gaps, "passed with gaps"},
    {ConformanceResult::failed, "failed"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<ConformanceResult>> enum_names(ConformanceResult) noexcept {
  return detail::conformance_result_names;
}

/// All checks of one backend, in the order in which they were made.
struct ConformanceReport {
  /// The device's name; empty if there is none.
  std::string device{};
  /// Every check, in order.
  std::vector<ConformanceCheck> checks{};
  /// Every optional ability, found or absent. None is demanded; one that is absent although the backend was
  /// meant to have it is misspelt.
  std::vector<ConformanceAbility> abilities{};

  /// Failed where a check failed or none passed.
  [[nodiscard]] ConformanceResult result() const noexcept {
    if (count(ConformanceOutcome::failed) > 0 || count(ConformanceOutcome::passed) == 0)
      return ConformanceResult::failed;
    return count(ConformanceOutcome::skipped) > 0 ? ConformanceResult::passed_with_gaps
                                                  : ConformanceResult::passed;
  }
  /// Whether everything was tried, and nothing failed.
  [[nodiscard]] bool passed() const noexcept { return result() == ConformanceResult::passed; }
  /// What a program that checks a backend should end with: 0 passed, 1 failed, 2 passed with gaps. Where the
  /// gaps are known and meant (a device whose kernels cannot be ended, say), take 2 for success, and look
  /// that `count(ConformanceOutcome::skipped)` stays what it is.
  [[nodiscard]] int exit_code() const noexcept {
    switch (result()) {
    case ConformanceResult::passed:
      return 0;
    case ConformanceResult::passed_with_gaps:
      return 2;
    case ConformanceResult::failed:
      break;
    }
    return 1;
  }
  /// How many checks ended so.
  [[nodiscard]] std::size_t count(ConformanceOutcome outcome) const noexcept {
    std::size_t found = 0;
    for (const auto& check : checks) found += check.outcome == outcome ? 1 : 0;
    return found;
  }
  /// The ability of that name, or null.
  [[nodiscard]] const ConformanceAbility* find_ability(std::string_view name) const noexcept {
    for (const auto& ability : abilities)
      if (ability.name == name) return &ability;
    return nullptr;
  }
  /// The check of that name, or null.
  [[nodiscard]] const ConformanceCheck* find(std::string_view name) const noexcept {
    for (const auto& check : checks)
      if (check.name == name) return &check;
    return nullptr;
  }
  /// For people: a line with the result and the numbers, a line for each check, and below it the message if
  /// there is one; then a line for each optional ability.
  [[nodiscard]] std::string to_text() const {
    std::string text = (device.empty() ? std::string("a backend without a device") : device) + ": " +
                       std::string(to_string(result())) + " (" +
                       std::to_string(count(ConformanceOutcome::passed)) + " passed, " +
                       std::to_string(count(ConformanceOutcome::failed)) + " failed, " +
                       std::to_string(count(ConformanceOutcome::skipped)) + " skipped)\n";
    std::size_t width = 0;
    for (const auto& check : checks) width = std::max(width, check.name.size());
    for (const auto& check : checks) {
      std::string outcome(to_string(check.outcome));
      outcome.resize(9, ' ');
      text.append("  ").append(outcome).append(check.name);
      text.append(width - check.name.size() + 2, ' ').append(check.promise).append("\n");
      if (!check.message.empty()) text.append(11, ' ').append(check.message).append("\n");
    }
    if (!abilities.empty())
      text += "optional abilities; what is absent is no fault, unless the backend was meant to have it\n";
    width = 0;
    for (const auto& ability : abilities) width = std::max(width, ability.name.size());
    for (const auto& ability : abilities) {
      const bool found = ability.presence == ConformanceAbility::Presence::found;
      text.append(found ? "  found    " : "  absent   ").append(ability.name);
      text.append(width - ability.name.size() + 2, ' ').append(ability.declaration).append("\n");
      if (ability.presence == ConformanceAbility::Presence::declared_otherwise)
        text.append(11, ' ').append("there is a member of that name, but not with this signature\n");
    }
    return text;
  }

  friend bool operator==(const ConformanceReport&, const ConformanceReport&) = default; ///< member by member
};

} // namespace mtmc::test
