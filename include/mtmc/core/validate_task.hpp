#pragma once
/// Moved to task/validate_task.hpp: this place works until 0.3.

// Tests find the next line by how it begins.
// clang-format off
#pragma message("mtmc/core/validate_task.hpp is mtmc/task/validate_task.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/task/validate_task.hpp>
