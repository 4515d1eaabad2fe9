#pragma once
/// What the text of a kernel in C++ may name: headers, pragmas, attributes, and words of the compiler.
/// Everything else is refused.

#include <mtmc/backend/directive_screen.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Headers that compute and nothing else. Those of input and output are harmless as text (what they declare
/// is refused when it is called), and coders include them out of habit; <iostream> is not among them, because
/// it brings a constructor along.
inline constexpr auto allowed_headers =
    std::to_array<std::string_view>({"algorithm",     "array",           "atomic",
                                     "bit",           "bitset",          "cassert",
                                     "cctype",        "cfenv",           "cfloat",
                                     "cinttypes",     "climits",         "cmath",
                                     "compare",       "complex",         "concepts",
                                     "cstddef",       "cstdint",         "cstdio",
                                     "cstdlib",       "cstring",         "deque",
                                     "exception",     "execution",       "experimental/simd",
                                     "forward_list",  "functional",      "initializer_list",
                                     "iterator",      "limits",          "list",
                                     "map",           "memory",          "new",
                                     "numbers",       "numeric",         "optional",
                                     "queue",         "ranges",          "ratio",
                                     "set",           "source_location", "span",
                                     "stack",         "stdexcept",       "string_view",
                                     "tuple",         "type_traits",     "typeinfo",
                                     "unordered_map", "unordered_set",   "utility",
                                     "valarray",      "variant",         "vector",
                                     "version",       "string",          "assert.h",
                                     "fenv.h",        "float.h",         "inttypes.h",
                                     "limits.h",      "math.h",          "stdalign.h",
                                     "stdbool.h",     "stddef.h",        "stdint.h",
                                     "stdio.h",       "stdlib.h",        "string.h",
                                     "omp.h",         "immintrin.h",     "x86intrin.h",
                                     "xmmintrin.h",   "emmintrin.h",     "arm_neon.h",
                                     "arm_sve.h",     "arm_acle.h",      "arm_fp16.h"});

template <std::size_t count>
[[nodiscard]] constexpr bool begins_with_one(std::string_view name,
                                             const std::array<std::string_view, count>& prefixes) noexcept {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Pragmas a kernel may use, by their first word, and by the second where the first is a compiler's name.
[[nodiscard]] constexpr bool is_allowed_pragma(std::string_view first, std::string_view second) noexcept {
  constexpr auto plain = std::to_array<std::string_view>(
      {"omp", "once", "STDC", "unroll", "nounroll", "ivdep", "simd", "vector", "novector", "pack", "inline",
       "forceinline", "prefetch", "scop", "endscop"});
  constexpr auto gcc =
      std::to_array<std::string_view>({"unroll", "ivdep", "optimize", "target", "push_options", "pop_options",
                                       "diagnostic", "novector", "reset_options"});
  constexpr auto clang = std::to_array<std::string_view>({"loop", "diagnostic", "fp", "optimize"});
  if (first == "GCC") return is_one_of(second, gcc);
  if (first == "clang") return is_one_of(second, clang);
  return first.empty() || is_one_of(first, plain);
}

/// Attributes that make code run unasked, hide it, or put it where it does not belong.
[[nodiscard]] constexpr bool is_forbidden_attribute(std::string_view name) noexcept {
  constexpr auto forbidden = std::to_array<std::string_view>(
      {"constructor", "destructor", "section", "alias", "ifunc", "weak", "weakref", "init_priority", "symver",
       "naked", "target_clones", "interrupt", "no_split_stack"});
  if (name.starts_with("__") && name.ends_with("__") && name.size() > 4)
    name = name.substr(2, name.size() - 4);
  return is_one_of(name, forbidden);
}

/// Names that the compiler itself understands and no kernel needs: assembly, storage that outlives a call,
/// questions about files, the stack and the instruction stream, clocks.
[[nodiscard]] constexpr std::string_view why_forbidden(std::string_view name) noexcept {
  constexpr auto assembly = std::to_array<std::string_view>({"asm", "__asm", "__asm__"});
  constexpr auto storage = std::to_array<std::string_view>({"thread_local", "_Thread_local", "__thread"});
  constexpr auto files =
      std::to_array<std::string_view>({"__has_include", "__has_include_next", "__has_embed"});
  constexpr auto stack = std::to_array<std::string_view>(
      {"__builtin_return_address", "__builtin_frame_address", "__builtin_extract_return_addr",
       "__builtin_frob_return_addr", "__builtin_apply", "__builtin_apply_args", "__builtin_return",
       "__builtin_setjmp", "__builtin_longjmp", "__builtin_eh_return", "__builtin_unwind_init",
       "__builtin_dwarf_cfa", "__builtin___clear_cache", "__builtin_nonlocal_goto",
       "__builtin_init_dwarf_reg_size_table"});
  constexpr auto clocks = std::to_array<std::string_view>(
      {"__rdtsc", "_rdtsc", "__rdtscp", "__builtin_ia32_rdtsc", "__builtin_ia32_rdtscp", "_rdpmc", "__rdpmc",
       "__builtin_ia32_rdpmc", "__builtin_readcyclecounter", "__builtin_readsteadycounter", "_readfsbase_u64",
       "_writefsbase_u64"});
  // What the compiler calls by itself. A text that declares it could leave a critical section open, or look
  // into an exception that another call has thrown.
  constexpr auto own =
      std::to_array<std::string_view>({"GOMP_", "__kmpc_", "__cxa_", "_Unwind_", "__cpu_model",
                                       "__cpu_indicator_init", "__dso_handle", "__libc_single_threaded"});
  if (is_one_of(name, assembly)) return "inline assembly can do what no check sees";
  if (is_one_of(name, storage)) return "thread-local variables keep state between calls";
  if (is_one_of(name, files)) return "a kernel must not depend on what files there are";
  if (is_one_of(name, stack)) return "a kernel must not reach into its caller";
  if (is_one_of(name, clocks)) return "a kernel must not read clocks and counters";
  if (begins_with_one(name, own)) return "only the compiler itself calls it";
  return {};
}

} // namespace mtmc::detail
