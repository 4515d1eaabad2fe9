#pragma once
/// Moved to launcher/launcher.hpp: this place works until 0.3.

#pragma message("mtmc/loop/launcher.hpp is mtmc/launcher/launcher.hpp now; the old place works until 0.3")
#include <mtmc/launcher/launcher.hpp>
