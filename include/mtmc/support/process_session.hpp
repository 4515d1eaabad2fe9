#pragma once
/// Moved to support/process/process_family.hpp: this place works until 0.3.

// clang-format off
#pragma message("mtmc/support/process_session.hpp is mtmc/support/process/process_family.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/support/process/process_family.hpp>
