#pragma once
/// Runs all variants of an action on the emulated GPU at once: one compilation for all of them.

#include <mtmc/support/expression.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grid_runner.hpp"

namespace mtmc::testing {

/// A GPU with few multiprocessors, for which reductions are split into few parts: quick to emulate.
[[nodiscard]] inline const Device& small_gpu() {
  static const Device device = [] {
    Device result = h100();
    result.compute_units = 6;
    return result;
  }();
  return device;
}

/// The texts of all variants of an action, at most `most` of them.
[[nodiscard]] inline std::vector<std::string> all_variants(const Task& task, const Kernel& kernel,
                                                           std::string_view key, int most = 16,
                                                           const Device& device = h100()) {
  std::vector<std::string> sources;
  for (int sample = 0; sample < most; ++sample) {
    const Draft draft = draft_of(task, kernel, key, sample, device);
    if (!draft.kernel) break;
    sources.push_back(draft.kernel->source);
  }
  return sources;
}

/// Largest differences of the kernels' results from those of the task's own kernel over all sizes that are
/// only checked, relative to the largest result. Buffers are of f32; behind each there are guards, the change
/// of which counts as an infinite difference.
[[nodiscard]] inline std::vector<double> grid_differences(const Task& task,
                                                          std::vector<std::string> sources) {
  constexpr std::size_t guards = 64;
  constexpr float guard = 12345.0F;
  sources.insert(sources.begin(), task.kernel.source);
  std::string text;
  for (std::size_t i = 0; i < sources.size(); ++i)
    text += "namespace variant_" + std::to_string(i) + " {\n" + sources[i] + "\n}\n";
  mtmc_test::ExampleDevice device;
  std::shared_ptr<mtmc_test::ExampleDevice::Program> program;
  std::vector<double> differences(sources.size() - 1, 0);
  for (const ProblemSize& size : task.sizes) {
    if (size.weight > 0) continue;
    LaunchPlan all;
    std::vector<std::map<std::string, std::vector<float>>> memory(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      LaunchPlan plan = plan_launches({task.kernel.language, sources[i]}, task, size, h100().compute_units);
      std::uint32_t state = 12345;
      for (const Argument& argument : task.arguments) {
        if (argument.role == ArgumentRole::scalar) continue;
        std::size_t count = 1;
        for (const std::string& extent : argument.shape)
          count *= static_cast<std::size_t>(evaluate_expression(extent, size.symbols));
        auto& content = memory[i][argument.name];
        content.assign(count + guards, guard);
        for (std::size_t at = 0; at < count; ++at) {
          state = state * 1664525U + 1013904223U;
          content[at] = argument.role == ArgumentRole::output
                            ? std::numeric_limits<float>::quiet_NaN()
                            : static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
        }
      }
      for (const ScratchBuffer& scratch : plan.scratch)
        memory[i][scratch.name].assign(static_cast<std::size_t>(scratch.bytes()) / 4,
                                       std::numeric_limits<float>::quiet_NaN());
      for (Launch& launch : plan.launches) {
        launch.entry = "variant_" + std::to_string(i) + "::" + launch.entry;
        for (LaunchArgument& argument : launch.arguments) {
          if (argument.kind != LaunchArgument::Kind::buffer) continue;
          auto& content = memory[i].at(argument.name);
          argument.bound.handle = reinterpret_cast<std::uint64_t>(content.data());
          argument.bound.bytes = static_cast<std::int64_t>(content.size() * 4);
        }
        all.launches.push_back(std::move(launch));
      }
    }
    if (!program) {
      const auto compiled = device.compile({task.kernel.language, text}, CompileOptions{.plan = all}, {});
      if (!compiled.program)
        throw std::runtime_error(compiled.diagnostics.empty() ? "it does not compile"
                                                              : compiled.diagnostics.front().message);
      program = compiled.program;
    }
    (void)device.run(*program, all, Deadline{});
    for (std::size_t i = 1; i < sources.size(); ++i)
      for (const Argument& argument : task.arguments) {
        if (argument.role == ArgumentRole::scalar) continue;
        const auto& wanted = memory[0].at(argument.name);
        const auto& got = memory[i].at(argument.name);
        double scale = 1e-30, worst = 0;
        for (std::size_t at = 0; at < wanted.size() - guards; ++at) {
          scale = std::max(scale, std::abs(static_cast<double>(wanted[at])));
          const double distance = std::abs(static_cast<double>(got[at]) - static_cast<double>(wanted[at]));
          worst = distance <= worst ? worst : distance; // a NaN is the worst of all
        }
        const bool kept =
            std::all_of(got.end() - guards, got.end(), [](float value) { return value == guard; });
        const double infinite = std::numeric_limits<double>::infinity();
        differences[i - 1] =
            std::max(differences[i - 1], !kept || std::isnan(worst) ? infinite : worst / scale);
      }
  }
  return differences;
}

/// The largest of them.
[[nodiscard]] inline double worst_difference(const Task& task, const std::vector<std::string>& sources) {
  const auto all = grid_differences(task, sources);
  return all.empty() ? std::numeric_limits<double>::infinity() : *std::max_element(all.begin(), all.end());
}

/// How many drafts an action has if all of them are right at every size, else 0.
[[nodiscard]] inline std::size_t right_variants(const Task& task, const Kernel& kernel,
                                                std::string_view key) {
  const auto sources = all_variants(task, kernel, key);
  const bool right = !mtmc_test::can_emulate || worst_difference(task, sources) < 2e-5;
  return right ? sources.size() : 0;
}

} // namespace mtmc::testing
