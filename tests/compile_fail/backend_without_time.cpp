// expect: mtmc: a backend needs `mtmc::TimedRun time(Program&, std::span<const mtmc::LaunchPlan> group,
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  void time() = delete;
};
static_assert(mtmc::check_backend<Mine>());
