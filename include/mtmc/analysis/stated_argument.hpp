#pragma once
/// A task's argument as somebody stated it, before the kernel's signature completes it.

#include <mtmc/core/task.hpp>

namespace mtmc::inline MTMC_ABI {

/// An argument as a host or task file stated it; what is missing is read from the signature.
struct StatedArgument {
  Argument argument;     ///< what was stated; the rest are defaults
  bool has_role = false; ///< the role was stated
  bool has_type = false; ///< the data type was stated
};

} // namespace mtmc
