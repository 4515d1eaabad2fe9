#pragma once
/// Definitions of backend/double_precision.hpp.

#include <mtmc/backend/defined_functions.hpp>
#include <mtmc/backend/double_precision.hpp>
#include <mtmc/backend/source_tokens.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::optional<std::string> DoubleTwinWriter::write(std::string_view text) {
  collect(text);
  own_ = defined_functions(tokens_);
  for (std::size_t i = 0; i < tokens_.size(); ++i)
    if (!translate(i)) return std::nullopt;
  std::string result;
  std::size_t done = 0;
  for (const auto& edit : edits_) {
    result.append(text.substr(done, edit.begin - done)).append(edit.spelling);
    done = edit.end;
  }
  return result.append(text.substr(done));
}

MTMC_INLINE bool DoubleTwinWriter::is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

MTMC_INLINE void DoubleTwinWriter::collect(std::string_view text) {
  SourceTokens source(text);
  for (auto token = source.next(); token.kind != SourceToken::Kind::end; token = source.next()) {
    const bool directive = token.starts_line && token.is("#") && !source.at_line_start();
    tokens_.push_back(std::move(token));
    if (!directive) continue;
    tokens_.push_back(source.next());
    if (tokens_.back().is("include")) header(source.next_header());
  }
}

MTMC_INLINE void DoubleTwinWriter::header(const SourceToken& name) {
  // Vectors of floats have half as many elements when these are doubles.
  bool vectors = name.kind != SourceToken::Kind::header;
  for (const std::string_view part : {"intrin", "arm_neon", "arm_sve", "simd", "stdfloat"})
    vectors = vectors || name.spelling.find(part) != std::string::npos;
  refused_ = refused_ || vectors;
}

MTMC_INLINE bool DoubleTwinWriter::token_is(std::size_t i, std::string_view spelling) const {
  return i < tokens_.size() && tokens_[i].is(spelling);
}

MTMC_INLINE bool DoubleTwinWriter::translate(std::size_t& i) {
  const auto& token = tokens_[i];
  if (refused_ || token.is("##")) return false;
  if (token.kind == SourceToken::Kind::number) return translate_number(token);
  if (token.is("(") && is_integer_pointer_cast(i)) return false;
  if (token.kind != SourceToken::Kind::name) return true;
  const std::string_view name = token.spelling;
  if (is_own(i)) return true;
  if (is_bound_to_float(name)) return is_order_to_compiler(i, name);
  if (name == "numeric_limits" && token_is(i + 1, "<") && token_is(i + 2, "float")) return limits(i);
  if (name == "float") {
    replace(token, "double");
  } else if (is_among(name, float_constants)) {
    replace(token, "double(" + token.spelling + ")");
  } else if (is_among(without_builtin(name), float_functions) || name == "__builtin_inff" ||
             name == "__builtin_huge_valf") {
    replace(token, token.spelling.substr(0, name.size() - 1));
  }
  return true;
}

MTMC_INLINE bool DoubleTwinWriter::is_own(std::size_t i) const {
  const bool of_the_library = i >= 2 && token_is(i - 1, "::") && token_is(i - 2, "std");
  return !of_the_library && own_.contains(tokens_[i].spelling);
}

MTMC_INLINE bool DoubleTwinWriter::is_order_to_compiler(std::size_t i, std::string_view name) const {
  if (name != "simd") return false;
  while (i > 0 && !tokens_[i].starts_line) --i;
  return token_is(i, "#") && token_is(i + 1, "pragma");
}

