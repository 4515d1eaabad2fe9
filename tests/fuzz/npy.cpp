// The beginning of an `.npy` file.
#include <mtmc/support/npy.hpp>

#include "target.hpp"

namespace mtmc_fuzz {

void npy(std::string_view input) {
  mtmc::NpyHeader header;
  try {
    header = mtmc::parse_npy_header(input);
  } catch (const mtmc::NpyError& error) {
    require(!error.remedy().empty(), "an error says what to do");
    return;
  }
  std::uint64_t bytes = header.width;
  for (const auto extent : header.shape) {
    require(extent >= 0, "no extent is negative");
    bytes *= static_cast<std::uint64_t>(extent);
  }
  require(bytes == header.bytes, "the elements take up as much as shape and type say");
  require(header.offset <= input.size(), "the elements begin behind the header");
}

} // namespace mtmc_fuzz
