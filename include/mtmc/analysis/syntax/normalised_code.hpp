#pragma once
/// What is left of a kernel when everything is taken away that does not change what a machine does with it.

#include <mtmc/analysis/syntax/lexer.hpp>
#include <mtmc/core/kernel.hpp>

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Words that mean the same in every text; all others are somebody's names.
[[nodiscard]] inline bool has_fixed_meaning(std::string_view word) {
  static const std::set<std::string_view> words{
      "void",     "const",     "float",    "double", "int",        "long",       "unsigned", "size_t",
      "char",     "signed",    "for",      "if",     "else",       "return",     "while",    "static",
      "inline",   "std",       "expf",     "logf",   "sqrtf",      "fabsf",      "tanhf",    "powf",
      "erff",     "sinf",      "cosf",     "fmaxf",  "fminf",      "log1pf",     "atanf",    "floorf",
      "exp",      "log",       "sqrt",     "fabs",   "tanh",       "pow",        "erf",      "sin",
      "cos",      "fmax",      "fmin",     "log1p",  "atan",       "floor",      "max",      "min",
      "launch",   "scratch",   "ceil_div", "f32",    "f64",        "i32",        "i8",       "blockIdx",
      "blockDim", "threadIdx", "gridDim",  "x",      "__global__", "__device__", "extern",   "static_cast"};
  return words.contains(word);
}

} // namespace detail

/// A text without comments and blanks, launch and scratch lines kept, and with names numbered by their first
/// use: equal for kernels that differ in names and layout of the text alone.
[[nodiscard]] inline std::string normalised_code(std::string_view source) {
  std::string result;
  std::map<std::string, std::string, std::less<>> names;
  const auto add = [&](const auto& self, std::string_view text) -> void {
    std::string_view before;
    for (const auto& token : lex(text)) {
      const auto word = token.text(text);
      if (token.kind == TokenKind::launch_comment) {
        self(self, word.substr(3));
      } else if (token.kind == TokenKind::identifier) {
        // x is a member of blockIdx and its like there, and a name elsewhere.
        const bool fixed = word == "x" ? before == "." : detail::has_fixed_meaning(word);
        if (fixed) {
          result += std::string(word) + ' ';
        } else {
          const auto place = names.try_emplace(std::string(word), "v" + std::to_string(names.size())).first;
          result += place->second + ' ';
        }
      } else if (!is_trivia(token.kind) && token.kind != TokenKind::directive) {
        result += word;
      }
      if (!is_trivia(token.kind)) before = word;
    }
  };
  add(add, source);
  return result;
}

} // namespace mtmc
