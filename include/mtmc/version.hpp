#pragma once

// The only place that states the version: CMake and the packages read these three lines. They are macros so
// that a host can also ask in an #if.
#define MTMC_VERSION_MAJOR 0
#define MTMC_VERSION_MINOR 1
#define MTMC_VERSION_PATCH 0

namespace mtmc {

/// Major version of this copy of mtmc. While it is 0, a new minor version may change the interface.
inline constexpr int version_major = MTMC_VERSION_MAJOR;

/// Minor version of this copy of mtmc.
inline constexpr int version_minor = MTMC_VERSION_MINOR;

/// Patch version of this copy of mtmc. It never changes the interface.
inline constexpr int version_patch = MTMC_VERSION_PATCH;

/// "0.1.0".
inline constexpr const char* version_string =
#define MTMC_DETAIL_QUOTE(x) #x
#define MTMC_DETAIL_TEXT(x) MTMC_DETAIL_QUOTE(x)
    MTMC_DETAIL_TEXT(MTMC_VERSION_MAJOR) "." MTMC_DETAIL_TEXT(MTMC_VERSION_MINOR) "." MTMC_DETAIL_TEXT(
        MTMC_VERSION_PATCH);
#undef MTMC_DETAIL_TEXT
#undef MTMC_DETAIL_QUOTE

} // namespace mtmc
