// expect: mtmc: a backend needs `void upload(Buffer&, std::size_t offset, std::span<const std::byte>)`
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  void upload() = delete;
};
static_assert(mtmc::check_backend<Mine>());
