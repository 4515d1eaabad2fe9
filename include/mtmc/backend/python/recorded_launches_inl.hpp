#pragma once
/// Definitions of backend/python/recorded_launches.hpp.

#include <mtmc/backend/python/check_recorded_plan.hpp>
#include <mtmc/backend/python/launcher_memory.hpp>
#include <mtmc/backend/python/recorded_launches.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/data_type.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Goes through the steps of a call and writes down its launches.
class RecordedLaunchWriter {
public:
  RecordedLaunchWriter(const RecordedPlan& plan,
                       std::span<const std::shared_ptr<const LoweredKernel>> lowered)
      : plan_(plan), lowered_(lowered) {}

  [[nodiscard]] RecordedLaunches run(std::span<const RecordedBuffer> inputs) {
    name_inputs(inputs);
    for (const auto& step : plan_.phases.forward) {
      if (result_.refused) break;
      line_ = step.line;
      if (step.operation)
        refuse("the operator " + step.operation->name + " remains, and a judge of kernels runs nothing else",
               "Compute it in a kernel, or judge the module with the operators of the library");
      if (step.fill) note(*step.fill);
      if (step.launch) add(*step.launch);
    }
    if (!result_.refused && !zeroed_.empty())
      refuse("memory is filled, and no kernel is launched that uses it", "Fill results in a kernel");
    for (const auto& output : plan_.outputs)
      if (!result_.refused && (!buffers_.contains(output.storage) || !buffers_.at(output.storage).view))
        refuse(
            "the call gives a tensor that is none of its inputs, so that nobody could read it",
            "Record a function that is given the tensors for its results (RecordingRequest::Role::function)");
    return std::move(result_);
  }

private:
  struct Buffer {
    std::string name;
    bool writable = true;
    /// Of an input.
    std::optional<RecordedView> view{};
  };

  void refuse(std::string message, std::string remedy) {
    if (!result_.refused)
      result_.refused = Diagnostic{Severity::error, line_, 0, std::move(message), std::move(remedy), {}};
  }

  [[nodiscard]] const RecordedStorage& storage(int number) const {
    return plan_.storages[static_cast<std::size_t>(number)];
  }

