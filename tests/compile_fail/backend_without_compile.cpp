// expect: mtmc: a backend needs `mtmc::CompileResult<Program> compile(const mtmc::Kernel&,
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  void compile() = delete;
};
static_assert(mtmc::check_backend<Mine>());
