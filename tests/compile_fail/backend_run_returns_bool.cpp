// expect: mtmc: a backend needs `mtmc::RunStatus run(Program&, const mtmc::LaunchPlan&, mtmc::Deadline)`
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  bool run(Program&, const mtmc::LaunchPlan&, mtmc::Deadline);
};
static_assert(mtmc::check_backend<Mine>());
