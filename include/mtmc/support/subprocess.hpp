#pragma once
/// Moved to support/process/subprocess.hpp: this place works until 0.3.

#pragma message(                                                                                             \
    "mtmc/support/subprocess.hpp is mtmc/support/process/subprocess.hpp now; the old place works until 0.3")
#include <mtmc/support/process/subprocess.hpp>
