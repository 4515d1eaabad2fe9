// expect: mtmc: a backend needs `Buffer allocate(std::size_t bytes)`
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  Buffer* allocate(std::size_t bytes);
};
static_assert(mtmc::check_backend<Mine>());
