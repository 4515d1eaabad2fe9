#pragma once
/// Moved to support/process/program_roles.hpp: this place works until 0.3.

// clang-format off
#pragma message("mtmc/support/program_roles.hpp is mtmc/support/process/program_roles.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/support/process/program_roles.hpp>
