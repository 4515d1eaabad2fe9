#pragma once
/// Moved to observation/validate_evaluation.hpp: this place works until 0.3.

#pragma message("mtmc/core/validate_evaluation.hpp is mtmc/observation/validate_evaluation.hpp now; the old place works until 0.3")
#include <mtmc/observation/validate_evaluation.hpp>
