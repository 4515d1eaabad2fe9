#pragma once
/// Runs kernels of a CUDA task on the emulated GPU and compares what they compute.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/support/expression.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../emulated_examples.hpp"
#include "../draft.hpp"

namespace mtmc::testing {

/// One of the repository's CUDA tasks.
[[nodiscard]] inline Task cuda_task(std::string_view name) {
  return load_task(std::string(MTMC_REPOSITORY) + "/examples/tasks/cuda/" + std::string(name) + ".json");
}

[[nodiscard]] inline const Device& h100() {
  static const Device device = find_device_preset("H100")->device;
  return device;
}

/// The draft for an action such as "parallelization|softmax/threads:x", planned for an H100.
[[nodiscard]] inline Draft grid_draft(const Task& task, const Kernel& kernel, std::string_view key,
                                      int sample = 0) {
  return draft_of(task, kernel, key, sample, h100());
}

/// The text after a sequence of actions, "key" or "key@sample". Throws std::runtime_error where one is
/// declined.
[[nodiscard]] inline std::string grid_source_after(const Task& task, const std::vector<std::string>& keys) {
  return source_after(task, keys, h100());
}

/// The program of a kernel for the emulated GPU, compiled when it is first asked for. Throws
/// std::runtime_error with the compiler's words where it does not compile.
[[nodiscard]] inline std::shared_ptr<mtmc_test::EmulatedProgram> grid_program(const Kernel& kernel,
                                                                              const LaunchPlan& plan) {
  static std::map<std::string, std::shared_ptr<mtmc_test::EmulatedProgram>> programs;
  auto& program = programs[kernel.source];
  if (program == nullptr) {
    CompileOptions options{.plan = plan};
    const auto compiled = mtmc_test::ExampleDevice{}.compile(kernel, options, {});
    if (!compiled.program)
      throw std::runtime_error(compiled.diagnostics.empty() ? "it does not compile"
                                                            : compiled.diagnostics.front().message);
    program = compiled.program;
  }
  return program;
}

/// What a kernel makes of inputs that depend on the size alone. Throws std::runtime_error with the compiler's
/// words where it does not compile.
[[nodiscard]] inline std::vector<double> grid_results(const Task& task, const std::string& source,
                                                      const ProblemSize& size) {
  mtmc_test::ExampleDevice device;
  const Kernel kernel{task.kernel.language, source};
  LaunchPlan plan = plan_launches(kernel, task, size, h100().compute_units);
  const auto program = grid_program(kernel, plan);
  struct Memory {
    std::string name;
    DataType type = DataType::f32;
    bool result = false;
    std::vector<std::byte> content{};
  };
  std::vector<Memory> memory;
  std::uint32_t state = 12345;
  const auto next = [&state] {
    state = state * 1664525U + 1013904223U;
    return static_cast<double>(state >> 8) / 8388608.0 - 1.0;
  };
  for (const Argument& argument : task.arguments) {
    if (argument.role == ArgumentRole::scalar) continue;
    std::size_t count = 1;
    for (const std::string& extent : argument.shape)
      count *= static_cast<std::size_t>(evaluate_expression(extent, size.symbols));
    Memory one{argument.name, argument.type, argument.role != ArgumentRole::input};
    one.content.resize(count * size_of(argument.type));
    for (std::size_t i = 0; i < count; ++i) {
      const bool filled = argument.role != ArgumentRole::output;
      const double value = filled ? next() : std::numeric_limits<double>::quiet_NaN();
      if (argument.type == DataType::f32) {
        const auto number = static_cast<float>(value);
        std::memcpy(one.content.data() + i * 4, &number, 4);
      } else if (argument.type == DataType::i8) {
        one.content[i] = static_cast<std::byte>(static_cast<signed char>(filled ? 100 * value : 0));
      } else {
        throw std::runtime_error("no values for " + argument.name);
      }
    }
    memory.push_back(std::move(one));
  }
  for (const ScratchBuffer& scratch : plan.scratch) {
    Memory one{scratch.name};
    one.content.assign(static_cast<std::size_t>(scratch.bytes()), std::byte{0xff});
    memory.push_back(std::move(one));
  }
  for (Launch& launch : plan.launches)
    for (LaunchArgument& argument : launch.arguments)
      for (Memory& one : memory)
        if (argument.kind == LaunchArgument::Kind::buffer && one.name == argument.name) {
          argument.bound.handle = reinterpret_cast<std::uint64_t>(one.content.data());
          argument.bound.bytes = static_cast<std::int64_t>(one.content.size());
        }
  (void)device.run(*program, plan, Deadline{});
  std::vector<double> results;
  for (const Memory& one : memory)
    if (one.result)
      for (std::size_t at = 0; at < one.content.size(); at += 4) {
        float number = 0;
        std::memcpy(&number, one.content.data() + at, 4);
        results.push_back(static_cast<double>(number));
      }
  return results;
}

/// Largest difference from what the task's own kernel computes, over all sizes that are only checked,
/// relative to the largest result.
[[nodiscard]] inline double grid_difference(const Task& task, const std::string& source) {
  double all = 0;
  for (const ProblemSize& size : task.sizes) {
    if (size.weight > 0) continue;
    const auto wanted = grid_results(task, task.kernel.source, size);
    const auto got = grid_results(task, source, size);
    double scale = 1e-30, worst = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      scale = std::max(scale, std::abs(wanted[i]));
      const double distance = std::abs(got[i] - wanted[i]);
      worst = distance <= worst ? worst : distance; // a NaN is the worst of all
    }
    all = std::max(all, std::isnan(worst) ? std::numeric_limits<double>::infinity() : worst / scale);
  }
  return all;
}

} // namespace mtmc::testing
