#pragma once
/// Moved to launcher/launcher_evidence.hpp: this place works until 0.3.

#pragma message("mtmc/loop/launcher_evidence.hpp is mtmc/launcher/launcher_evidence.hpp now; the old place works until 0.3")
#include <mtmc/launcher/launcher_evidence.hpp>
