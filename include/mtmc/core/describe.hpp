#pragma once
/// Moved to observation/describe.hpp: this place works until 0.3.

#pragma message("mtmc/core/describe.hpp is mtmc/observation/describe.hpp now; the old place works until 0.3")
#include <mtmc/observation/describe.hpp>
