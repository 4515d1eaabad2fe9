#pragma once
/// Moved to observation/profile_grading.hpp: this place works until 0.3.

#pragma message("mtmc/core/profile_grading.hpp is mtmc/observation/profile_grading.hpp now; the old place works until 0.3")
#include <mtmc/observation/profile_grading.hpp>
