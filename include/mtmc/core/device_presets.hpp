#pragma once
/// Moved to backend/device_presets.hpp: this place works until 0.3.

// Tests find the next line by how it begins.
// clang-format off
#pragma message("mtmc/core/device_presets.hpp is mtmc/backend/device_presets.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/backend/device_presets.hpp>
