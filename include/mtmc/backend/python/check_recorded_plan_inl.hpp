#pragma once
/// Definitions of backend/python/check_recorded_plan.hpp.

#include <mtmc/backend/python/check_recorded_plan.hpp>
#include <mtmc/backend/python/python_failure.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Looks at a plan part by part, and keeps the first thing that is wrong.
class RecordedPlanCheck {
public:
  RecordedPlanCheck(const RecordedPlan& plan, const RecordedPlanLimits& limits)
      : plan_(plan), limits_(limits) {}

  [[nodiscard]] std::optional<Diagnostic> run() {
    storages();
    for (const auto& kernel : plan_.kernels) look_at(kernel);
    if (plan_.kernels.size() > limits_.max_kernels)
      wrong("more kernels than " + std::to_string(limits_.max_kernels));
    if (plan_.phases.inputs.size() + plan_.phases.setup.size() + plan_.phases.forward.size() >
        limits_.max_steps)
      wrong("more steps than " + std::to_string(limits_.max_steps));
    for (const auto* const phase : {&plan_.phases.inputs, &plan_.phases.setup, &plan_.phases.forward})
      for (const auto& step : *phase) look_at(step);
    line_ = 0;
    for (const auto& weight : plan_.weights) {
      look_at(weight.view, "the weight " + weight.name);
      if (!is_name(weight.name, "._")) wrong("a weight's name is none");
    }
    for (const auto* const values : {&plan_.constructor, &plan_.inputs})
      for (const auto& value : *values) look_at(value, 0);
    for (const auto& view : plan_.outputs) look_at(view, "an output");
    for (const auto& choice : plan_.choices)
      if (!is_name(choice.kernel, "_") || choice.configurations < 1 || choice.chosen < 0 ||
          choice.chosen >= choice.configurations)
        wrong("a choice among configurations is none of them");
    return found_;
  }

private:
  void wrong(const std::string& what) {
    if (found_) return;
    found_ = Diagnostic{Severity::error,
                        line_,
                        0,
                        harmless("the recording is unsound: " + what, 500),
                        "Write a module that PyTorch can run; a recording is made by the recorder alone",
                        {}};
  }

  [[nodiscard]] static bool is_name(std::string_view name, std::string_view others) {
    constexpr std::size_t longest = 1000;
    return !name.empty() && name.size() <= longest && (name[0] < '0' || name[0] > '9') &&
           std::all_of(name.begin(), name.end(), [&](char c) {
             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    others.find(c) != std::string_view::npos;
           });
  }

