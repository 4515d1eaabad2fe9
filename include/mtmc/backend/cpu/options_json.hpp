#pragma once
/// The JSON form of `CpuBackendOptions`, as a worker is given it.

#include <mtmc/backend/cpu/options.hpp>
#include <mtmc/core/json_fields.hpp>

namespace mtmc::inline MTMC_ABI::detail {

/// Durations are in seconds; every field may be missing. `defences` have no JSON form, so that no file can
/// take one off.
inline void visit_fields(JsonFields& visit, CpuBackendOptions& noun) {
  const CpuBackendOptions defaults;
  visit.optional("compiler", noun.compiler, defaults.compiler);
  visit.optional("flags", noun.flags, defaults.flags);
  visit.optional("extra_flags", noun.extra_flags, defaults.extra_flags);
  visit.optional("search_path", noun.search_path, defaults.search_path);
  visit.optional("threads", noun.threads, defaults.threads);
  visit.optional("kernel_environment", noun.kernel_environment, defaults.kernel_environment);
  visit_seconds(visit, "compile_seconds", noun.compile_timeout, defaults.compile_timeout);
  visit.optional("compiler_memory_limit", noun.compiler_memory_limit, defaults.compiler_memory_limit);
  visit.optional("kernel_memory_limit", noun.kernel_memory_limit, defaults.kernel_memory_limit);
  visit.optional("temporary_folder", noun.temporary_folder, defaults.temporary_folder);
  visit.optional("cache_folder", noun.cache_folder, defaults.cache_folder);
  visit.optional("device_lock_folder", noun.device_lock_folder, defaults.device_lock_folder);
  visit.optional("allowed_headers", noun.allowed_headers, defaults.allowed_headers);
  visit.optional("allowed_functions", noun.allowed_functions, defaults.allowed_functions);
  visit.optional("compiler_folders", noun.compiler_folders, defaults.compiler_folders);
  visit.optional("reserved_bytes", noun.reserved_bytes, defaults.reserved_bytes);
  visit.optional("cached_programs", noun.cached_programs, defaults.cached_programs);
  visit.no_others();
}

} // namespace mtmc::detail
