#pragma once
/// The version of this copy of mtmc, and in which of its two forms it is used.

// The only place that states the version: CMake and the packages read these three lines. They are macros so
// that a host can also ask in an #if.
#define MTMC_VERSION_MAJOR 0 ///< `mtmc::version_major` for the preprocessor.
#define MTMC_VERSION_MINOR 2 ///< `mtmc::version_minor` for the preprocessor.
#define MTMC_VERSION_PATCH 0 ///< `mtmc::version_patch` for the preprocessor.

// `MTMC_COMPILED` is the name that `MTMC_SEPARATE_COMPILATION` had before 0.2.
#if defined(MTMC_COMPILED) && !defined(MTMC_SEPARATE_COMPILATION)
#pragma message("mtmc: MTMC_COMPILED is called MTMC_SEPARATE_COMPILATION now; the old name goes with 0.3")
#define MTMC_SEPARATE_COMPILATION
#endif

// Everything is in an inline namespace of version and form, so that files which do not fit together do not
// link: the names that the linker misses say which version and form want them.
#define MTMC_DETAIL_PASTE(major, minor, patch, form) v##major##_##minor##_##patch##_##form
#define MTMC_DETAIL_ABI(major, minor, patch, form) MTMC_DETAIL_PASTE(major, minor, patch, form)
/// The name of the inline namespace: version and form.
#ifdef MTMC_SEPARATE_COMPILATION
#define MTMC_ABI MTMC_DETAIL_ABI(MTMC_VERSION_MAJOR, MTMC_VERSION_MINOR, MTMC_VERSION_PATCH, separate)
#else
#define MTMC_ABI MTMC_DETAIL_ABI(MTMC_VERSION_MAJOR, MTMC_VERSION_MINOR, MTMC_VERSION_PATCH, header_only)
#endif

// Can be read by any C++17.

/// All of the SDK. What lies in a namespace `detail` within may change with any version.
namespace mtmc {
inline namespace MTMC_ABI {

/// Major version of this copy of mtmc. While it is 0, a new minor version may change the interface.
inline constexpr int version_major = MTMC_VERSION_MAJOR;

/// Minor version of this copy of mtmc.
inline constexpr int version_minor = MTMC_VERSION_MINOR;

/// Patch version of this copy of mtmc. It never changes the interface.
inline constexpr int version_patch = MTMC_VERSION_PATCH;

/// "0.2.0".
inline constexpr const char* version_string =
#define MTMC_DETAIL_QUOTE(x) #x
#define MTMC_DETAIL_TEXT(x) MTMC_DETAIL_QUOTE(x)
    MTMC_DETAIL_TEXT(MTMC_VERSION_MAJOR) "." MTMC_DETAIL_TEXT(MTMC_VERSION_MINOR) "." MTMC_DETAIL_TEXT(
        MTMC_VERSION_PATCH);
#undef MTMC_DETAIL_TEXT
#undef MTMC_DETAIL_QUOTE

#ifdef MTMC_SEPARATE_COMPILATION
namespace detail {

/// Defined with everything else by <mtmc/implementation.hpp>. A linker that misses it, or finds it twice,
/// says by its name what to do.
extern const char exactly_one_source_file_includes_mtmc_implementation_hpp_or_link_mtmc_compiled;
/// Makes every file need it.
[[gnu::used]] inline const char* const need_of_an_implementation =
    &exactly_one_source_file_includes_mtmc_implementation_hpp_or_link_mtmc_compiled;

} // namespace detail
#endif

} // namespace MTMC_ABI
} // namespace mtmc
