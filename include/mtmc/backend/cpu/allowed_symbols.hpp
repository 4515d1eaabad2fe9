#pragma once
/// What the object file of a kernel in C++ may refer to without defining it: names one by one, so that what
/// is not known is refused. No variable is among them but tables of types, which nobody can write.

#include <mtmc/backend/cpu/allowed_names.hpp>
#include <mtmc/backend/directive_screen.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

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
                                     "__finite",       "fegetround"});

/// The OpenMP run time as a kernel may use it; not its clocks, not what it does on other devices, and not
/// settings, which outlive a call: a `num_threads` clause says the same of one region.
inline constexpr auto openmp_functions = std::to_array<std::string_view>(
    {"omp_get_thread_num", "omp_get_num_threads", "omp_get_max_threads", "omp_get_num_procs",
     "omp_in_parallel", "omp_get_level", "omp_get_team_size", "omp_get_ancestor_thread_num",
     "omp_get_active_level", "omp_get_dynamic", "omp_get_nested", "omp_get_max_active_levels",
     "omp_get_thread_limit", "omp_init_lock", "omp_destroy_lock", "omp_set_lock", "omp_unset_lock",
     "omp_test_lock", "omp_get_cancellation"});

/// What GCC calls for OpenMP.
inline constexpr auto gcc_openmp_calls =
    std::to_array<std::string_view>({"GOMP_atomic_end",
                                     "GOMP_atomic_start",
                                     "GOMP_barrier",
                                     "GOMP_barrier_cancel",
                                     "GOMP_cancel",
                                     "GOMP_cancellation_point",
                                     "GOMP_critical_end",
                                     "GOMP_critical_name_end",
                                     "GOMP_critical_name_start",
                                     "GOMP_critical_start",
                                     "GOMP_doacross_post",
                                     "GOMP_doacross_ull_post",
                                     "GOMP_doacross_ull_wait",
                                     "GOMP_doacross_wait",
                                     "GOMP_ordered_end",
                                     "GOMP_ordered_start",
                                     "GOMP_parallel",
                                     "GOMP_parallel_reductions",
                                     "GOMP_parallel_sections",
                                     "GOMP_scope_start",
                                     "GOMP_sections2_start",
                                     "GOMP_sections_end",
                                     "GOMP_sections_end_cancel",
                                     "GOMP_sections_end_nowait",
                                     "GOMP_sections_next",
                                     "GOMP_sections_start",
                                     "GOMP_single_copy_end",
                                     "GOMP_single_copy_start",
                                     "GOMP_single_start",
                                     "GOMP_task",
                                     "GOMP_task_reduction_remap",
                                     "GOMP_taskgroup_end",
                                     "GOMP_taskgroup_reduction_register",
                                     "GOMP_taskgroup_reduction_unregister",
                                     "GOMP_taskgroup_start",
                                     "GOMP_taskloop",
                                     "GOMP_taskloop_ull",
                                     "GOMP_taskwait",
                                     "GOMP_taskwait_depend",
                                     "GOMP_taskyield",
                                     "GOMP_workshare_task_reduction_unregister"});

