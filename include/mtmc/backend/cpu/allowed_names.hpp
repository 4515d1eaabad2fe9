#pragma once
/// What a kernel in C++ may name: headers, functions of libraries, pragmas. Everything else is refused.

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

/// Functions for real numbers, without the suffixes of their types.
inline constexpr auto mathematical_functions = std::to_array<std::string_view>(
    {"acos",     "acosh", "asin",   "asinh",     "atan",    "atan2",     "atanh",     "cbrt",   "ceil",
     "copysign", "cos",   "cosh",   "erf",       "erfc",    "exp",       "exp2",      "expm1",  "exp10",
     "fabs",     "fdim",  "floor",  "fma",       "fmax",    "fmin",      "fmod",      "frexp",  "hypot",
     "ilogb",    "ldexp", "lgamma", "llrint",    "llround", "log",       "log10",     "log1p",  "log2",
     "logb",     "lrint", "lround", "modf",      "nan",     "nearbyint", "nextafter", "pow",    "remainder",
     "remquo",   "rint",  "round",  "roundeven", "scalbn",  "scalbln",   "sin",       "sincos", "sinh",
     "sqrt",     "tan",   "tanh",   "tgamma",    "trunc",   "j0",        "j1",        "jn",     "y0",
     "y1",       "yn",    "cabs",   "cexp",      "clog",    "cpow",      "csqrt",     "carg",   "csin",
     "ccos",     "ctanh"});

/// Functions that work on memory they are given or hand out fresh memory, search, sort, and end.
inline constexpr auto plain_functions =
    std::to_array<std::string_view>({"memcpy",         "memmove",       "memset",
                                     "memcmp",         "memchr",        "bcmp",
                                     "bzero",          "strlen",        "strcmp",
                                     "strncmp",        "malloc",        "calloc",
                                     "realloc",        "free",          "aligned_alloc",
                                     "posix_memalign", "abs",           "labs",
                                     "llabs",          "div",           "ldiv",
                                     "lldiv",          "qsort",         "bsearch",
                                     "abort",          "__assert_fail", "__stack_chk_fail",
                                     "__memcpy_chk",   "__memset_chk",  "__memmove_chk",
                                     "__fpclassify",   "__fpclassifyf", "__signbit",
                                     "__signbitf",     "__isnan",       "__isinf",
                                     "__finite",       "fegetround",    "fesetround",
                                     "feclearexcept",  "fetestexcept",  "__dso_handle"});

/// The OpenMP run time as a kernel may use it; not its clocks, and not what it does on other devices.
inline constexpr auto openmp_functions = std::to_array<std::string_view>({"omp_get_thread_num",
                                                                          "omp_get_num_threads",
                                                                          "omp_get_max_threads",
                                                                          "omp_get_num_procs",
                                                                          "omp_in_parallel",
                                                                          "omp_set_num_threads",
                                                                          "omp_get_level",
                                                                          "omp_get_team_size",
                                                                          "omp_get_ancestor_thread_num",
                                                                          "omp_get_active_level",
                                                                          "omp_get_dynamic",
                                                                          "omp_set_dynamic",
                                                                          "omp_get_nested",
                                                                          "omp_get_max_active_levels",
                                                                          "omp_set_max_active_levels",
                                                                          "omp_get_thread_limit",
                                                                          "omp_init_lock",
                                                                          "omp_destroy_lock",
                                                                          "omp_set_lock",
                                                                          "omp_unset_lock",
                                                                          "omp_test_lock",
                                                                          "omp_get_cancellation"});

