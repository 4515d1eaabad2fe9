#pragma once
/// The JSON form of `CudaBackendOptions`, as a worker is given it.

#include <mtmc/backend/cuda/options.hpp>
#include <mtmc/core/json_fields.hpp>

namespace mtmc::inline MTMC_ABI::detail {

/// Durations are in seconds; every field may be missing.
inline void visit_fields(JsonFields& visit, CudaBackendOptions& noun) {
  const CudaBackendOptions defaults;
  visit.optional("device", noun.device, defaults.device);
  visit.optional("driver_library", noun.driver_library, defaults.driver_library);
  visit.optional("nvrtc_library", noun.nvrtc_library, defaults.nvrtc_library);
  visit.optional("toolkit_folder", noun.toolkit_folder, defaults.toolkit_folder);
  visit.optional("flags", noun.flags, defaults.flags);
  visit_seconds(visit, "compile_seconds", noun.compile_timeout, defaults.compile_timeout);
  visit.optional("compile_memory_bytes", noun.compile_memory_bytes, defaults.compile_memory_bytes);
  visit.optional("parallel_compiles", noun.parallel_compiles, defaults.parallel_compiles);
  visit.optional("compiler_command", noun.compiler_command, defaults.compiler_command);
  visit.optional("temporary_folder", noun.temporary_folder, defaults.temporary_folder);
  visit.optional("device_lock_folder", noun.device_lock_folder, defaults.device_lock_folder);
  visit.optional("expendable_process", noun.expendable_process, defaults.expendable_process);
  visit.no_others();
}

} // namespace mtmc::detail
