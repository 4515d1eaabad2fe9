#pragma once
/// What OpenCL C calls the functions and types of CUDA, and which it has at all.

#include <mtmc/analysis/flow/call_effects.hpp>
#include <mtmc/analysis/syntax/token_buffer.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// What OpenCL C calls a function of CUDA's library; nothing for one that it does not have.
[[nodiscard]] inline std::optional<std::string> opencl_function(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> others{
      {{"__expf", "native_exp"},
       {"__logf", "native_log"},
       {"__sinf", "native_sin"},
       {"__cosf", "native_cos"},
       {"__fdividef", "native_divide"},
       {"__frsqrt_rn", "rsqrt"},
       {"__fsqrt_rn", "sqrt"},
       {"__fmaf_rn", "fma"},
       {"__frcp_rn", "native_recip"}}};
  static constexpr std::array<std::string_view, 17> own{
      "min",    "max",     "fmin",         "fmax",         "clamp",         "mad",
      "select", "barrier", "get_local_id", "get_group_id", "get_global_id", "get_local_size",
      "sizeof", "sign",    "mix",          "dot",          "get_num_groups"};
  static constexpr std::array<std::string_view, 5> missing{"exp10f", "sincospi", "lrint", "lround", "labs"};
  const std::string_view plain = plain_function_name(name);
  for (const auto& [cuda, opencl] : others)
    if (plain == cuda) return std::string(opencl);
  if (std::find(missing.begin(), missing.end(), plain) != missing.end() || plain.starts_with("__"))
    return std::nullopt;
  const auto is_own = [&](std::string_view one) {
    const auto among = [&](const auto& list) {
      return std::find(std::begin(list), std::end(list), one) != std::end(list);
    };
    return among(own) || among(simple_functions) || among(transcendental_functions) ||
           one.starts_with("vload") || one.starts_with("vstore") || one.starts_with("native_");
  };
  if (is_own(plain)) return std::string(plain);
  if (plain.ends_with('f') && is_own(plain.substr(0, plain.size() - 1)))
    return std::string(plain.substr(0, plain.size() - 1));
  return std::nullopt;
}

/// What OpenCL C calls a word of a type of CUDA C++; empty for one that says nothing there, nothing for one
/// that it does not have.
[[nodiscard]] inline std::optional<std::string> opencl_type_word(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 20> others{
      {{"__global__", "__kernel"},
       {"__device__", ""},
       {"__host__", ""},
       {"__forceinline__", ""},
       {"inline", ""},
       {"extern", ""},
       {"__shared__", "__local"},
       {"__restrict__", "restrict"},
       {"__restrict", "restrict"},
       {"int8_t", "char"},
       {"uint8_t", "uchar"},
       {"int16_t", "short"},
       {"uint16_t", "ushort"},
       {"int32_t", "int"},
       {"uint32_t", "uint"},
       {"int64_t", "long"},
       {"uint64_t", "ulong"},
       {"std", ""},
       {"::", ""},
       {"\"C\"", ""}}};
  static constexpr std::array<std::string_view, 20> own{
      "const",  "volatile", "restrict", "void",   "bool",      "char",  "short",  "int",  "long",  "float",
      "double", "signed",   "unsigned", "size_t", "ptrdiff_t", "uchar", "ushort", "uint", "ulong", "*"};
  for (const auto& [cuda, opencl] : others)
    if (word == cuda) return std::string(opencl);
  if (std::find(own.begin(), own.end(), word) != own.end()) return std::string(word);
  const bool vector = is_vector_type(word) && !word.ends_with('1') && word.find("longlong") == word.npos;
  return vector ? std::optional<std::string>(word) : std::nullopt;
}

} // namespace mtmc::detail
