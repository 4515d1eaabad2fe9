#pragma once
/// Definitions of evaluator/content/content_place.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/content/content_place.hpp>
#include <mtmc/evaluator/content/device_content.hpp>
#include <mtmc/evaluator/content/host_content.hpp>

#include <memory>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::unique_ptr<ContentWork> content_work_on(AnyBackend& backend, SecretKeys& keys) {
  if (runs_judge_kernels(backend)) return std::make_unique<detail::DeviceContent>(backend, keys);
  return std::make_unique<detail::HostContent>(backend);
}

} // namespace mtmc