MTMC_INLINE std::string_view DoubleTwinWriter::without_builtin(std::string_view name) {
  constexpr std::string_view prefix = "__builtin_";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

MTMC_INLINE bool DoubleTwinWriter::is_bound_to_float(std::string_view name) {
  // `__m128`, `_mm256_add_ps`, `__builtin_ia32_addps`, `float32x4_t`, `_Float16`, `std::float32_t`; of CUDA
  // `float4`, `make_float4`, `__expf`, `__fadd_rn`, `__half2float`, `__uint_as_float`, `wmma`.
  for (const std::string_view start :
       {"__m128",     "__m256", "__m512", "_mm",    "__builtin_ia32", "_Float",  "__fp16",
        "__bf16",     "float1", "float2", "float3", "float4",         "float6",  "__float",
        "__f",        "__exp",  "__log",  "__sin",  "__cos",          "__tan",   "__pow",
        "make_float", "__half", "__nv",   "wmma",   "__uint_as",      "__int_as"})
    if (name.starts_with(start)) return true;
  return is_among(name, names_bound_to_float) || name == "__builtin_bit_cast" || name == "__builtin_memcpy" ||
         name == "__asm__" || name == "__asm";
}

MTMC_INLINE bool DoubleTwinWriter::is_integer_pointer_cast(std::size_t i) const {
  bool integer = false;
  for (++i; token_is(i, "::") || (i < tokens_.size() && tokens_[i].kind == SourceToken::Kind::name); ++i)
    integer = integer || is_among(tokens_[i].spelling, integer_types) || tokens_[i].spelling.ends_with("_t");
  return integer && token_is(i, "*") && token_is(i + 1, ")");
}

MTMC_INLINE bool DoubleTwinWriter::translate_number(const SourceToken& token) {
  const std::string_view text = token.spelling;
  if (text.find('_') != std::string_view::npos) return false; // a literal operator, of which nothing is known
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const bool real = text.find_first_of(hexadecimal ? "pP" : ".eE") != std::string_view::npos;
  // C++23's suffixes f16, f32, bf16 among them.
  if (real && !text.ends_with('f') && !text.ends_with('F'))
    return text.find_first_of("fF", hexadecimal ? text.find_first_of("pP") : 0) == std::string_view::npos;
  if (real) replace(token, "double(" + token.spelling + ")");
  return true;
}

MTMC_INLINE bool DoubleTwinWriter::limits(std::size_t& i) {
  if (!token_is(i + 3, ">") || !token_is(i + 4, "::") || !token_is(i + 6, "(") || !token_is(i + 7, ")"))
    return false;
  auto first = i;
  if (first >= 2 && token_is(first - 1, "::") && token_is(first - 2, "std")) first -= 2;
  if (first >= 1 && token_is(first - 1, "::")) --first;
  edits_.push_back({tokens_[first].begin, tokens_[first].begin, "double("});
  edits_.push_back({tokens_[i + 7].end, tokens_[i + 7].end, ")"});
  i += 7;
  return true;
}

MTMC_INLINE void DoubleTwinWriter::replace(const SourceToken& token, std::string spelling) {
  edits_.push_back({token.begin, token.end, std::move(spelling)});
}

/// Makes the f32 of scratch lines f64. Nothing if there are 16-bit formats, or the lines are malformed.
[[nodiscard]] inline std::optional<Kernel> with_double_scratch(Kernel kernel) {
  LaunchLines lines;
  try {
    lines = parse_launch_lines(kernel);
  } catch (const Error&) {
    return std::nullopt;
  }
  std::size_t at = 0;
  int line = 1;
  for (const auto& scratch : lines.scratch) {
    if (is_floating(scratch.type) && size_of(scratch.type) == 2) return std::nullopt;
    if (scratch.type != DataType::f32) continue;
    for (; line < scratch.line; ++line) at = kernel.source.find('\n', at) + 1;
    const auto type = kernel.source.find("f32", kernel.source.find(':', at));
    kernel.source.replace(type, 3, "f64");
  }
  return kernel;
}

MTMC_INLINE std::optional<Kernel> in_double_precision(const Kernel& kernel) {
  if (kernel.language.name != languages::cpp.name && kernel.language.name != languages::cuda.name)
    return std::nullopt;
  auto text = DoubleTwinWriter{}.write(kernel.source);
  if (!text) return std::nullopt;
  return with_double_scratch({kernel.language, std::move(*text), {}});
}

} // namespace mtmc::detail
