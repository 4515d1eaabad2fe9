#pragma once

/// \file
/// Header-only or compiled once. By default every function is defined in the headers. Where
/// `MTMC_SEPARATE_COMPILATION` is defined, as the CMake target `mtmc::compiled` does, the headers that a host
/// includes only declare what is no template and costs compile time; the definitions, in the `*_inl.hpp`
/// headers, are compiled once: into that library, or into the one source file that includes
/// <mtmc/implementation.hpp>.

#include <mtmc/version.hpp>

/// Before each function definition of an `*_inl.hpp` header.
#ifdef MTMC_SEPARATE_COMPILATION
#define MTMC_INLINE
#else
#define MTMC_INLINE inline
#endif
