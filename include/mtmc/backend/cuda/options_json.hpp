#pragma once
/// The JSON form of `CudaBackendOptions`, as a worker is given it.

#include <mtmc/backend/cuda/options.hpp>
#include <mtmc/core/json_fields.hpp>

#include <chrono>
#include <cstdint>

namespace mtmc::detail {

/// Durations are in seconds; every field may be missing.
inline void visit_fields(JsonFields& visit, CudaBackendOptions& noun) {
  const CudaBackendOptions defaults;
  visit.optional("device", noun.device, defaults.device);
  visit.optional("driver_library", noun.driver_library, defaults.driver_library);
  visit.optional("nvrtc_library", noun.nvrtc_library, defaults.nvrtc_library);
  visit.optional("toolkit_folder", noun.toolkit_folder, defaults.toolkit_folder);
  visit.optional("flags", noun.flags, defaults.flags);
  const auto timeout = static_cast<double>(noun.compile_timeout.count()) / 1e3;
  auto seconds = timeout;
  visit.optional("compile_seconds", seconds, static_cast<double>(defaults.compile_timeout.count()) / 1e3);
  // Writing must not write to the noun, which others may be reading.
  constexpr double longest = 1e9;
  if (seconds != timeout)
    noun.compile_timeout = std::chrono::milliseconds(
        static_cast<std::int64_t>(1e3 * (seconds > 0 && seconds < longest ? seconds : longest)));
  visit.optional("device_lock_folder", noun.device_lock_folder, defaults.device_lock_folder);
  visit.no_others();
}

} // namespace mtmc::detail
