#pragma once
/// Moved to observation/occupancy.hpp: this place works until 0.3.

// Tests find the next line by how it begins.
// clang-format off
#pragma message("mtmc/core/occupancy.hpp is mtmc/observation/occupancy.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/observation/occupancy.hpp>
