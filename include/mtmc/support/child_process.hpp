#pragma once
/// Moved to support/process/child_process.hpp: this place works until 0.3.

#pragma message(                                                                                             \
    "mtmc/support/child_process.hpp is mtmc/support/process/child_process.hpp now; the old place works until 0.3")
#include <mtmc/support/process/child_process.hpp>