  void storages() {
    if (plan_.storages.size() > limits_.max_storages)
      wrong("more storages than " + std::to_string(limits_.max_storages));
    std::int64_t left = limits_.max_bytes;
    for (const auto& storage : plan_.storages) {
      if (storage.bytes < 0 || storage.bytes > left)
        return wrong("its storages take up more than " + std::to_string(limits_.max_bytes) +
                     " bytes, or less than none");
      left -= storage.bytes;
      const auto digits = storage.content.size();
      const bool hexadecimal = std::all_of(storage.content.begin(), storage.content.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      });
      if (digits % 2 != 0 || !hexadecimal || digits / 2 > static_cast<std::uint64_t>(storage.bytes))
        wrong("a storage's content does not fit into it");
    }
  }

  void look_at(const RecordedKernel& kernel) {
    line_ = kernel.line;
    if (!is_name(kernel.name, "_")) wrong("a kernel's name is none");
    if (kernel.ir.empty() || kernel.ir.size() > limits_.max_ir_bytes)
      wrong("the kernel " + kernel.name + " has no IR, or too much of it");
    constexpr std::array<std::string_view, 7> known{
        "num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_cooperative_grid",
        "launch_pdl"};
    constexpr std::int64_t most = 65536;
    for (const auto& [option, value] : kernel.options)
      if (std::find(known.begin(), known.end(), option) == known.end() || value < 0 || value > most)
        wrong("the kernel " + kernel.name + " has the option " + option + " = " + std::to_string(value));
    for (const auto& parameter : kernel.parameters)
      if (!is_name(parameter.name, "_") || !kind_of(parameter.type))
        wrong("the parameter `" + parameter.name + "` of " + kernel.name + " has the type " + parameter.type);
    if (line_ < 0) wrong("a line is negative");
  }

  /// What is passed for a parameter; a constant, for which nothing is, counts as an integer.
  [[nodiscard]] static std::optional<RecordedArgument::Kind> kind_of(std::string_view type) {
    using enum RecordedArgument::Kind;
    if (type.starts_with('*')) return is_name(type.substr(1), "*") ? std::optional(pointer) : std::nullopt;
    constexpr std::string_view integers[] = {"i1", "i8",  "i16", "i32", "i64",      "u1",
                                             "u8", "u16", "u32", "u64", "constexpr"};
    constexpr std::string_view reals[] = {"fp16", "bf16", "fp32", "fp64"};
    if (std::find(std::begin(integers), std::end(integers), type) != std::end(integers)) return integer;
    if (std::find(std::begin(reals), std::end(reals), type) != std::end(reals)) return real;
    return std::nullopt;
  }

  void look_at(const RecordedStep& step) {
    line_ = step.line;
    if (line_ < 0) wrong("a line is negative");
    if (static_cast<int>(step.launch.has_value()) + static_cast<int>(step.fill.has_value()) +
            static_cast<int>(step.operation.has_value()) !=
        1)
      wrong("a step is not exactly one of launch, fill and operation");
    if (step.launch) look_at(*step.launch);
    if (step.fill) {
      using enum RecordedValue::Kind;
      look_at(step.fill->view, "a fill");
      const auto kind = step.fill->value.kind;
      if (kind != boolean && kind != integer && kind != real) wrong("a fill's value is no number");
    }
    if (!step.operation) return;
    if (!is_name(step.operation->name, "._:")) wrong("an operator's name is none");
    for (const auto& value : step.operation->arguments) look_at(value, 0);
    for (const auto& [name, value] : step.operation->named) {
      if (!is_name(name, "_")) wrong("an argument's name is none");
      look_at(value, 0);
    }
    for (const auto& view : step.operation->outputs) look_at(view, "an output of " + step.operation->name);
  }

  void look_at(const RecordedLaunch& launch) {
    constexpr std::array<std::int64_t, 3> most{2147483647, 65535, 65535};
    if (launch.kernel < 0 || static_cast<std::size_t>(launch.kernel) >= plan_.kernels.size())
      return wrong("a launch names a kernel that is not there");
    const auto& kernel = plan_.kernels[static_cast<std::size_t>(launch.kernel)];
    for (std::size_t axis = 0; axis < most.size(); ++axis)
      if (launch.grid[axis] < 0 || launch.grid[axis] > most[axis])
        wrong("the grid of " + kernel.name + " has " + std::to_string(launch.grid[axis]) +
              " programs along axis " + std::to_string(axis) + "; at most " + std::to_string(most[axis]) +
              " can be launched");
    if (launch.memory != -1) wrong("a launch of " + kernel.name + " names memory of its launcher");
    std::size_t next = 0;
    for (const auto& parameter : kernel.parameters) {
      if (parameter.type == "constexpr") continue;
      if (next == launch.arguments.size())
        return wrong("a launch of " + kernel.name + " passes too few arguments");
      look_at(launch.arguments[next++], parameter, kernel);
    }
    if (next != launch.arguments.size()) wrong("a launch of " + kernel.name + " passes too many arguments");
  }

  void look_at(const RecordedArgument& argument, const KernelParameter& parameter,
               const RecordedKernel& kernel) {
    using enum RecordedArgument::Kind;
    const bool null = argument.kind == integer && argument.integer == 0;
    if (kind_of(parameter.type) != argument.kind && !(parameter.type.starts_with('*') && null))
      return wrong("a launch of " + kernel.name + " passes something else than " + parameter.type + " for `" +
                   parameter.name + '`');
    if (argument.kind == pointer) inside(argument.storage, argument.offset, 0, "a pointer");
    if (argument.kind == integer && !fits(argument.integer, parameter.type))
      wrong("a launch of " + kernel.name + " passes " + std::to_string(argument.integer) + " for `" +
            parameter.name + "`, which is " + parameter.type);
  }

  [[nodiscard]] static bool fits(std::int64_t value, std::string_view type) {
    if (type.starts_with('*')) return value == 0;
    const auto bits = type.substr(1);
    if (bits == "64") return true; // unsigned ones come as their two's complement
    const int width = bits == "1" ? 1 : bits == "8" ? 8 : bits == "16" ? 16 : 32;
    // Triton passes truth as i1, and what does not fit is an error of its own.
    if (width == 1) return value == 0 || value == 1;
    const auto range = std::int64_t{1} << width;
    return type.starts_with('i') ? value >= -(range / 2) && value < range / 2 : value >= 0 && value < range;
  }

  void look_at(const RecordedValue& value, int depth) {
    constexpr int deepest = 20;
    if (depth > deepest) return wrong("lists lie too deep within each other");
    if (value.kind == RecordedValue::Kind::tensor) look_at(value.tensor, "an argument");
    if (value.kind == RecordedValue::Kind::type && !recorded_type_bytes(value.text))
      wrong("a type is unknown");
    for (const auto& part : value.list) look_at(part, depth + 1);
  }

  void look_at(const RecordedView& view, const std::string& what) {
    const auto bytes = recorded_extent_bytes(view);
    if (!bytes) return wrong(what + " has extents, strides or a type that no tensor has");
    if (view.offset % *recorded_type_bytes(view.type) != 0) return wrong(what + " lies between two elements");
    inside(view.storage, view.offset, *bytes, what);
  }

  void inside(int storage, std::int64_t offset, std::int64_t bytes, const std::string& what) {
    if (storage < 0 || static_cast<std::size_t>(storage) >= plan_.storages.size())
      return wrong(what + " lies in a storage that is not there");
    const auto whole = plan_.storages[static_cast<std::size_t>(storage)].bytes;
    if (offset < 0 || offset > whole || bytes > whole - offset)
      wrong(what + " reaches beyond its storage: " + std::to_string(bytes) + " bytes from " +
            std::to_string(offset) + " of " + std::to_string(whole));
  }

  const RecordedPlan& plan_;
  const RecordedPlanLimits& limits_;
  int line_ = 0;
  std::optional<Diagnostic> found_;
};

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::optional<std::int64_t> recorded_extent_bytes(const RecordedView& view) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 48;
  constexpr std::size_t most_axes = 64;
  const auto element = recorded_type_bytes(view.type);
  if (!element || view.sizes.size() != view.strides.size() || view.sizes.size() > most_axes)
    return std::nullopt;
  std::int64_t last = 0;
  std::int64_t elements = 1; // of the axes that are not empty: nobody's product passes it
  bool empty = false;
  for (std::size_t axis = 0; axis < view.sizes.size(); ++axis) {
    const auto size = view.sizes[axis];
    const auto stride = view.strides[axis];
    if (size < 0 || stride < 0 || stride > most) return std::nullopt;
    if (size == 0) {
      empty = true;
      continue;
    }
    if (size > most / elements) return std::nullopt;
    elements *= size;
    if (size > 1 && stride > 0 && size - 1 > (most - last) / stride) return std::nullopt;
    last += (size - 1) * stride;
  }
  return empty ? 0 : (last + 1) * *element;
}

