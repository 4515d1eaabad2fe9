#pragma once
/// Moved to support/process/subprocess.hpp: this place works until 0.3.

// clang-format off
#pragma message("mtmc/support/subprocess.hpp is mtmc/support/process/subprocess.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/support/process/subprocess.hpp>
