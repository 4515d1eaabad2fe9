#pragma once
/// Runs kernels in OpenCL C on the first device there is, and compares what they compute.

#include <mtmc/backend/device_presets.hpp>
#include <mtmc/support/expression.hpp>
#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../../../examples/opencl_interface.hpp"
#include "../draft.hpp"

namespace mtmc::testing {

/// The sanitizers see neither the memory nor the threads of a driver that was built without them.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool can_run_drivers = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
inline constexpr bool can_run_drivers = false;
#else
inline constexpr bool can_run_drivers = true;
#endif
#else
inline constexpr bool can_run_drivers = true;
#endif

/// A device for OpenCL C in this process.
class OpenClDevice {
public:
  /// The first one; null where no platform has one, or its driver cannot run here.
  [[nodiscard]] static const OpenClDevice* first() {
    static const std::unique_ptr<const OpenClDevice> device = open();
    return device.get();
  }

  /// What a kernel makes of inputs that depend on the size alone. Throws std::runtime_error with the
  /// compiler's words where it does not compile, and where something else fails.
  [[nodiscard]] std::vector<float> results(const Task& task, const std::string& source,
                                           const ProblemSize& size) const {
    const LaunchPlan plan = plan_launches({languages::opencl, source}, task, size, 2);
    opencl::Code code = 0;
    const char* text = source.c_str();
    const Owned program{cl_.program(context_.get(), 1, &text, nullptr, &code), cl_.release_program};
    if (cl_.build(program.get(), 1, &id_, "-cl-std=CL1.2 -Werror -cl-kernel-arg-info", nullptr, nullptr) !=
        0) {
      std::string log(1 << 16, '\0');
      (void)cl_.build_info(program.get(), id_, opencl::build_log, log.size(), log.data(), nullptr);
      throw std::runtime_error(log.c_str());
    }
    std::vector<Memory> memory = buffers(task, plan, size);
    const Owned queue{cl_.queue(context_.get(), id_, 0, &code), cl_.release_queue};
    for (const Launch& launch : plan.launches) run(launch, memory, program.get(), queue.get());
    std::vector<float> results;
    for (const Memory& one : memory) {
      if (!one.result) continue;
      std::vector<float> content(one.count);
      demand(
          cl_.read(queue.get(), one.handle.get(), 1, 0, one.count * 4, content.data(), 0, nullptr, nullptr));
      results.insert(results.end(), content.begin(), content.end());
    }
    return results;
  }

private:
  using Owned = std::unique_ptr<void, opencl::OpenCl::Release*>;
  struct Memory {
    std::string name;
    std::size_t count = 0;
    bool result = false;
    Owned handle;
  };

  OpenClDevice() {
    std::array<void*, 8> platforms{};
    opencl::Word count = 0;
    if (cl_.platforms(8, platforms.data(), &count) != 0) count = 0;
    for (opencl::Word i = 0; i < count && id_ == nullptr; ++i)
      if (cl_.devices(platforms[i], 0xffffffff, 1, &id_, nullptr) != 0) id_ = nullptr;
    if (id_ == nullptr) throw std::runtime_error("no platform has a device");
    opencl::Code code = 0;
    context_ = {cl_.context(nullptr, 1, &id_, nullptr, nullptr, &code), cl_.release_context};
    demand(code);
  }
  [[nodiscard]] static std::unique_ptr<const OpenClDevice> open() {
    if (!can_run_drivers) return nullptr;
    static const TemporaryFolder cache; // else PoCL keeps kernels in the home
    (void)::setenv("POCL_CACHE_DIR", cache.path().c_str(), 1);
    try {
      return std::unique_ptr<const OpenClDevice>(new OpenClDevice);
    } catch (const std::exception&) {
      return nullptr;
    }
  }
  static void demand(opencl::Code code) {
    if (code != 0) throw std::runtime_error("OpenCL error " + std::to_string(code));
  }

