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

/// Whether an action is on offer for a kernel on an H100.
[[nodiscard]] inline bool is_offered_on_grid(const Task& task, const Kernel& kernel, const std::string& key) {
  return is_offered(task, kernel, key, h100());
}
[[nodiscard]] inline bool is_offered_on_grid(const Task& task, const std::string& key) {
  return is_offered_on_grid(task, task.kernel, key);
}

/// The text after a sequence of actions, "key" or "key@sample". Throws std::runtime_error where one is
/// declined.
[[nodiscard]] inline std::string grid_source_after(const Task& task, const std::vector<std::string>& keys) {
  return source_after(task, keys, h100());
}

/// A buffer of a kernel on the emulated GPU.
struct GridMemory {
  std::string name{};
  DataType type = DataType::f32;
  ArgumentRole role = ArgumentRole::input;
  std::vector<std::byte> content{};

  /// Writes one element, rounded to the buffer's type. Throws std::runtime_error for types that no task has.
  void set(std::size_t at, double value) {
    const auto write = [&](auto number) {
      std::memcpy(content.data() + at * sizeof number, &number, sizeof number);
    };
    if (type == DataType::f32) return write(static_cast<float>(value));
    if (type == DataType::f64) return write(value);
    if (type == DataType::i32)
      return write(static_cast<std::int32_t>(std::isnan(value) ? -1 : std::floor(value)));
    if (type == DataType::i8)
      return write(static_cast<std::int8_t>(std::isnan(value) ? -1 : std::floor(value)));
    throw std::runtime_error("no values for " + name);
  }
  /// One element.
  [[nodiscard]] double get(std::size_t at) const {
    const auto read = [&](auto number) {
      std::memcpy(&number, content.data() + at * sizeof number, sizeof number);
      return static_cast<double>(number);
    };
    if (type == DataType::f64) return read(0.0);
    if (type == DataType::i32) return read(std::int32_t{});
    return type == DataType::i8 ? read(std::int8_t{}) : read(0.0F);
  }
  /// Number of elements.
  [[nodiscard]] std::size_t count() const { return content.size() / size_of(type); }
};

/// The buffers of a task: inputs that depend on the size alone and lie in their domains, results that are
/// nowhere what a kernel would write.
[[nodiscard]] inline std::vector<GridMemory> grid_memory(const Task& task, const ProblemSize& size) {
  std::uint32_t state = 12345;
  const auto below_one = [&state] {
    state = state * 1664525U + 1013904223U;
    return static_cast<double>(state >> 8) / 16777216.0;
  };
  std::vector<GridMemory> memory;
  for (const Argument& argument : task.arguments) {
    if (argument.role == ArgumentRole::scalar) continue;
    std::size_t count = 1;
    for (const std::string& extent : argument.shape)
      count *= static_cast<std::size_t>(evaluate_expression(extent, size.symbols));
    GridMemory one{argument.name, argument.type, argument.role};
    one.content.resize(count * size_of(argument.type));
    double low = is_floating(argument.type) ? -1 : -100, high = -low;
    if (argument.domain) {
      low = detail::evaluate_real(argument.domain->low, size.symbols, argument.name);
      high = detail::evaluate_real(argument.domain->high, size.symbols, argument.name);
      if (!is_floating(argument.type)) high += 1; // both ends included
    }
    for (std::size_t i = 0; i < count; ++i)
      one.set(i, argument.role == ArgumentRole::output ? std::numeric_limits<double>::quiet_NaN()
                                                       : low + (high - low) * below_one());
    memory.push_back(std::move(one));
  }
  return memory;
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

/// Runs a kernel once on the buffers of its task. Throws std::runtime_error with the compiler's words where
/// it does not compile.
inline void run_grid(const Task& task, const std::string& source, const ProblemSize& size,
                     std::vector<GridMemory>& memory) {
  mtmc_test::ExampleDevice device;
  const Kernel kernel{task.kernel.language, source};
  LaunchPlan plan = plan_launches(kernel, task, size, h100().compute_units);
  const auto program = grid_program(kernel, plan);
  std::vector<GridMemory> scratch;
  for (const ScratchBuffer& buffer : plan.scratch) {
    scratch.push_back({buffer.name});
    scratch.back().content.assign(static_cast<std::size_t>(buffer.bytes()), std::byte{0xff});
  }
  for (Launch& launch : plan.launches)
    for (LaunchArgument& argument : launch.arguments)
      for (auto* buffers : {&memory, &scratch})
        for (GridMemory& one : *buffers)
          if (argument.kind == LaunchArgument::Kind::buffer && one.name == argument.name) {
            argument.bound.handle = reinterpret_cast<std::uint64_t>(one.content.data());
            argument.bound.bytes = static_cast<std::int64_t>(one.content.size());
          }
  (void)device.run(*program, plan, Deadline{});
}

/// What a kernel makes of inputs that depend on the size alone. Throws std::runtime_error with the compiler's
/// words where it does not compile.
[[nodiscard]] inline std::vector<double> grid_results(const Task& task, const std::string& source,
                                                      const ProblemSize& size) {
  std::vector<GridMemory> memory = grid_memory(task, size);
  run_grid(task, source, size, memory);
  std::vector<double> results;
  for (const GridMemory& one : memory)
    for (std::size_t i = 0; one.role != ArgumentRole::input && i < one.count(); ++i)
      results.push_back(one.get(i));
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
