#pragma once
/// Definitions of analysis/syntax/syntax_query.hpp.

#include <mtmc/analysis/syntax/lexer.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// True if the identifier `tokens[i]` stands for itself: it is no member and no part of a qualified name.
[[nodiscard]] inline bool is_free_word(std::string_view text, const std::vector<Token>& tokens,
                                       std::size_t i) {
  const auto neighbour_is_one_of = [&](std::size_t index, auto... symbols) {
    return index < tokens.size() && ((tokens[index].text(text) == symbols) || ...);
  };
  return !neighbour_is_one_of(i + 1, "::") && (i == 0 || !neighbour_is_one_of(i - 1, "::", ".", "->"));
}

MTMC_INLINE std::vector<Token> words_of(std::string_view text) {
  std::vector<Token> tokens;
  for (const Token& token : lex(text)) {
    if (is_trivia(token.kind)) continue;
    if (token.kind != TokenKind::directive && token.kind != TokenKind::launch_comment) {
      tokens.push_back(token);
      continue;
    }
    const std::size_t skipped = token.kind == TokenKind::directive ? 1 : 3;
    for (Token inner : lex(token.text(text).substr(skipped))) {
      if (is_trivia(inner.kind)) continue;
      inner.begin += token.begin + skipped;
      inner.end += token.begin + skipped;
      tokens.push_back(inner);
    }
  }
  return tokens;
}

/// Replaces each free word `name` in `text`; returns how many.
inline std::size_t replace_word(std::string& text, std::string_view name, std::string_view replacement) {
  if (text.find(name) == std::string::npos) return 0;
  const std::vector<Token> tokens = words_of(text);
  std::string result;
  std::size_t copied = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text(text) != name || !is_free_word(text, tokens, i)) continue;
    result.append(text, copied, tokens[i].begin - copied);
    result += replacement;
    copied = tokens[i].end;
    ++count;
  }
  if (count == 0) return 0;
  result.append(text, copied);
  text = std::move(result);
  return count;
}

[[nodiscard]] inline bool is_plain_word(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, is_identifier_part);
}

MTMC_INLINE bool declares(const SyntaxNode& node, std::string_view name) {
  return node.kind == NodeKind::declaration &&
         std::ranges::any_of(node.children, [name](const SyntaxNode& child) { return child.text == name; });
}

MTMC_INLINE std::size_t Substitution::apply(SyntaxNode& node) const {
  if (node.kind == NodeKind::name) {
    if (node.text == name) {
      node = expression;
      return 1;
    }
    return is_plain_word(node.text) ? 0 : replace_word(node.text, name, in_text);
  }
  if (node.kind == NodeKind::opaque) return replace_word(node.text, name, in_text);
  if (node.kind == NodeKind::pragma && expression.kind == NodeKind::name)
    return replace_word(node.text, name, expression.text);
  if (node.kind == NodeKind::for_loop && !node.children.empty() && declares(node.children.front(), name))
    return 0;
  if (node.kind == NodeKind::function && std::ranges::any_of(node.children, [this](const SyntaxNode& child) {
        return child.kind == NodeKind::parameter && child.text == name;
      }))
    return 0;
  std::size_t count = 0;
  for (SyntaxNode& child : node.children) {
    if (child.kind == NodeKind::declaration && declares(child, name)) break; // hidden from here on
    count += apply(child);
  }
  return count;
}