  void name_inputs(std::span<const RecordedBuffer> inputs) {
    if (inputs.size() != plan_.inputs.size())
      return refuse("the call has " + std::to_string(plan_.inputs.size()) + " inputs, and " +
                        std::to_string(inputs.size()) + " are named",
                    "Name each of them, numbers too");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto& value = plan_.inputs[i];
      if (value.kind != RecordedValue::Kind::tensor) continue;
      const auto bytes = recorded_extent_bytes(value.tensor);
      if (value.tensor.offset != 0 || bytes != storage(value.tensor.storage).bytes)
        refuse("the input `" + inputs[i].name + "` is a part of its memory",
               "Call the module with whole tensors");
      if (!buffers_.emplace(value.tensor.storage, Buffer{inputs[i].name, inputs[i].writable, value.tensor})
               .second)
        refuse("two inputs share their memory", "Call the module with a tensor of its own for each argument");
    }
  }

  void note(const RecordedFill& fill) {
    const auto& value = fill.value;
    const bool zero = value.kind == RecordedValue::Kind::real ? value.real == 0 && !std::signbit(value.real)
                                                              : value.integer == 0;
    if (!zero)
      return refuse("memory is filled with another value than zero",
                    "Fill it in the kernel that needs it, or begin with zeros");
    if (fill.view.offset != 0 || recorded_extent_bytes(fill.view) != storage(fill.view.storage).bytes)
      return refuse("a part of a tensor is filled with zeros",
                    "Fill the whole tensor, or the part in a kernel");
    zeroed_.insert(fill.view.storage);
  }

  Buffer& buffer(int number) {
    const auto [found, fresh] = buffers_.try_emplace(number);
    if (fresh) {
      found->second.name = "temporary_" + std::to_string(result_.plan.scratch.size());
      for (const auto& weight : plan_.weights)
        if (weight.view.storage == number)
          refuse("a kernel is passed the weight `" + weight.name + "`, and no buffer is it",
                 "Record a function that is given its weights (RecordingRequest::Role::function)");
      if (!storage(number).content.empty())
        refuse("a kernel reads numbers that the module's text lists",
               "Compute them in the kernel, or pass them as numbers");
      ScratchBuffer scratch;
      scratch.name = found->second.name;
      scratch.type = DataType::u8;
      scratch.extents = {std::max<std::int64_t>(storage(number).bytes, 1)};
      result_.plan.scratch.push_back(std::move(scratch));
    }
    return found->second;
  }

  void add(const RecordedLaunch& recorded) {
    if (std::find(recorded.grid.begin(), recorded.grid.end(), 0) != recorded.grid.end()) return;
    const auto number = static_cast<std::size_t>(recorded.kernel);
    const auto& kernel = plan_.kernels[number];
    if (number >= lowered_.size() || lowered_[number] == nullptr)
      return refuse("the kernel " + kernel.name + " has not been lowered",
                    "Lower every kernel of the plan first");
    const auto& binary = *lowered_[number];
    constexpr std::size_t digits = 12;
    Launch launch;
    launch.entry = kernel.name + '@' + kernel.id().substr(0, digits);
    launch.grid = recorded.grid;
    launch.cluster = binary.cluster;
    // Triton counts programs; a program of several blocks has them along x.
    launch.grid[0] *= binary.cluster[0] * binary.cluster[1] * binary.cluster[2];
    launch.block = {binary.threads, 1, 1};
    launch.shared_bytes = binary.shared_bytes;
    launch.line = line_;
    std::size_t next = 0;
    for (const auto& parameter : kernel.parameters)
      if (parameter.type != "constexpr")
        launch.arguments.push_back(argument(recorded.arguments[next++], parameter));
    if (recorded.memory >= 0) {
      RecordedArgument pointer{.kind = RecordedArgument::Kind::pointer, .storage = recorded.memory};
      launch.arguments.push_back(argument(pointer, {.name = "global_scratch", .type = "*i8"}));
    } else {
      launch.arguments.push_back(number_argument("global_scratch", 0));
    }
    launch.arguments.push_back(number_argument("profile_scratch", 0));
    result_.plan.launches.push_back(std::move(launch));
    result_.kernels.push_back(number);
  }

  [[nodiscard]] static LaunchArgument number_argument(std::string name, std::int64_t value) {
    LaunchArgument argument;
    argument.kind = LaunchArgument::Kind::scalar;
    argument.name = std::move(name);
    argument.type = DataType::i64;
    argument.integer = value;
    return argument;
  }

  /// Of an element that a Triton pointer points to.
  [[nodiscard]] static DataType element_of(std::string_view pointer) {
    constexpr std::pair<std::string_view, DataType> types[] = {
        {"*fp64", DataType::f64},  {"*fp32", DataType::f32}, {"*fp16", DataType::f16},
        {"*bf16", DataType::bf16}, {"*i64", DataType::i64},  {"*i32", DataType::i32},
        {"*i16", DataType::i16},   {"*i8", DataType::i8},    {"*u64", DataType::u64},
        {"*u32", DataType::u32},   {"*u16", DataType::u16}};
    for (const auto& [name, type] : types)
      if (name == pointer) return type;
    return DataType::u8;
  }

  [[nodiscard]] LaunchArgument argument(const RecordedArgument& recorded, const KernelParameter& parameter) {
    if (recorded.kind == RecordedArgument::Kind::integer)
      return number_argument(parameter.name, recorded.integer);
    LaunchArgument argument;
    if (recorded.kind == RecordedArgument::Kind::real) {
      argument.kind = LaunchArgument::Kind::scalar;
      argument.name = parameter.name;
      argument.type = parameter.type == "fp64" ? DataType::f64 : DataType::f32;
      argument.real = recorded.real;
      return argument;
    }
    const auto& memory = buffer(recorded.storage);
    argument.kind = LaunchArgument::Kind::buffer;
    argument.name = memory.name;
    argument.type = memory.view ? element_of(parameter.type) : DataType::u8;
    argument.writable = memory.writable;
    argument.byte_offset = recorded.offset;
    argument.extents =
        memory.view ? memory.view->sizes
                    : std::vector<std::int64_t>{std::max<std::int64_t>(storage(recorded.storage).bytes, 1)};
    argument.zeroed = zeroed_.erase(recorded.storage) > 0;
    return argument;
  }

  const RecordedPlan& plan_;
  std::span<const std::shared_ptr<const LoweredKernel>> lowered_;
  std::map<int, Buffer> buffers_;
  /// Storages that are filled with zeros, and not yet passed to a launch.
  std::set<int> zeroed_;
  int line_ = 0;
  RecordedLaunches result_;
};

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE RecordedLaunches recorded_launches(const RecordedPlan& plan,
                                               std::span<const std::shared_ptr<const LoweredKernel>> lowered,
                                               std::span<const RecordedBuffer> inputs) {
  const auto whole = with_launcher_memory(plan, lowered);
  return detail::RecordedLaunchWriter(whole, lowered).run(inputs);
}

} // namespace mtmc
