#pragma once
/// Moved to actions/replay_file.hpp: this place works until 0.3.

// Tests find the next line by how it begins.
// clang-format off
#pragma message("mtmc/core/replay_file.hpp is mtmc/actions/replay_file.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/actions/replay_file.hpp>
