#pragma once

#include <mtmc/support/text.hpp>

#include <cstddef>
#include <string>
#include <string_view>

/// \file
/// What the text of a type tells: pointer or value, floating or integer, how many bytes.

namespace mtmc::inline MTMC_ABI {

/// Facts read off a type's text. Types that are not built in count as neither floating nor integer.
struct TypeFacts {
  /// A pointer or an array.
  bool pointer = false;
  /// A C++ reference.
  bool reference = false;
  /// What it points to, or it itself, is const.
  bool constant = false;
  /// Of a built-in floating-point type.
  bool floating = false;
  /// Of a built-in integer type.
  bool integer = false;
  /// An integer type without sign.
  bool is_unsigned = false;
  /// `static`, `__shared__`, `extern`, ...: the object outlives one pass through its declaration.
  bool persistent = false;
  /// `__shared__`: one object for all threads of a block.
  bool shared = false;
  /// Bytes of the value, or of what a pointer points to; 0 = unknown.
  int size = 0;
};

namespace detail {

struct TypeWord {
  std::string_view word;
  char kind; ///< 'f' floating, 'i' integer, 'u' unsigned integer, 'v' vector of floats
  int size;
};

inline constexpr TypeWord type_words[] = {
    {"float", 'f', 4},          {"double", 'f', 8},        {"half", 'f', 2},
    {"__half", 'f', 2},         {"__fp16", 'f', 2},        {"_Float16", 'f', 2},
    {"__bf16", 'f', 2},         {"__nv_bfloat16", 'f', 2}, {"nv_bfloat16", 'f', 2},
    {"bfloat16", 'f', 2},       {"int", 'i', 4},           {"char", 'i', 1},
    {"short", 'i', 2},          {"long", 'i', 8},          {"bool", 'i', 1},
    {"signed", 'i', 4},         {"unsigned", 'u', 4},      {"uint", 'u', 4},
    {"ulong", 'u', 8},          {"ushort", 'u', 2},        {"uchar", 'u', 1},
    {"size_t", 'u', 8},         {"std::size_t", 'u', 8},   {"ptrdiff_t", 'i', 8},
    {"std::ptrdiff_t", 'i', 8}, {"ssize_t", 'i', 8},       {"int64_t", 'i', 8},
    {"std::int64_t", 'i', 8},   {"uint64_t", 'u', 8},      {"std::uint64_t", 'u', 8},
    {"int32_t", 'i', 4},        {"std::int32_t", 'i', 4},  {"uint32_t", 'u', 4},
    {"std::uint32_t", 'u', 4},  {"int16_t", 'i', 2},       {"std::int16_t", 'i', 2},
    {"uint16_t", 'u', 2},       {"std::uint16_t", 'u', 2}, {"int8_t", 'i', 1},
    {"std::int8_t", 'i', 1},    {"uint8_t", 'u', 1},       {"std::uint8_t", 'u', 1},
    {"float2", 'v', 8},         {"float3", 'v', 12},       {"float4", 'v', 16},
    {"float8", 'v', 32},        {"float16", 'v', 64},      {"double2", 'v', 16},
    {"half2", 'v', 4},          {"__half2", 'v', 4},       {"__nv_bfloat162", 'v', 4},
};

[[nodiscard]] inline const TypeWord* find_type_word(std::string_view word) noexcept {
  for (const TypeWord& known : type_words)
    if (known.word == word) return &known;
  return nullptr;
}

} // namespace detail

/// Reads a type's text: `const float* __restrict__`, `std::size_t`, `unsigned long`.
[[nodiscard]] inline TypeFacts type_facts(std::string_view text) {
  TypeFacts facts;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '*') facts.pointer = true;
    if (c == '&') facts.reference = true;
    if (!is_name_start(c)) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && (is_name_character(text[end]) || text[end] == ':')) ++end;
    const std::string_view word = text.substr(i, end - i);
    i = end;
    // A const behind the star qualifies the pointer, not what it points to.
    if (word == "const" || word == "constexpr" || word == "__constant__" || word == "__constant") {
      facts.constant = facts.constant || !facts.pointer;
    } else if (word == "static" || word == "extern" || word == "thread_local" || word == "__shared__") {
      facts.persistent = true;
      facts.shared = facts.shared || word == "__shared__";
    } else if (const detail::TypeWord* known = detail::find_type_word(word); known != nullptr) {
      const bool wider = known->size > facts.size || word == "short" || word == "char";
      if (wider && !(facts.size != 0 && word == "int")) facts.size = known->size;
      facts.floating = facts.floating || known->kind == 'f' || known->kind == 'v';
      facts.integer = facts.integer || known->kind == 'i' || known->kind == 'u';
      facts.is_unsigned = facts.is_unsigned || known->kind == 'u';
    }
  }
  if (facts.floating) facts.integer = false; // "long double"
  return facts;
}

/// Whether the text of a callee or cast is the name of an integer type.
[[nodiscard]] inline bool is_integer_type_name(std::string_view name) {
  const TypeFacts facts = type_facts(name);
  return facts.integer && !facts.pointer;
}

} // namespace mtmc
