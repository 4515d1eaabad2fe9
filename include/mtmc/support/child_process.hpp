#pragma once
/// Moved to support/process/child_process.hpp: this place works until 0.3.

// clang-format off
#pragma message("mtmc/support/child_process.hpp is mtmc/support/process/child_process.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/support/process/child_process.hpp>