  /// Numbers in what is read, NaN in what is to be written.
  [[nodiscard]] std::vector<Memory> buffers(const Task& task, const LaunchPlan& plan,
                                            const ProblemSize& size) const {
    std::vector<Memory> memory;
    std::uint32_t state = 12345;
    const auto add = [&](const std::string& name, std::size_t count, bool filled, bool result) {
      std::vector<float> content(count, std::numeric_limits<float>::quiet_NaN());
      for (float& value : content) {
        state = state * 1664525U + 1013904223U;
        if (filled) value = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
      }
      opencl::Code code = 0;
      constexpr std::uint64_t copied = 1 | 32; // read, written, made of what is given
      memory.push_back(
          {name, count, result,
           Owned{cl_.memory(context_.get(), copied, count * 4, content.data(), &code), cl_.release_memory}});
      demand(code);
    };
    for (const Argument& argument : task.arguments) {
      if (argument.role == ArgumentRole::scalar) continue;
      std::size_t count = 1;
      for (const std::string& extent : argument.shape)
        count *= static_cast<std::size_t>(evaluate_expression(extent, size.symbols));
      add(argument.name, count, argument.role != ArgumentRole::output, argument.role != ArgumentRole::input);
    }
    for (const ScratchBuffer& scratch : plan.scratch)
      add(scratch.name, static_cast<std::size_t>(scratch.bytes()) / 4, false, false);
    return memory;
  }

  void run(const Launch& launch, const std::vector<Memory>& memory, void* program, void* queue) const {
    opencl::Code code = 0;
    const Owned kernel{cl_.kernel(program, launch.entry.c_str(), &code), cl_.release_kernel};
    demand(code);
    opencl::Word index = 0;
    for (const LaunchArgument& argument : launch.arguments) {
      if (argument.kind == LaunchArgument::Kind::buffer) {
        const auto one = std::find_if(memory.begin(), memory.end(),
                                      [&](const Memory& other) { return other.name == argument.name; });
        void* const handle = one->handle.get();
        demand(cl_.argument(kernel.get(), index++, sizeof handle, &handle));
      } else {
        const auto integer = static_cast<std::int32_t>(argument.integer);
        const auto real = static_cast<float>(argument.real);
        const void* const value = is_floating(argument.type) ? static_cast<const void*>(&real) : &integer;
        demand(cl_.argument(kernel.get(), index++, 4, value));
      }
    }
    std::array<std::size_t, 3> global{}, local{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      local[axis] = static_cast<std::size_t>(launch.block[axis]);
      global[axis] = static_cast<std::size_t>(launch.grid[axis]) * local[axis];
    }
    demand(cl_.launch(queue, kernel.get(), 3, nullptr, global.data(), local.data(), 0, nullptr, nullptr));
    demand(cl_.finish(queue));
  }

  opencl::OpenCl cl_{};
  void* id_ = nullptr;
  Owned context_{nullptr, nullptr};
};

/// Largest difference between two kernels of a task over all sizes that are only checked, relative to the
/// largest result.
[[nodiscard]] inline double opencl_difference(const Task& task, const std::string& source) {
  double all = 0;
  for (const ProblemSize& size : task.sizes) {
    if (size.weight > 0) continue;
    const auto wanted = OpenClDevice::first()->results(task, task.kernel.source, size);
    const auto got = OpenClDevice::first()->results(task, source, size);
    double scale = 1e-30, worst = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      scale = std::max(scale, static_cast<double>(std::abs(wanted[i])));
      const double distance = std::abs(static_cast<double>(got[i]) - static_cast<double>(wanted[i]));
      worst = distance <= worst ? worst : distance; // a NaN is the worst of all
    }
    all = std::max(all, std::isnan(worst) ? std::numeric_limits<double>::infinity() : worst / scale);
  }
  return all;
}

/// The draft for an action on a kernel in OpenCL C, planned for a large GPU.
[[nodiscard]] inline Draft opencl_draft(const Task& task, const Kernel& kernel, std::string_view key,
                                        int sample = 0) {
  return draft_of(task, kernel, key, sample, find_device_preset("H100")->device);
}

} // namespace mtmc::testing
