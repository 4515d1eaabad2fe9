#pragma once

/// \file
/// Header-only or compiled once. By default every function is defined in the headers. Where `MTMC_COMPILED`
/// is defined, as the CMake target `mtmc::compiled` does, the headers a host includes only declare what is no
/// template and costs compile time; the definitions, in the `*_inl.hpp` headers, are compiled once into that
/// library.

/// Before each function definition of an `*_inl.hpp` header.
#ifdef MTMC_COMPILED
#define MTMC_INLINE
#else
#define MTMC_INLINE inline
#endif
