// expect: mtmc: a backend needs a movable member type `Buffer` that frees its memory
#include "complete_backend.hpp"

struct Mine : CompleteBackend {
  struct Buffer {
    Buffer(Buffer&&) = delete;
  };
};
static_assert(mtmc::check_backend<Mine>());
