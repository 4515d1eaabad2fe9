// expect: mtmc: a backend needs `std::vector<mtmc::Diagnostic> screen(const mtmc::Kernel&)` (it gives `{}` if there is nothing to look for)
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  void screen() = delete;
};
static_assert(mtmc::check_backend<Mine>());
