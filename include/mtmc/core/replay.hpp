#pragma once
/// Moved to actions/replay.hpp: this place works until 0.3.

#pragma message("mtmc/core/replay.hpp is mtmc/actions/replay.hpp now; the old place works until 0.3")
#include <mtmc/actions/replay.hpp>
