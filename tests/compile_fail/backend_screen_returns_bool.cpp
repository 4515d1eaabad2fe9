// expect: mtmc: a backend needs `std::vector<mtmc::Diagnostic> screen(const mtmc::Kernel&)`
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  bool screen(const mtmc::Kernel&);
};
static_assert(mtmc::check_backend<Mine>());
