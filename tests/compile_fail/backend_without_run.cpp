// expect: mtmc: a backend needs `mtmc::RunStatus run(Program&, const mtmc::LaunchPlan&, mtmc::Deadline)`
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  void run() = delete;
};
static_assert(mtmc::check_backend<Mine>());
