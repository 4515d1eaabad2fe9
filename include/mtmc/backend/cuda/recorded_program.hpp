#pragma once
/// The binaries of a recorded call as a program of the CUDA backend.

#include <mtmc/backend/cuda/cubin_screen.hpp>
#include <mtmc/backend/cuda/cuda_backend.hpp>
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/backend/cuda/kernel_text.hpp>
#include <mtmc/backend/launch_check.hpp>
#include <mtmc/backend/python/recorded_launches.hpp>
#include <mtmc/support/elf.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What a parameter of a Triton kernel takes. Truth is a byte; Python's floating-point numbers come as 32
/// bits.
[[nodiscard]] inline CudaParameter cuda_parameter_of(std::string_view type) {
  constexpr std::pair<std::string_view, CudaParameter> types[] = {
      {"i1", CudaParameter::u8},   {"u1", CudaParameter::u8},   {"i8", CudaParameter::i8},
      {"u8", CudaParameter::u8},   {"i16", CudaParameter::i16}, {"u16", CudaParameter::u16},
      {"i32", CudaParameter::i32}, {"u32", CudaParameter::u32}, {"i64", CudaParameter::i64},
      {"u64", CudaParameter::u64}, {"fp64", CudaParameter::f64}};
  for (const auto& [name, parameter] : types)
    if (name == type) return parameter;
  return type.starts_with('*') ? CudaParameter::pointer : CudaParameter::f32;
}

/// Whether an argument is a pointer that is null, which is passed as a number.
[[nodiscard]] inline bool is_null_pointer(const LaunchArgument& argument, std::string_view type) {
  return type.starts_with('*') && argument.kind == LaunchArgument::Kind::scalar;
}

/// Entries in the order of the launches, each binary once.
[[nodiscard]] inline CudaCompilation
compilation_of(const RecordedPlan& plan, const RecordedLaunches& launches,
               std::span<const std::shared_ptr<const LoweredKernel>> lowered) {
  CudaCompilation compilation;
  compilation.signatures = signatures_of(launches.plan);
  std::map<std::size_t, std::size_t> binary_of; // by the kernel's number in the plan
  for (std::size_t i = 0; i < launches.plan.launches.size(); ++i) {
    const auto number = launches.kernels[i];
    const auto& binary = *lowered[number];
    const auto [found, fresh] = binary_of.emplace(number, binary_of.size());
    if (fresh) {
      CudaBinary made{binary.cubin, {}};
      if (const auto file = read_elf(binary.cubin)) made.variables = lasting_variables(*file);
      if (found->second == 0) {
        compilation.cubin = std::move(made.cubin);
        compilation.variables = std::move(made.variables);
      } else {
        compilation.further.push_back(std::move(made));
      }
    }
    CudaEntry entry;
    entry.name = binary.entry;
    entry.binary = found->second;
    const auto& arguments = launches.plan.launches[i].arguments;
    for (const auto& parameter : plan.kernels[number].parameters) {
      if (parameter.type == "constexpr") continue;
      entry.parameters.push_back(is_null_pointer(arguments[entry.parameters.size()], parameter.type)
                                     ? CudaParameter::u64
                                     : cuda_parameter_of(parameter.type));
    }
    // Triton's two pointers to scratch memory, both null.
    entry.parameters.insert(entry.parameters.end(), 2, CudaParameter::u64);
    compilation.entries.push_back(std::move(entry));
  }
  return compilation;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

/// Loads the kernels of a recorded call (`recorded_launches`), which were lowered for this device; its plan
/// is then run and timed like any other. Throws and refuses as `CudaBackend::load_compiled`.
[[nodiscard]] inline CompileResult<CudaBackend::Program>
load_recorded(const CudaBackend& backend, const RecordedPlan& plan, const RecordedLaunches& launches,
              std::span<const std::shared_ptr<const LoweredKernel>> lowered) {
  return backend.load_compiled(detail::compilation_of(plan, launches, lowered), launches.plan);
}

} // namespace mtmc
