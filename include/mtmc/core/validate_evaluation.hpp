#pragma once
/// Moved to observation/validate_evaluation.hpp: this place works until 0.3.

// Tests find the next line by how it begins.
// clang-format off
#pragma message("mtmc/core/validate_evaluation.hpp is mtmc/observation/validate_evaluation.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/observation/validate_evaluation.hpp>
