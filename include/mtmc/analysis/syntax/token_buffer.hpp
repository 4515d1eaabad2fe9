#pragma once

#include <mtmc/analysis/syntax/lexer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// The tokens a C-family parser looks at: without trivia, identifiers classified, brackets paired.

namespace mtmc::inline MTMC_ABI::detail {

/// What an identifier means to the grammar.
enum class Word : std::uint8_t {
  plain,            ///< an ordinary identifier, or no identifier at all
  control,          ///< starts a statement the parser models: for, while, do, if, return, break, continue
  unmodelled,       ///< starts a statement or item the parser keeps as opaque text: switch, goto, using, ...
  elaborated,       ///< struct, class, union, enum
  type,             ///< a builtin type word: unsigned, float, float4, auto, ...
  qualifier,        ///< const, static, __shared__, ...
  argued_qualifier, ///< a qualifier that may take arguments: alignas(64), __attribute__((...)), ...
  soft_qualifier,   ///< OpenCL's qualifiers without underscores, which are ordinary names elsewhere
  named_cast,       ///< static_cast, ...
  size_operator,    ///< sizeof, alignof
  constant,         ///< true, false, nullptr
  reserved,         ///< any other keyword: never a name
};

struct WordEntry {
  std::string_view text;
  Word word;
};

/// Sorted by text.
inline constexpr auto word_table = std::to_array<WordEntry>({
    {"_Alignas", Word::argued_qualifier},
    {"_Alignof", Word::size_operator},
    {"_Atomic", Word::qualifier},
    {"_Bool", Word::type},
    {"_Complex", Word::type},
    {"_Float16", Word::type},
    {"_Generic", Word::reserved},
    {"_Noreturn", Word::qualifier},
    {"_Pragma", Word::unmodelled},
    {"_Static_assert", Word::unmodelled},
    {"__align__", Word::argued_qualifier},
    {"__asm", Word::unmodelled},
    {"__asm__", Word::unmodelled},
    {"__attribute", Word::argued_qualifier},
    {"__attribute__", Word::argued_qualifier},
    {"__bf16", Word::type},
    {"__cluster_dims__", Word::argued_qualifier},
    {"__constant", Word::qualifier},
    {"__constant__", Word::qualifier},
    {"__device__", Word::qualifier},
    {"__extension__", Word::qualifier},
    {"__forceinline", Word::qualifier},
    {"__forceinline__", Word::qualifier},
    {"__fp16", Word::type},
    {"__global", Word::qualifier},
    {"__global__", Word::qualifier},
    {"__grid_constant__", Word::qualifier},
    {"__half", Word::type},
    {"__half2", Word::type},
    {"__host__", Word::qualifier},
    {"__inline", Word::qualifier},
    {"__inline__", Word::qualifier},
    {"__kernel", Word::qualifier},
    {"__launch_bounds__", Word::argued_qualifier},
    {"__local", Word::qualifier},
    {"__managed__", Word::qualifier},
    {"__maxnreg__", Word::argued_qualifier},
    {"__nv_bfloat16", Word::type},
    {"__nv_bfloat162", Word::type},
    {"__private", Word::qualifier},
    {"__read_only", Word::qualifier},
    {"__restrict", Word::qualifier},
    {"__restrict__", Word::qualifier},
    {"__shared__", Word::qualifier},
    {"__typeof__", Word::reserved},
    {"__volatile__", Word::qualifier},
    {"__write_only", Word::qualifier},
    {"alignas", Word::argued_qualifier},
    {"alignof", Word::size_operator},
    {"asm", Word::unmodelled},
    {"auto", Word::type},
    {"bool", Word::type},
    {"break", Word::control},
    {"case", Word::unmodelled},
    {"catch", Word::reserved},
    {"char", Word::type},
    {"char16_t", Word::type},
    {"char32_t", Word::type},
    {"char8_t", Word::type},
    {"class", Word::elaborated},
    {"co_await", Word::reserved},
    {"co_return", Word::unmodelled},
    {"co_yield", Word::reserved},
    {"concept", Word::unmodelled},
    {"const", Word::qualifier},
    {"const_cast", Word::named_cast},
    {"constant", Word::soft_qualifier},
    {"consteval", Word::qualifier},
    {"constexpr", Word::qualifier},
    {"constinit", Word::qualifier},
    {"continue", Word::control},
    {"decltype", Word::reserved},
    {"default", Word::unmodelled},
    {"delete", Word::reserved},
    {"do", Word::control},
    {"double", Word::type},
    {"dynamic_cast", Word::named_cast},
    {"else", Word::reserved},
    {"enum", Word::elaborated},
    {"explicit", Word::qualifier},
    {"extern", Word::qualifier},
    {"false", Word::constant},
    {"float", Word::type},
    {"for", Word::control},
    {"friend", Word::qualifier},
    {"global", Word::soft_qualifier},
    {"goto", Word::unmodelled},
    {"half", Word::type},
    {"if", Word::control},
    {"inline", Word::qualifier},
    {"int", Word::type},
    {"int16_t", Word::type},
    {"int32_t", Word::type},
    {"int64_t", Word::type},
    {"int8_t", Word::type},
    {"intptr_t", Word::type},
    {"kernel", Word::soft_qualifier},
    {"local", Word::soft_qualifier},
    {"long", Word::type},
    {"mutable", Word::qualifier},
    {"namespace", Word::unmodelled},
    {"new", Word::reserved},
    {"noexcept", Word::reserved},
    {"nullptr", Word::constant},
    {"operator", Word::reserved},
    {"private", Word::soft_qualifier},
    {"protected", Word::reserved},
    {"ptrdiff_t", Word::type},
    {"public", Word::reserved},
    {"register", Word::qualifier},
    {"reinterpret_cast", Word::named_cast},
    {"requires", Word::reserved},
    {"restrict", Word::qualifier},
    {"return", Word::control},
    {"short", Word::type},
    {"signed", Word::type},
    {"size_t", Word::type},
    {"sizeof", Word::size_operator},
    {"static", Word::qualifier},
    {"static_assert", Word::unmodelled},
    {"static_cast", Word::named_cast},
    {"struct", Word::elaborated},
    {"switch", Word::unmodelled},
    {"template", Word::unmodelled},
    {"thread_local", Word::qualifier},
    {"throw", Word::reserved},
    {"true", Word::constant},
    {"try", Word::unmodelled},
    {"typedef", Word::unmodelled},
    {"typename", Word::qualifier},
    {"typeof", Word::reserved},
    {"uchar", Word::type},
    {"uint", Word::type},
    {"uint16_t", Word::type},
    {"uint32_t", Word::type},
    {"uint64_t", Word::type},
    {"uint8_t", Word::type},
    {"uintptr_t", Word::type},
    {"ulong", Word::type},
    {"union", Word::elaborated},
    {"unsigned", Word::type},
    {"ushort", Word::type},
    {"using", Word::unmodelled},
    {"void", Word::type},
    {"volatile", Word::qualifier},
    {"wchar_t", Word::type},
    {"while", Word::control},
});
static_assert(std::ranges::is_sorted(word_table, {}, &WordEntry::text));

/// True for the vector types of OpenCL and CUDA: `float4`, `uchar16`.
[[nodiscard]] inline bool is_vector_type(std::string_view text) noexcept {
  std::size_t digits = text.size();
  while (digits > 0 && is_digit(text[digits - 1])) --digits;
  const std::string_view base = text.substr(0, digits);
  const std::string_view count = text.substr(digits);
  const auto is_one_of = [](std::string_view value, auto... options) { return ((value == options) || ...); };
  return is_one_of(count, "1", "2", "3", "4", "8", "16") &&
         is_one_of(base, "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float",
                   "double", "half", "longlong", "ulonglong");
}

[[nodiscard]] inline Word classify_word(std::string_view text) noexcept {
  const auto found = std::ranges::lower_bound(word_table, text, {}, &WordEntry::text);
  if (found != word_table.end() && found->text == text) return found->word;
  return is_digit(text.back()) && is_vector_type(text) ? Word::type : Word::plain;
}

/// The significant tokens of a text. Any index is valid: past the end lies a token of kind `whitespace` with
/// no text.
class TokenBuffer {
public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  TokenBuffer(std::string_view source, const LexerOptions& options)
      : source_(source), tokens_(lex(source, options)) {
    std::erase_if(tokens_, [](const Token& token) { return is_trivia(token.kind); });
    words_.resize(tokens_.size(), Word::plain);
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (tokens_[i].kind == TokenKind::identifier) words_[i] = classify_word(text(i));
    pair_brackets();
    end_.begin = end_.end = source.size();
    end_.kind = TokenKind::whitespace;
  }