/// Compares texts that mean the same however they are spaced.
[[nodiscard]] inline bool equal_but_for_blanks(std::string_view a, std::string_view b) noexcept {
  std::size_t i = 0;
  std::size_t j = 0;
  for (;;) {
    while (i < a.size() && is_blank(a[i])) ++i;
    while (j < b.size() && is_blank(b[j])) ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (a[i++] != b[j++]) return false;
  }
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::vector<std::string> names_used(const SyntaxNode& node) {
  std::vector<std::string> names;
  walk(node, [&](const SyntaxNode& part) {
    if (part.kind == NodeKind::name && detail::is_plain_word(part.text))
      names.push_back(part.text);
    else if (part.kind == NodeKind::name || part.kind == NodeKind::opaque)
      detail::names_in_text(part.text, [&](std::string_view word) { names.emplace_back(word); });
  });
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

MTMC_INLINE bool uses_name(const SyntaxNode& node, std::string_view name) {
  if (node.kind == NodeKind::name && node.text == name) return true;
  if (node.kind == NodeKind::opaque || (node.kind == NodeKind::name && !detail::is_plain_word(node.text))) {
    bool found = false;
    detail::names_in_text(node.text, [&](std::string_view word) { found = found || word == name; });
    return found;
  }
  return std::ranges::any_of(node.children,
                             [name](const SyntaxNode& child) { return uses_name(child, name); });
}

MTMC_INLINE std::size_t substitute(SyntaxNode& node, std::string_view name, const SyntaxNode& expression) {
  std::string text = print(expression);
  const bool atomic = expression.kind == NodeKind::name || expression.kind == NodeKind::literal;
  if (!atomic) text = '(' + text + ')';
  // `name` and `expression` may point into the tree that changes.
  const std::string wanted(name);
  const SyntaxNode replacement = expression; // NOLINT(performance-unnecessary-copy-initialization)
  return detail::Substitution{wanted, replacement, std::move(text)}.apply(node);
}

MTMC_INLINE std::size_t rename(SyntaxNode& node, std::string_view from, std::string_view to) {
  const std::string old_name(from);
  const std::string new_name(to);
  std::size_t count = 0;
  walk(node, [&](SyntaxNode& part) {
    switch (part.kind) {
    case NodeKind::name:
    case NodeKind::function:
    case NodeKind::parameter:
    case NodeKind::declarator:
    case NodeKind::opaque:
    case NodeKind::pragma:
    case NodeKind::launch_comment:
      if (part.text == old_name) {
        part.text = new_name;
        ++count;
      } else {
        count += detail::replace_word(part.text, old_name, new_name);
      }
      break;
    default:
      break;
    }
    if (!part.type.empty()) count += detail::replace_word(part.type, old_name, new_name);
  });
  return count;
}

MTMC_INLINE bool structurally_equal(const SyntaxNode& a, const SyntaxNode& b) {
  if (a.kind != b.kind || a.children.size() != b.children.size()) return false;
  const bool verbatim = a.kind == NodeKind::opaque || a.kind == NodeKind::preprocessor ||
                        a.kind == NodeKind::comment || a.kind == NodeKind::function ||
                        a.kind == NodeKind::parameter;
  if (a.kind != NodeKind::block &&
      !(verbatim ? detail::equal_but_for_blanks(a.text, b.text) : a.text == b.text))
    return false;
  if (!(verbatim ? detail::equal_but_for_blanks(a.type, b.type) : a.type == b.type)) return false;
  if (a.kind != NodeKind::scope && a.suffix != b.suffix) return false;
  return std::ranges::equal(a.children, b.children, [](const SyntaxNode& x, const SyntaxNode& y) {
    return structurally_equal(x, y);
  });
}

MTMC_INLINE std::string_view unnumbered(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const bool numbered =
      last != name.npos && last > 0 && name[last] == '_' && last + 1 < name.size() && name.size() - last <= 7;
  return numbered ? name.substr(0, last) : name;
}

MTMC_INLINE std::string fresh_name(const SyntaxNode& tree, std::string_view base) {
  std::vector<std::string> words;
  const auto collect = [&words](std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
      std::size_t end = i;
      while (end < text.size() && detail::is_identifier_part(text[end])) ++end;
      if (end > i) words.emplace_back(text.substr(i, end - i));
      i = std::max(end, i + 1);
    }
  };
  walk(tree, [&](const SyntaxNode& node) {
    collect(node.text);
    collect(node.type);
    collect(node.suffix);
    collect(node.leading_trivia);
    collect(node.trailing_trivia);
  });
  std::ranges::sort(words);
  std::string name(base);
  const std::string stem(unnumbered(base));
  int number = stem == base ? 2 : std::stoi(name.substr(stem.size() + 1)) + 1;
  for (; std::ranges::binary_search(words, name); ++number) name = stem + '_' + std::to_string(number);
  return name;
}

} // namespace mtmc
