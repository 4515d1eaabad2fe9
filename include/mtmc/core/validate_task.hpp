#pragma once
/// Moved to task/validate_task.hpp: this place works until 0.3.

#pragma message("mtmc/core/validate_task.hpp is mtmc/task/validate_task.hpp now; the old place works until 0.3")
#include <mtmc/task/validate_task.hpp>
