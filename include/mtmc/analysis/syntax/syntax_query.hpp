#pragma once

#include <mtmc/analysis/syntax/lexer.hpp>
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

namespace mtmc::inline MTMC_ABI {

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

/// The significant tokens of a text that is part of a node. A directive is looked into.
[[nodiscard]] std::vector<Token> words_of(std::string_view text);

/// Calls `use(name)` for each name in a text, those of members left out.
template <class Use> void names_in_text(std::string_view text, const Use& use) {
  const std::vector<Token> tokens = words_of(text);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool member = i > 0 && (tokens[i - 1].text(text) == "." || tokens[i - 1].text(text) == "->");
    if (tokens[i].kind == TokenKind::identifier && !member) use(tokens[i].text(text));
  }
}

/// The expression without casts around it.
[[nodiscard]] inline const SyntaxNode& without_casts(const SyntaxNode& expression) {
  return expression.kind == NodeKind::cast ? without_casts(operand(expression)) : expression;
}

/// True if one of the declarators of a declaration declares `name`.
[[nodiscard]] bool declares(const SyntaxNode& node, std::string_view name);

/// `substitute` with the printed expression at hand for opaque text.
struct Substitution {
  std::string_view name;
  const SyntaxNode& expression;
  std::string in_text; ///< what replaces the name in opaque text

  std::size_t apply(SyntaxNode& node) const;
};

} // namespace detail

/// All names an expression or statement uses, sorted, each once: variables, functions, and each identifier in
/// opaque text and in template arguments. Members after `.` and `->` and names of types are left out.
[[nodiscard]] std::vector<std::string> names_used(const SyntaxNode& node);

/// True if `name` is among `names_used(node)`.
[[nodiscard]] bool uses_name(const SyntaxNode& node, std::string_view name);

/// Replaces every use of the variable `name` in `node` by `expression` and returns how many there were. Stops
/// where an inner declaration hides the name; a declaration of the name in `node`'s own block hides it from
/// there on. In opaque text the printed expression is put in, in parentheses unless it is a name or a
/// literal.
std::size_t substitute(SyntaxNode& node, std::string_view name, const SyntaxNode& expression);

/// Renames `from` to `to` wherever it stands in `node`: declarations, parameters, functions, uses, opaque
/// text, types, pragmas and launch lines (members and parts of qualified names aside). Returns how many
/// places changed. The caller sees to it that `to` is free (`fresh_name`).
std::size_t rename(SyntaxNode& node, std::string_view from, std::string_view to);

/// True if two trees say the same: kinds, texts, types and children equal; positions, comments and blank
/// lines aside.
[[nodiscard]] bool structurally_equal(const SyntaxNode& a, const SyntaxNode& b);

/// A name without the number it ends in: "sum" for "sum_12", else the name itself.
[[nodiscard]] std::string_view unnumbered(std::string_view name);

/// A name that occurs nowhere in `tree`, not in comments or opaque text either: `base`, else `base_2`,
/// `base_3`, ... A base that ends in a number counts on from there: `sum_1`, else `sum_2`, `sum_3`, ...
[[nodiscard]] std::string fresh_name(const SyntaxNode& tree, std::string_view base);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/syntax/syntax_query_inl.hpp>
#endif