MTMC_INLINE std::optional<Diagnostic> check_recorded_plan(const RecordedPlan& plan,
                                                          const RecordedPlanLimits& limits) {
  return detail::RecordedPlanCheck(plan, limits).run();
}

MTMC_INLINE std::optional<Diagnostic> check_same_results(const RecordedPlan& problem,
                                                         const RecordedPlan& candidate) {
  const auto differs = [](const std::string& what) {
    return Diagnostic{
        Severity::error, 0, 0, what, "Give the tensors that the problem's call gives, in their order", {}};
  };
  const auto text_of = [](const RecordedView& view) {
    std::string text = view.type + '[';
    for (std::size_t axis = 0; axis < view.sizes.size(); ++axis)
      text += (axis == 0 ? "" : ", ") + std::to_string(view.sizes[axis]);
    return text + ']';
  };
  if (problem.outputs.size() != candidate.outputs.size())
    return differs("the call gives " + std::to_string(candidate.outputs.size()) +
                   " tensors, and the problem's " + std::to_string(problem.outputs.size()));
  for (std::size_t i = 0; i < problem.outputs.size(); ++i)
    if (problem.outputs[i].sizes != candidate.outputs[i].sizes ||
        problem.outputs[i].type != candidate.outputs[i].type)
      return differs("the call gives " + text_of(candidate.outputs[i]) + " as result " +
                     std::to_string(i + 1) + ", and the problem's " + text_of(problem.outputs[i]));
  return std::nullopt;
}

} // namespace mtmc
