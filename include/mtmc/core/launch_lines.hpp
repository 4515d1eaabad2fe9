#pragma once
/// Moved to task/launch_lines.hpp: this place works until 0.3.

#pragma message("mtmc/core/launch_lines.hpp is mtmc/task/launch_lines.hpp now; the old place works until 0.3")
#include <mtmc/task/launch_lines.hpp>
