#pragma once
/// Moved to observation/profile_grading.hpp: this place works until 0.3.

// Tests find the next line by how it begins.
// clang-format off
#pragma message("mtmc/core/profile_grading.hpp is mtmc/observation/profile_grading.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/observation/profile_grading.hpp>
