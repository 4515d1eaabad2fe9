#pragma once
/// Moved to observation/occupancy.hpp: this place works until 0.3.

#pragma message("mtmc/core/occupancy.hpp is mtmc/observation/occupancy.hpp now; the old place works until 0.3")
#include <mtmc/observation/occupancy.hpp>
