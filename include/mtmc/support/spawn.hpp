#pragma once
/// Moved to support/process/spawn.hpp: this place works until 0.3.

#pragma message("mtmc/support/spawn.hpp is mtmc/support/process/spawn.hpp now; the old place works until 0.3")
#include <mtmc/support/process/spawn.hpp>
