#pragma once
/// Definitions of evaluator/kernel_evaluator.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/evaluator/protocol/trust_protocol.hpp>

#include <utility>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE AnyEvaluator kernel_evaluator(AnyBackend backend, KernelEvaluatorOptions options) {
  return detail::TrustProtocol{std::move(backend), options};
}

} // namespace mtmc
