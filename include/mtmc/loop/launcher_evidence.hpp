#pragma once
/// Moved to launcher/launcher_evidence.hpp: this place works until 0.3.

// Tests find the next line by how it begins.
// clang-format off
#pragma message("mtmc/loop/launcher_evidence.hpp is mtmc/launcher/launcher_evidence.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/launcher/launcher_evidence.hpp>