/// Of the C++ library: what throws, and what containers and hashes call with memory of the caller's.
inline constexpr auto library_functions =
    std::to_array<std::string_view>({"_ZSt16__throw_bad_castv",
                                     "_ZSt17__throw_bad_allocv",
                                     "_ZSt18__throw_bad_typeidv",
                                     "_ZSt19__throw_logic_errorPKc",
                                     "_ZSt19__throw_range_errorPKc",
                                     "_ZSt20__throw_domain_errorPKc",
                                     "_ZSt20__throw_length_errorPKc",
                                     "_ZSt20__throw_out_of_rangePKc",
                                     "_ZSt21__throw_bad_exceptionv",
                                     "_ZSt21__throw_runtime_errorPKc",
                                     "_ZSt22__throw_overflow_errorPKc",
                                     "_ZSt23__throw_underflow_errorPKc",
                                     "_ZSt24__throw_invalid_argumentPKc",
                                     "_ZSt24__throw_out_of_range_fmtPKcz",
                                     "_ZSt25__throw_bad_function_callv",
                                     "_ZSt28__throw_bad_array_new_lengthv",
                                     "_ZSt26__throw_bad_variant_accessPKc",
                                     "_ZSt20__replacement_assertPKciS0_S0_",
                                     "_ZSt21__glibcxx_assert_failPKciS0_S0_",
                                     "_ZSt9terminatev",
                                     "_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base",
                                     "_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base",
                                     "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base",
                                     "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base",
                                     "_ZSt20_Rb_tree_black_countPKSt18_Rb_tree_node_baseS1_",
                                     "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_",
                                     "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_",
                                     "_ZNSt8__detail15_List_node_base10_M_reverseEv",
                                     "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_",
                                     "_ZNSt8__detail15_List_node_base4swapERS0_S1_",
                                     "_ZNSt8__detail15_List_node_base7_M_hookEPS0_",
                                     "_ZNSt8__detail15_List_node_base9_M_unhookEv",
                                     "_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm",
                                     "_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm",
                                     "_ZSt11_Hash_bytesPKvmm",
                                     "_ZSt15_Fnv_hash_bytesPKvmm",
                                     "_ZSt7nothrow",
                                     "__cxa_allocate_exception",
                                     "__cxa_free_exception",
                                     "__cxa_throw",
                                     "__cxa_rethrow",
                                     "__cxa_begin_catch",
                                     "__cxa_end_catch",
                                     "__cxa_get_exception_ptr",
                                     "__cxa_throw_bad_array_new_length",
                                     "__cxa_bad_cast",
                                     "__cxa_bad_typeid",
                                     "__cxa_pure_virtual",
                                     "__cxa_deleted_virtual",
                                     "__cxa_call_unexpected",
                                     "__dynamic_cast",
                                     "__gxx_personality_v0",
                                     "_Unwind_Resume",
                                     "_GLOBAL_OFFSET_TABLE_",
                                     "__cpu_model",
                                     "__cpu_indicator_init",
                                     "__libc_single_threaded"});

/// Beginnings of classes of the C++ library of which each member works on its object alone: strings,
/// exceptions.
inline constexpr auto library_classes =
    std::to_array<std::string_view>({"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE",
                                     "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE",
                                     "_ZNSt9exception",
                                     "_ZNKSt9exception",
                                     "_ZNSt9bad_alloc",
                                     "_ZNKSt9bad_alloc",
                                     "_ZNSt8bad_cast",
                                     "_ZNKSt8bad_cast",
                                     "_ZNSt20bad_array_new_length",
                                     "_ZNKSt20bad_array_new_length",
                                     "_ZNSt11logic_error",
                                     "_ZNKSt11logic_error",
                                     "_ZNSt13runtime_error",
                                     "_ZNKSt13runtime_error",
                                     "_ZNSt11range_error",
                                     "_ZNSt12domain_error",
                                     "_ZNSt12length_error",
                                     "_ZNSt12out_of_range",
                                     "_ZNSt14overflow_error",
                                     "_ZNSt15underflow_error",
                                     "_ZNSt16invalid_argument",
                                     "_ZTI",
                                     "_ZTS",
                                     "_ZTV"});

/// Arithmetic that the processor lacks (`__divti3`, `__powidf2`, `__extendhfsf2`), without the types and the
/// number at the end.
inline constexpr auto arithmetic_helpers = std::to_array<std::string_view>(
    {"__add",     "__ashl",   "__ashr",    "__bswap",  "__clrsb",    "__clz",  "__cmp",    "__ctz",
     "__div",     "__divmod", "__eq",      "__extend", "__ffs",      "__fix",  "__fixuns", "__float",
     "__floatun", "__ge",     "__gt",      "__le",     "__lshr",     "__lt",   "__mod",    "__mul",
     "__mulo",    "__ne",     "__neg",     "__parity", "__popcount", "__powi", "__sub",    "__trunc",
     "__ucmp",    "__udiv",   "__udivmod", "__umod",   "__unord"});

