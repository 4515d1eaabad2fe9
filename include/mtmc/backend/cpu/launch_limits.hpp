#pragma once
/// What a launch line may ask of a processor, as far as it can be told without a compiler.

#include <mtmc/backend/launch_check.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// What of a plan a CPU cannot do, as errors at the launch lines; none if all is well.
[[nodiscard]] inline std::vector<Diagnostic> check_for_cpu(const Kernel& kernel, const LaunchPlan& plan) {
  auto errors = check_entry_names(plan);
  const auto refuse = [&](int line, std::string message, std::string remedy) {
    errors.push_back({Severity::error, line, 0, std::move(message), std::move(remedy), {}});
  };
  if (kernel.language.name != languages::cpp.name)
    refuse(0, "the CPU backend compiles C++, not " + kernel.language.name,
           "Give it kernels of the language \"cpp\", or use a backend for " + kernel.language.name);
  else if (plan.launches.empty())
    refuse(0, "the kernel has no launch line", "Add `//@ launch ENTRY(ARGUMENTS)`");
  constexpr std::array<std::int64_t, 3> one{1, 1, 1};
  for (const auto& launch : plan.launches) {
    if (launch.grid != one || launch.block != one || launch.cluster != one || launch.shared_bytes != 0)
      refuse(launch.line, "a CPU kernel is launched without a grid",
             "Remove `<<<...>>>` and write the loops, with OpenMP where they should run in parallel");
    for (const auto& argument : launch.arguments)
      if (argument.kind == LaunchArgument::Kind::tensor_map)
        refuse(launch.line, "there are no tensor maps on a CPU", "Pass `" + argument.name + "` itself");
  }
  return errors;
}

} // namespace detail

/// Throws `Error` (`mtmc.launch.001`) with line and size for the first launch of a C++ kernel that no
/// processor can make at one of the task's sizes.
inline void require_cpu_launches(const Task& task, const Kernel& kernel) {
  const auto lines = parse_launch_lines(kernel);
  for (const auto& size : task.sizes)
    for (const auto& wrong : detail::check_for_cpu(kernel, plan_launches(lines, task, size, 1)))
      throw Error(error_id::launch_malformed, wrong.message, wrong.remedy,
                  "line " + std::to_string(wrong.line) + ", at " + to_string(size));
}

} // namespace mtmc
