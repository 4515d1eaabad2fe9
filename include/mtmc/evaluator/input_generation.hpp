#pragma once
/// Moved to evaluator/content/input_generation.hpp: this place works until 0.3.

// clang-format off
#pragma message("mtmc/evaluator/input_generation.hpp is mtmc/evaluator/content/input_generation.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/evaluator/content/input_generation.hpp>
