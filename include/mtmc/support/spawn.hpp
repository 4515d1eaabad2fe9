#pragma once
/// Moved to support/process/spawn.hpp: this place works until 0.3.

// clang-format off
#pragma message("mtmc/support/spawn.hpp is mtmc/support/process/spawn.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/support/process/spawn.hpp>
