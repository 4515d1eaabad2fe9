#pragma once
/// \file
/// What mtmc needs of a compiler. The first header that every other one reaches: where something is missing,
/// one sentence says what to add, and nothing else is read that would bury it under errors of its own.

#if !defined(__cplusplus)
#error "mtmc is a library for C++20: compile this file as C++, with -std=c++20"
#define MTMC_DETAIL_UNMET
#elif defined(__clang__) ? __clang_major__ < 14 : defined(__GNUC__) && __GNUC__ < 12
#error "this compiler is too old: mtmc needs GCC 12, Clang 14 or newer (and -std=c++20)"
#define MTMC_DETAIL_UNMET
#elif __cplusplus < 202002L
#error "mtmc needs C++20: add -std=c++20 to the compiler's options"
#define MTMC_DETAIL_UNMET
#elif !defined(__cpp_exceptions)
#error "mtmc needs exceptions: take -fno-exceptions out of the compiler's options"
#define MTMC_DETAIL_UNMET
#else
#include <version>
#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE < 11
#error "this standard library is too old: mtmc needs libstdc++ 11 or newer (Debian: libstdc++-12-dev)"
#define MTMC_DETAIL_UNMET
#elif !defined(__cpp_lib_jthread)
#error "mtmc needs std::stop_token: take libstdc++ 11 or newer, or with libc++ add -fexperimental-library"
#define MTMC_DETAIL_UNMET
#endif
#endif

// An #error alone does not stop a compiler; a header that is not there does.
#ifdef MTMC_DETAIL_UNMET
#include <see the error above>
#endif

#include <mtmc/version.hpp>