  [[nodiscard]] std::size_t size() const noexcept { return tokens_.size(); }
  [[nodiscard]] std::string_view source() const noexcept { return source_; }
  [[nodiscard]] const Token& token(std::size_t index) const noexcept {
    return index < tokens_.size() ? tokens_[index] : end_;
  }
  [[nodiscard]] std::string_view text(std::size_t index) const { return token(index).text(source_); }
  [[nodiscard]] TokenKind kind(std::size_t index) const noexcept { return token(index).kind; }
  [[nodiscard]] Word word(std::size_t index) const noexcept {
    return index < words_.size() ? words_[index] : Word::plain;
  }

  /// True if the token at `index` is this punctuator or word.
  [[nodiscard]] bool is(std::size_t index, std::string_view expected) const {
    return text(index) == expected;
  }

  /// True for an identifier that may name something.
  [[nodiscard]] bool is_plain_name(std::size_t index) const noexcept {
    return kind(index) == TokenKind::identifier &&
           (word(index) == Word::plain || word(index) == Word::soft_qualifier);
  }

  /// The index of the bracket that closes the one at `index`, or `none`.
  [[nodiscard]] std::size_t closing(std::size_t index) const noexcept {
    return index < partners_.size() && partners_[index] > index ? partners_[index] : none;
  }

