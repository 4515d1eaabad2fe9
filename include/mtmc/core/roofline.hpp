#pragma once
/// Moved to observation/roofline.hpp: this place works until 0.3.

#pragma message("mtmc/core/roofline.hpp is mtmc/observation/roofline.hpp now; the old place works until 0.3")
#include <mtmc/observation/roofline.hpp>