/// Beginnings of names of the compiler's own helpers: OpenMP, vector mathematics, arithmetic that the
/// processor lacks, exceptions, and what the C++ library throws.
inline constexpr auto helper_prefixes = std::to_array<std::string_view>({"GOMP_parallel",
                                                                         "GOMP_barrier",
                                                                         "GOMP_critical",
                                                                         "GOMP_loop_",
                                                                         "GOMP_single_",
                                                                         "GOMP_atomic_",
                                                                         "GOMP_task",
                                                                         "GOMP_sections",
                                                                         "GOMP_ordered_",
                                                                         "GOMP_cancel",
                                                                         "GOMP_reduction_",
                                                                         "GOMP_doacross_",
                                                                         "__kmpc_",
                                                                         "_ZGV",
                                                                         "__div",
                                                                         "__udiv",
                                                                         "__mod",
                                                                         "__umod",
                                                                         "__mul",
                                                                         "__ashl",
                                                                         "__ashr",
                                                                         "__lshr",
                                                                         "__neg",
                                                                         "__cmp",
                                                                         "__ucmp",
                                                                         "__popcount",
                                                                         "__ctz",
                                                                         "__clz",
                                                                         "__ffs",
                                                                         "__parity",
                                                                         "__bswap",
                                                                         "__fix",
                                                                         "__float",
                                                                         "__extend",
                                                                         "__trunc",
                                                                         "__pow",
                                                                         "__cxa_",
                                                                         "__gxx_personality_",
                                                                         "_Unwind_",
                                                                         "__aarch64_",
                                                                         "_ZSt",
                                                                         "_ZNKSt",
                                                                         "_ZNSt",
                                                                         "_ZTI",
                                                                         "_ZTV",
                                                                         "_ZTS"});

/// Names that begin like those helpers and reach beyond the kernel: input and output, threads, clocks, files,
/// the program's end, random devices, locales.
inline constexpr auto reaching_out = std::to_array<std::string_view>({"__cxa_atexit",
                                                                      "__cxa_thread_atexit",
                                                                      "__cxa_guard_",
                                                                      "__cxa_finalize",
                                                                      "__cxa_demangle",
                                                                      "_ZSt4cout",
                                                                      "_ZSt3cin",
                                                                      "_ZSt4cerr",
                                                                      "_ZSt4clog",
                                                                      "_ZStls",
                                                                      "_ZStrs",
                                                                      "_ZSt16__ostream_insert",
                                                                      "_ZSt4endl",
                                                                      "_ZSt5flush",
                                                                      "_ZSt13set_terminate",
                                                                      "_ZSt14set_unexpected",
                                                                      "_ZSt15set_new_handler",
                                                                      "_ZNSt8ios_base",
                                                                      "_ZNSo",
                                                                      "_ZNSi",
                                                                      "_ZNSt6thread",
                                                                      "_ZNSt6chrono",
                                                                      "_ZNSt10filesystem",
                                                                      "_ZNSt13random_device",
                                                                      "_ZNSt6locale",
                                                                      "_ZNKSt6locale",
                                                                      "_ZNSt18condition_variable",
                                                                      "_ZNSt13basic_filebuf",
                                                                      "_ZNSt14basic_ofstream",
                                                                      "_ZNSt14basic_ifstream",
                                                                      "_ZNSt5mutex"});

template <std::size_t count>
[[nodiscard]] constexpr bool begins_with_one(std::string_view name,
                                             const std::array<std::string_view, count>& prefixes) noexcept {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Whether a kernel's object file may refer to a symbol it does not define.
[[nodiscard]] constexpr bool is_allowed_function(std::string_view name) noexcept {
  if (name == "_GLOBAL_OFFSET_TABLE_" || name == "__cpu_model" || name == "__cpu_indicator_init") return true;
  if (is_one_of(name, plain_functions) || is_one_of(name, openmp_functions)) return true;
  // operator new and delete, and what glibc calls some functions of <cmath>
  if (name.starts_with("_Zn") || name.starts_with("_Zd")) return true;
  auto function = name;
  if (function.starts_with("__") && function.ends_with("_finite")) {
    function.remove_prefix(2);
    function.remove_suffix(7);
  }
  if (is_one_of(function, mathematical_functions)) return true;
  for (const std::string_view suffix : {"f", "l", "f16", "f32", "f64", "f128", "f32x", "f64x"})
    if (function.ends_with(suffix) &&
        is_one_of(function.substr(0, function.size() - suffix.size()), mathematical_functions))
      return true;
  if (begins_with_one(name, reaching_out)) return false;
  return begins_with_one(name, helper_prefixes);
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
  if (is_one_of(name, assembly)) return "inline assembly can do what no check sees";
  if (is_one_of(name, storage)) return "thread-local variables keep state between calls";
  if (is_one_of(name, files)) return "a kernel must not depend on what files there are";
  if (is_one_of(name, stack)) return "a kernel must not reach into its caller";
  if (is_one_of(name, clocks)) return "a kernel must not read clocks and counters";
  return {};
}

} // namespace mtmc::detail
