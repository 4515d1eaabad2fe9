#pragma once
/// The true results of a task, from its own kernel run in double precision.
///
/// The reference computes in f32 as candidates do, so a comparison with it sees the sum of two rounding
/// errors. Where the backend can write the reference anew with doubles, its twin has practically none. A twin
/// that computes something else (a kernel that rounds on purpose, say) is found out by the reference itself:
/// results of the twin count only where those of the reference agree with them.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/content/comparison.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/evaluator/content/slot.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How many tolerances (those of results that are compared with the reference's) the reference may be off by
/// the truth and still confirm it. Rounding errors in sums of many equal terms do not walk at random but in
/// step: on mostly zero inputs a layer norm that adds one term after the other was off by 1.7 tolerances
/// (measured), and more careful candidates could be refused for its errors. A twin that computes something
/// else is off by thousands.
inline constexpr double farthest_truth = 4;

/// By how much the tolerance is widened in a case in which the reference itself is off by so many of it: an
/// honest candidate may err twice as much as the reference. In such a case the next lower precision may pass
/// (attention on heavy-tailed inputs is off by more than it may be, once in some hundred evaluations); that
/// it fails in another is seen to when the task is prepared.
[[nodiscard]] constexpr double widening_for(double reference_error) noexcept {
  return 2 * reference_error > 1 ? 2 * reference_error : 1;
}

/// The same where results are compared with those of the reference alone, whose error adds to the
/// candidate's. One that takes reciprocal roots by an approximation and a step of Newton errs three times as
/// much as the reference where two large terms cancel (measured).
[[nodiscard]] constexpr double widening_without_truth(double reference_error) noexcept {
  return 4 * reference_error > 1 ? 4 * reference_error : 1;
}

/// The farthest that a reference may be off by a twin that cheaper sizes have confirmed, in tolerances, and
/// still be taken for imprecise. On normal inputs a sum of 65,536 terms one after the other is off by some
/// tens of an honest error, the sine of an angle of 2,000 that f32 rounded by 80; on all others, where a few
/// results are the difference of large terms, by some hundreds (measured). One that is off by more computes
/// something else there.
[[nodiscard]] constexpr double farthest_reference(Distribution distribution) noexcept {
  return distribution == Distribution::normal ? 512 : 4096;
}

/// What the reference's results of a case say about those of its twin.
enum class TwinAgreement : std::uint8_t {
  none,      ///< the twin failed, or computes something else
  believed,  ///< off by more than `farthest_truth`: true if other cases have confirmed the twin
  confirmed, ///< the twin computes the same
};

/// The reference of a task in double precision, ready to run: the same arguments with f64 in place of f32.
struct DoubleTwin {
  /// One for each size, as are the plans.
  std::vector<ProblemLayout> layouts;
  /// One for each size.
  std::vector<LaunchPlan> plans;
  /// By size. Outlive the program, which may have them mapped.
  std::map<std::size_t, Slot> slots;
  std::shared_ptr<AnyBackend::Program> program; ///< the compiled reference
};

/// Why there can be no truth about any result of a task, in a few words; empty if there can.
[[nodiscard]] inline std::string reason_against_truth(const Task& task) {
  if (task.compare) return "the task compares by itself";
  bool any = false;
  for (const auto& argument : task.arguments) {
    if (is_floating(argument.type) && size_of(argument.type) == 2) return "16-bit arguments";
    const bool result = argument.role == ArgumentRole::output || argument.role == ArgumentRole::inout;
    any = any || (result && argument.type == DataType::f32);
  }
  return any ? "" : "no f32 results";
}

/// The task with f64 in place of f32, for layouts and plans of the twin.
[[nodiscard]] inline Task in_double_precision(Task task) {
  for (auto& argument : task.arguments)
    if (argument.type == DataType::f32) argument.type = DataType::f64;
  return task;
}

/// Gives the f32 scalars of a task, in a plan for its twin, the values that the f32 kernel gets.
inline void round_scalars(const Task& task, LaunchPlan& plan) {
  for (auto& launch : plan.launches)
    for (auto& argument : launch.arguments) {
      const auto* const declared = task.find_argument(argument.name);
      if (argument.kind == LaunchArgument::Kind::scalar && declared != nullptr &&
          declared->type == DataType::f32)
        argument.real = static_cast<double>(static_cast<float>(argument.real));
    }
}

/// The twin's buffers at a size, allocated when first needed.
[[nodiscard]] inline Slot& slot_of(AnyBackend& backend, DoubleTwin& twin, std::size_t size,
                                   std::size_t red_zone_bytes) {
  auto found = twin.slots.find(size);
  if (found == twin.slots.end())
    found = twin.slots.emplace(size, make_slot(backend, twin.layouts[size], twin.plans[size], red_zone_bytes))
                .first;
  return found->second;
}

} // namespace mtmc
