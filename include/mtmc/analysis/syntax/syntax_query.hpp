#pragma once

#include <mtmc/analysis/syntax/lexer.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// \file
/// Questions about syntax trees, and the two edits every transformation needs: `substitute` and `rename`.
/// In `opaque` nodes names are found word by word, so that what is not understood is never taken to be
/// independent.

namespace mtmc {

/// Visits `node` and everything below it, parents first. `visit(node)` returns nothing, or false to leave out
/// what lies below that node. A mutable node may be edited while visited: its children are visited as they
/// are afterwards.
template <detail::AnySyntaxNode Node, class Visitor> void walk(Node& node, Visitor&& visit) {
  if constexpr (std::is_same_v<decltype(visit(node)), bool>) {
    if (!visit(node)) return;
  } else {
    visit(node);
  }
  for (auto& child : node.children) walk(child, visit);
}

/// The first function definition with this name, however deep in scopes, or null.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node* find_function(Node& root, std::string_view name) {
  if (root.kind == NodeKind::function) return root.text == name ? &root : nullptr;
  if (root.kind != NodeKind::translation_unit && root.kind != NodeKind::scope) return nullptr;
  for (auto& child : root.children)
    if (Node* const found = find_function(child, name); found != nullptr) return found;
  return nullptr;
}

/// All function definitions below `root`, in order.
template <detail::AnySyntaxNode Node> [[nodiscard]] std::vector<Node*> functions(Node& root) {
  std::vector<Node*> found;
  walk(root, [&](Node& node) {
    if (node.kind == NodeKind::function) found.push_back(&node);
    return node.kind == NodeKind::translation_unit || node.kind == NodeKind::scope;
  });
  return found;
}

namespace detail {

/// True if the identifier `tokens[i]` stands for itself: it is no member and no part of a qualified name.
[[nodiscard]] inline bool is_free_word(std::string_view text, const std::vector<Token>& tokens,
                                       std::size_t i) {
  const auto neighbour_is_one_of = [&](std::size_t index, auto... symbols) {
    return index < tokens.size() && ((tokens[index].text(text) == symbols) || ...);
  };
  return !neighbour_is_one_of(i + 1, "::") && (i == 0 || !neighbour_is_one_of(i - 1, "::", ".", "->"));
}

/// The significant tokens of a text that is part of a node. A directive is looked into.
[[nodiscard]] inline std::vector<Token> words_of(std::string_view text) {
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

/// Calls `use(name)` for each name in a text, those of members left out.
template <class Use> void names_in_text(std::string_view text, const Use& use) {
  const std::vector<Token> tokens = words_of(text);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool member = i > 0 && (tokens[i - 1].text(text) == "." || tokens[i - 1].text(text) == "->");
    if (tokens[i].kind == TokenKind::identifier && !member) use(tokens[i].text(text));
  }
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

/// True if one of the declarators of a declaration declares `name`.
[[nodiscard]] inline bool declares(const SyntaxNode& node, std::string_view name) {
  return node.kind == NodeKind::declaration &&
         std::ranges::any_of(node.children, [name](const SyntaxNode& child) { return child.text == name; });
}

/// `substitute` with the printed expression at hand for opaque text.
struct Substitution {
  std::string_view name;
  const SyntaxNode& expression;
  std::string in_text; ///< what replaces the name in opaque text

  std::size_t apply(SyntaxNode& node) const {
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
    if (node.kind == NodeKind::function &&
        std::ranges::any_of(node.children, [this](const SyntaxNode& child) {
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
};

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

} // namespace detail

/// All names an expression or statement uses, sorted, each once: variables, functions, and each identifier in
/// opaque text and in template arguments. Members after `.` and `->` and names of types are left out.
[[nodiscard]] inline std::vector<std::string> names_used(const SyntaxNode& node) {
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

/// True if `name` is among `names_used(node)`.
[[nodiscard]] inline bool uses_name(const SyntaxNode& node, std::string_view name) {
  if (node.kind == NodeKind::name && node.text == name) return true;
  if (node.kind == NodeKind::opaque || (node.kind == NodeKind::name && !detail::is_plain_word(node.text))) {
    bool found = false;
    detail::names_in_text(node.text, [&](std::string_view word) { found = found || word == name; });
    return found;
  }
  return std::ranges::any_of(node.children,
                             [name](const SyntaxNode& child) { return uses_name(child, name); });
}

/// Replaces every use of the variable `name` in `node` by `expression` and returns how many there were. Stops
/// where an inner declaration hides the name; a declaration of the name in `node`'s own block hides it from
/// there on. In opaque text the printed expression is put in, in parentheses unless it is a name or a
/// literal.
inline std::size_t substitute(SyntaxNode& node, std::string_view name, const SyntaxNode& expression) {
  std::string text = print(expression);
  const bool atomic = expression.kind == NodeKind::name || expression.kind == NodeKind::literal;
  if (!atomic) text = '(' + text + ')';
  const std::string wanted(name);            // `name` may point into the tree that changes
  const SyntaxNode replacement = expression; // and so may `expression`
  return detail::Substitution{wanted, replacement, std::move(text)}.apply(node);
}

/// Renames `from` to `to` wherever it stands in `node`: declarations, parameters, functions, uses, opaque
/// text, types, pragmas and launch lines (members and parts of qualified names aside). Returns how many
/// places changed. The caller sees to it that `to` is free (`fresh_name`).
inline std::size_t rename(SyntaxNode& node, std::string_view from, std::string_view to) {
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

/// True if two trees say the same: kinds, texts, types and children equal; positions, comments and blank
/// lines aside.
[[nodiscard]] inline bool structurally_equal(const SyntaxNode& a, const SyntaxNode& b) {
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

/// A name without the number it ends in: "sum" for "sum_12", else the name itself.
[[nodiscard]] inline std::string_view unnumbered(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  const bool numbered =
      last != name.npos && last > 0 && name[last] == '_' && last + 1 < name.size() && name.size() - last <= 7;
  return numbered ? name.substr(0, last) : name;
}

/// A name that occurs nowhere in `tree`, not in comments or opaque text either: `base`, else `base_2`,
/// `base_3`, ... A base that ends in a number counts on from there: `sum_1`, else `sum_2`, `sum_3`, ...
[[nodiscard]] inline std::string fresh_name(const SyntaxNode& tree, std::string_view base) {
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
