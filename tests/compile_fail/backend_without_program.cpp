// expect: mtmc: a backend needs a member type `Program`, what `compile` makes
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
private:
  using Program = int;
};
static_assert(mtmc::check_backend<Mine>());
