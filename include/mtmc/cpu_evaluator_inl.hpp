#pragma once
/// Definitions of cpu_evaluator.hpp.

#include <mtmc/backend/cpu.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/cpu_evaluator.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <utility>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE CpuEvaluator::CpuEvaluator(CpuBackendOptions backend, KernelEvaluatorOptions options)
    : evaluator_(kernel_evaluator(CpuBackend{std::move(backend)}, options)) {}

} // namespace mtmc
