#pragma once
/// Moved to support/process/forked_call.hpp: this place works until 0.3.

// clang-format off
#pragma message("mtmc/support/forked_call.hpp is mtmc/support/process/forked_call.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/support/process/forked_call.hpp>
