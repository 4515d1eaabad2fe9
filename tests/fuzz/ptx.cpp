// PTX, which holds what a kernel says in inline assembly.
#include <mtmc/backend/cuda/ptx_screen.hpp>

#include "target.hpp"

namespace mtmc_fuzz {

void ptx(std::string_view input) {
  const mtmc::detail::PtxVariables variables(input);
  for (const char* const name : {"state", "table", "a", "b", "c"})
    require(!variables.may_change(name) || variables.knows(name), "what may change is a variable");
}

} // namespace mtmc_fuzz
