// expect: mtmc: a backend needs `const mtmc::Device& device()`
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  void device() = delete;
};
static_assert(mtmc::check_backend<Mine>());
