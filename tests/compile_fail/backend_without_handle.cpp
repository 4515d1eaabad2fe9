// expect: mtmc: a backend's `Buffer` needs `std::uint64_t handle() const`
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  struct Buffer {};
};
static_assert(mtmc::check_backend<Mine>());
