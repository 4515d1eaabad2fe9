// expect: constraints not satisfied
#include <mtmc/core/any.hpp>

#include "complete_backend.hpp"

struct NoBackend : CompleteBackend {
  bool run(Program&, const mtmc::LaunchPlan&, mtmc::Deadline);
};
mtmc::AnyBackend backend{NoBackend{}};