/// Functions of mathematics, with the suffixes of their types.
[[nodiscard]] constexpr bool is_mathematical_function(std::string_view name) noexcept {
  if (is_one_of(name, mathematical_functions)) return true;
  for (const std::string_view suffix : {"f", "l", "f16", "f32", "f64", "f128", "f32x", "f64x"})
    if (name.ends_with(suffix) &&
        is_one_of(name.substr(0, name.size() - suffix.size()), mathematical_functions))
      return true;
  return false;
}

/// `_ZGVdN8v_sinf`: the instruction set, masked or not, lanes, kinds of parameters, and the function.
[[nodiscard]] constexpr bool is_vector_mathematics(std::string_view name) noexcept {
  constexpr std::string_view prefix = "_ZGV";
  const auto end = name.find('_', prefix.size());
  if (!name.starts_with(prefix) || end == std::string_view::npos) return false;
  const auto shape = name.substr(prefix.size(), end - prefix.size());
  if (shape.size() < 4 || std::string_view("bcdensr").find(shape[0]) == std::string_view::npos ||
      (shape[1] != 'N' && shape[1] != 'M'))
    return false;
  const bool known = std::all_of(shape.begin() + 2, shape.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == 'v' || c == 'l' || c == 'u' || c == 'x';
  });
  return known && is_mathematical_function(name.substr(end + 1));
}

[[nodiscard]] constexpr bool is_arithmetic_helper(std::string_view name) noexcept {
  // Conversions of integers of 128 bits have no number behind their types.
  const bool numbered = !name.empty() && name.back() >= '2' && name.back() <= '4';
  if (!numbered && !name.starts_with("__fix") && !name.starts_with("__float")) return false;
  return std::any_of(arithmetic_helpers.begin(), arithmetic_helpers.end(), [&](std::string_view operation) {
    if (!name.starts_with(operation)) return false;
    const auto types = name.substr(operation.size(), name.size() - operation.size() - (numbered ? 1 : 0));
    return types.size() >= 2 && types.size() <= 5 && std::all_of(types.begin(), types.end(), [](char c) {
             return std::string_view("dfhistxbcuv").find(c) != std::string_view::npos;
           });
  });
}

/// operator new and delete in all their forms.
[[nodiscard]] constexpr bool is_allocation(std::string_view name) noexcept {
  constexpr auto forms =
      std::to_array<std::string_view>({"_Znwm", "_Znam", "_Znwj", "_Znaj", "_ZdlPv", "_ZdaPv"});
  constexpr auto rest =
      std::to_array<std::string_view>({"", "m", "j", "RKSt9nothrow_t", "St11align_val_t", "mSt11align_val_t",
                                       "jSt11align_val_t", "St11align_val_tRKSt9nothrow_t"});
  return std::any_of(forms.begin(), forms.end(), [&](std::string_view form) {
    return name.starts_with(form) && is_one_of(name.substr(form.size()), rest);
  });
}

/// Whether a kernel's object file may refer to a symbol it does not define.
[[nodiscard]] constexpr bool is_allowed_function(std::string_view name) noexcept {
  if (is_one_of(name, plain_functions) || is_one_of(name, openmp_functions) ||
      is_one_of(name, gcc_openmp_calls) || is_one_of(name, library_functions))
    return true;
  // One for each schedule and type of index, dozens of them.
  if (name.starts_with("GOMP_loop_") || name.starts_with("GOMP_parallel_loop_")) return true;
  // Of Clang's calls for OpenMP all but those for variables that outlive a call; a text cannot name them.
  if (name.starts_with("__kmpc_")) return name.find("threadprivate") == std::string_view::npos;
  // Atomic operations of 64-bit Arm, of which there are hundreds.
  if (name.starts_with("__aarch64_")) return true;
  auto function = name; // what glibc calls some functions of <cmath>
  if (function.starts_with("__") && function.ends_with("_finite")) {
    function.remove_prefix(2);
    function.remove_suffix(7);
  }
  return is_mathematical_function(function) || is_allocation(name) || is_arithmetic_helper(name) ||
         is_vector_mathematics(name) || begins_with_one(name, library_classes);
}

} // namespace mtmc::detail
