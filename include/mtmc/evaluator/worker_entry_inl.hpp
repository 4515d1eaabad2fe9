#pragma once
/// Definitions of evaluator/worker_entry.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/worker/worker_service.hpp>
#include <mtmc/evaluator/worker_entry.hpp>
#include <mtmc/support/program_roles.hpp>

#include <optional>
#include <vector>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::optional<int> run_as_worker(int argc, const char* const* argv,
                                             const WorkerBackends& backends) {
  std::vector<ProgramRole> roles;
  for (const auto& backend : backends.entries)
    roles.insert(roles.end(), backend.roles.begin(), backend.roles.end());
  if (int code = 0; detail::play_role(argc, argv, roles, code)) return code;
  if (argc < 2 || argv == nullptr || argv[1] == nullptr || worker_argument != argv[1]) {
    detail::opted_in_as_worker() = true;
    return std::nullopt;
  }
  return detail::serve_as_worker(backends);
}

} // namespace mtmc
