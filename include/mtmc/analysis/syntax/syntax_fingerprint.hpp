#pragma once

#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

/// \file
/// Fingerprints of syntax nodes: how the printer knows which nodes still are what the parser read.

namespace mtmc::inline MTMC_ABI::detail {

[[nodiscard]] inline std::uint64_t mix(std::uint64_t state, std::uint64_t value) noexcept {
  state = (state ^ value) * 0x9e3779b97f4a7c15U;
  return state ^ (state >> 29U);
}

[[nodiscard]] inline std::uint64_t mix(std::uint64_t state, std::string_view text) noexcept {
  state = mix(state, text.size());
  while (!text.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = text.size() < sizeof word ? text.size() : sizeof word;
    std::memcpy(&word, text.data(), count);
    state = mix(state, word);
    text.remove_prefix(count);
  }
  return state;
}

/// Of a node's own fields, children and trivia aside.
[[nodiscard]] inline std::uint64_t own_fingerprint(const SyntaxNode& node) noexcept {
  std::uint64_t state = mix(0x6d746d63U, static_cast<std::uint64_t>(node.kind));
  state = mix(state, node.text);
  if (!node.type.empty()) state = mix(state, node.type);
  return node.suffix.empty() ? state : mix(mix(state, 1U), node.suffix);
}

/// Of a node from its own fields, folding in one child after the other.
[[nodiscard]] inline std::uint64_t fold_child(std::uint64_t state, const SyntaxNode& child,
                                              std::uint64_t child_fingerprint) noexcept {
  state = mix(state, child_fingerprint);
  if (!child.leading_trivia.empty()) state = mix(state, child.leading_trivia);
  return child.trailing_trivia.empty() ? state : mix(state ^ 1U, child.trailing_trivia);
}

/// Which children belong to the part of a statement before its body: the first `count` from `begin` on.
struct HeaderChildren {
  std::size_t begin = 0;
  std::size_t end = 0;
};

[[nodiscard]] inline HeaderChildren header_children(const SyntaxNode& node) noexcept {
  const std::size_t count = node.children.size();
  switch (node.kind) {
  case NodeKind::function:
    return {0, count == 0 ? 0 : count - 1};
  case NodeKind::for_loop:
    return {0, count < 3 ? count : 3};
  case NodeKind::while_loop:
  case NodeKind::if_statement:
    return {0, count < 1 ? count : 1};
  default:
    return {0, 0};
  }
}

/// The fingerprints of one node.
struct Fingerprints {
  std::uint64_t whole = 0;
  std::uint64_t header = 0; ///< of the node without its body
};

/// Visits `node` and everything below it, children first, with its fingerprints: `visit(node, fingerprints)`.
/// Returns those of `node`. A node's own trivia does not count, as it stands outside the node's range; its
/// children's does.
template <class Node, class Visitor> Fingerprints fingerprint_tree(Node& node, const Visitor& visit) {
  Fingerprints result;
  result.whole = result.header = own_fingerprint(node);
  const HeaderChildren header = header_children(node);
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const std::uint64_t child = fingerprint_tree(node.children[i], visit).whole;
    result.whole = fold_child(result.whole, node.children[i], child);
    if (i >= header.begin && i < header.end)
      result.header = fold_child(result.header, node.children[i], child);
  }
  result.whole = mix(result.whole, node.children.size());
  visit(node, result);
  return result;
}

/// Remembers in every node what it is now; the parser's last step.
inline void seal(SyntaxNode& root) {
  (void)fingerprint_tree(root, [](SyntaxNode& node, const Fingerprints& fingerprints) {
    node.origin.fingerprint = fingerprints.whole;
    node.origin.header_fingerprint = fingerprints.header;
  });
}

} // namespace mtmc::detail