  /// The trivia before the token at `index`.
  [[nodiscard]] std::string_view gap(std::size_t index) const noexcept {
    const std::size_t begin = index == 0 ? 0 : token(index - 1).end;
    return source_.substr(begin, token(index).begin - begin);
  }

  /// True if no token before it stands on the token's line.
  [[nodiscard]] bool starts_line(std::size_t index) const noexcept {
    return index == 0 || gap(index).find('\n') != std::string_view::npos;
  }

private:
  /// Pairs (), [] and {}. A closing brace also ends whatever round or square bracket is still open inside it;
  /// any other bracket without a partner stays unpaired.
  void pair_brackets() {
    partners_.resize(tokens_.size(), 0);
    std::vector<std::size_t> open;
    std::size_t open_braces = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != TokenKind::punctuator || tokens_[i].end - tokens_[i].begin != 1) continue;
      const char c = source_[tokens_[i].begin];
      if (c == '(' || c == '[' || c == '{') {
        open.push_back(i);
        open_braces += c == '{' ? 1 : 0;
        continue;
      }
      if (c != ')' && c != ']' && c != '}') continue;
      const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (c == '}' && open_braces == 0) continue;
      const auto top = [&] { return open.empty() ? '{' : source_[tokens_[open.back()].begin]; };
      while (top() != wanted && top() != '{') open.pop_back();
      if (open.empty() || top() != wanted) continue;
      partners_[open.back()] = i;
      open.pop_back();
      open_braces -= c == '}' ? 1 : 0;
    }
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  std::vector<Word> words_;
  std::vector<std::size_t> partners_; ///< for an opening bracket the index of its partner, else 0
  Token end_;
};

/// The tokens [first, last) as one text in canonical spacing, which does not depend on how they were spaced:
/// blanks between words, after commas and round arithmetic, none before `*` and `&`. With `keep_lines`, a
/// line break between tokens stays one.
[[nodiscard]] inline std::string join_tokens(const TokenBuffer& tokens, std::size_t first, std::size_t last,
                                             bool keep_lines = false) {
  const auto is_word = [&](std::size_t i) {
    const TokenKind kind = tokens.kind(i);
    return kind == TokenKind::identifier || kind == TokenKind::number || kind == TokenKind::string ||
           kind == TokenKind::character;
  };
  const auto is_arithmetic = [&](std::size_t i) {
    return tokens.is(i, "+") || tokens.is(i, "-") || tokens.is(i, "/") || tokens.is(i, "=") ||
           tokens.is(i, "->");
  };
  std::string text;
  for (std::size_t i = first; i < last; ++i) {
    if (i > first) {
      const char before = tokens.text(i - 1).back();
      const bool word = is_word(i);
      const bool spaced = (word && (is_word(i - 1) || before == '*' || before == '&' || before == '>' ||
                                    before == ')' || before == ']')) ||
                          before == ',' || is_arithmetic(i) || is_arithmetic(i - 1) ||
                          tokens.is(i - 1, "template");
      if (keep_lines && tokens.starts_line(i))
        text += '\n';
      else if (spaced)
        text += ' ';
    }
    text += tokens.text(i);
  }
  return text;
}

} // namespace mtmc::detail
