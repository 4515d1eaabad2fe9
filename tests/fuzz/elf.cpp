// Object files and CUBINs.
#include <mtmc/backend/cpu/object_screen.hpp>
#include <mtmc/backend/cuda/cubin_screen.hpp>
#include <mtmc/support/elf.hpp>

#include "target.hpp"

namespace mtmc_fuzz {

void elf(std::string_view input) {
  const auto file = mtmc::read_elf(input);
  const auto of_object = mtmc::detail::screen_object(input);
  const auto of_cubin = mtmc::detail::screen_cubin(input, ".version 8.0\n.global .u32 state;\n", "");
  if (!file) {
    require(!of_object.empty() && !of_cubin.empty(), "what is no ELF file is refused");
    return;
  }
  for (const auto& symbol : file->symbols) (void)file->section_of(symbol);
}

} // namespace mtmc_fuzz
