#pragma once
/// Definitions of evaluator/worker_entry.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/worker_entry.hpp>
#include <mtmc/evaluator/worker_service.hpp>

namespace mtmc {

MTMC_INLINE std::optional<int> run_as_worker(int argc, const char* const* argv,
                                             const WorkerBackends& backends) {
  if (argc < 2 || argv == nullptr || argv[1] == nullptr || worker_argument != argv[1]) {
    detail::opted_in_as_worker() = true;
    return std::nullopt;
  }
  return detail::serve_as_worker(backends);
}

} // namespace mtmc
