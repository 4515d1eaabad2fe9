// expect: mtmc: a backend needs `mtmc::CompileResult<Program> compile(const mtmc::Kernel&,
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  Program compile(const mtmc::Kernel&, const mtmc::CompileOptions&, std::stop_token);
};
static_assert(mtmc::check_backend<Mine>());
