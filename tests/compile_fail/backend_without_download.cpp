// expect: mtmc: a backend needs `void download(Buffer&, std::size_t offset, std::span<std::byte>)`
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  void download() = delete;
};
static_assert(mtmc::check_backend<Mine>());
