#pragma once
/// Moved to backend/device_presets.hpp: this place works until 0.3.

#pragma message("mtmc/core/device_presets.hpp is mtmc/backend/device_presets.hpp now; the old place works until 0.3")
#include <mtmc/backend/device_presets.hpp>
