#pragma once
/// What a candidate may ask for in its launch lines. Everything here costs the candidate its own verdict.

#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/content/wrong_result.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>
#include <mtmc/support/readable_bytes.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Far more than kernels need, and little enough for plans of all sizes to fit into memory.
namespace max_in_launch_lines {
/// Launch lines.
inline constexpr std::size_t launches = 1024;
/// Arguments of one launch.
inline constexpr std::size_t arguments_of_a_launch = 256;
/// Arguments of all launches.
inline constexpr std::size_t arguments = 8192;
/// Each may cost the judge a descriptor for every buffer guard.
inline constexpr std::size_t scratch_buffers = 64;
} // namespace max_in_launch_lines

/// Why the launch lines ask for more than is planned at all; nothing if they do not.
[[nodiscard]] inline std::optional<Refusal> check_amounts(const LaunchLines& lines) {
  const auto too_many = [](std::size_t count, std::size_t most, const std::string& what,
                           const std::string& remedy, int line) {
    return refusal(Verdict::launch_error, refusal_rule::launch_lines,
                   "there are " + std::to_string(count) + ' ' + what + "; at most " + std::to_string(most) +
                       " are allowed",
                   remedy, line);
  };
  namespace most = max_in_launch_lines;
  if (lines.launches.size() > most::launches)
    return too_many(lines.launches.size(), most::launches, "launch lines",
                    "Launch fewer kernels: let one do the work of several, in a loop",
                    lines.launches[most::launches].line);
  if (lines.scratch.size() > most::scratch_buffers)
    return too_many(lines.scratch.size(), most::scratch_buffers, "scratch buffers",
                    "Keep several arrays in one scratch buffer", lines.scratch[most::scratch_buffers].line);
  std::size_t arguments = 0;
  for (const auto& launch : lines.launches) {
    if (launch.arguments.size() > most::arguments_of_a_launch)
      return too_many(
          launch.arguments.size(), most::arguments_of_a_launch, "arguments of one launch of " + launch.entry,
          "Pass a buffer in place of many values, and compute values from others in the kernel", launch.line);
    arguments += launch.arguments.size();
    if (arguments > most::arguments)
      return too_many(arguments, most::arguments, "arguments of all launches together",
                      "Launch fewer kernels, or pass fewer values to each", launch.line);
  }
  return std::nullopt;
}

/// Bytes of all scratch buffers of a plan.
[[nodiscard]] inline double scratch_bytes(const LaunchPlan& plan) noexcept {
  double bytes = 0;
  for (const auto& buffer : plan.scratch) bytes += static_cast<double>(buffer.bytes());
  return bytes;
}

namespace detail {
inline constexpr const char* less_scratch =
    "Use less scratch memory: keep intermediate results in registers or in smaller tiles";
}

/// Why a plan needs more scratch memory than a candidate may have; nothing if it does not.
[[nodiscard]] inline std::optional<Refusal> check_scratch(const LaunchPlan& plan, std::int64_t allowed) {
  const double bytes = scratch_bytes(plan);
  if (bytes <= static_cast<double>(allowed)) return std::nullopt;
  return refusal(Verdict::launch_error, refusal_rule::launch_lines,
                 "the scratch buffers need " + readable_bytes(bytes) + " at " + to_string(plan.size) +
                     "; at most " + readable_bytes(static_cast<double>(allowed)) + " are allowed",
                 detail::less_scratch);
}

namespace detail {
[[nodiscard]] inline bool is_passed(const LaunchPlan& plan, const std::string& name) {
  for (const auto& launch : plan.launches)
    for (const auto& argument : launch.arguments)
      if (argument.kind != LaunchArgument::Kind::scalar && argument.name == name) return true;
  return false;
}
} // namespace detail

/// What plans may not do: ask for more than `allowed` bytes of scratch memory, and pass an output to no
/// launch.
[[nodiscard]] inline std::optional<Refusal>
check_plans(const Task& task, const std::vector<LaunchPlan>& plans, std::int64_t allowed) {
  for (const auto& plan : plans) {
    if (auto refusal = check_scratch(plan, allowed)) return refusal;
    for (const auto& argument : task.arguments) {
      if (argument.role != ArgumentRole::output && argument.role != ArgumentRole::inout) continue;
      if (!detail::is_passed(plan, argument.name))
        return refusal(Verdict::launch_error, refusal_rule::launch_lines,
                       "no launch line passes the output " + argument.name,
                       "Add " + argument.name + " to the arguments of the launch that writes it");
    }
  }
  return std::nullopt;
}

/// A candidate that leaves too little memory for its own calls, though there is enough for the task's
/// buffers. `plan`: the one with most scratch memory, of which a candidate may have `allowed` bytes;
/// `task_bytes`: of the task's own buffers; `reason`: what could not be allocated.
[[nodiscard]] inline Refusal memory_refusal(const LaunchPlan& plan, double task_bytes, std::int64_t allowed,
                                            const std::string& reason) {
  const double scratch = scratch_bytes(plan);
  const auto room = "; at most " + readable_bytes(static_cast<double>(allowed)) +
                    " of scratch memory are allowed, and no more than fits beside the task's own buffers "
                    "for two kernels (" +
                    readable_bytes(2 * task_bytes) + ')';
  if (scratch > 0)
    return refusal(Verdict::launch_error, refusal_rule::memory,
                   "the scratch buffers need " + readable_bytes(scratch) + " at " + to_string(plan.size) +
                       ", for which there is no memory: " + reason + room,
                   detail::less_scratch);
  return refusal(Verdict::launch_error, refusal_rule::memory,
                 "the kernel holds so much memory that its next call cannot be prepared: " + reason + room,
                 "Allocate less, and free what a call allocates before it ends");
}

} // namespace mtmc
