#pragma once
/// Definitions of evaluator/worker_entry.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/worker/worker_service.hpp>
#include <mtmc/evaluator/worker_entry.hpp>
#include <mtmc/support/process/program_roles.hpp>

#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::vector<ProgramRole> worker_roles(const WorkerBackends& backends) {
  std::vector<ProgramRole> roles;
  for (const auto& backend : backends.entries)
    roles.insert(roles.end(), backend.roles.begin(), backend.roles.end());
  const auto serve = [backends, helpers = roles](const std::vector<std::string>&) {
    // A worker starts this program again for a part of its work.
    detail::offer_roles(helpers);
    return detail::serve_as_worker(backends);
  };
  roles.push_back({std::string(worker_argument), serve});
  return roles;
}

} // namespace mtmc
