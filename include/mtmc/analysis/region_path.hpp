#pragma once

#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Stable paths of regions, and back from a path to the nodes.
///
///     path     = function | loop | loop { "+" component } | threads | store | launch { "+" launch }
///     function = name [ "#" n ]                    the n-th function of that name
///     loop     = function "/" component { "/" component }
///     component= variable [ "#" n ]                the n-th loop with that variable in the same loop (or
///                                                  function); "while", "do", "for" for loops without one
///     threads  = function "/threads:" axes         the body of a function as all threads of a launch execute
///     it store    = function "/store:" array [ "#" n ] the n-th statement outside its loops that assigns the
///     array launch   = "launch:" entry [ "#" n ]         the n-th launch of that entry
///
/// "gemm/i/j" is the j loop in the i loop of gemm; "f/i+i#2" two loops of f next to each other;
/// "launch:bias+launch:relu" two launches. Paths do not depend on lines, and not on edits elsewhere that keep
/// the names.

namespace mtmc::inline MTMC_ABI {

/// A node found by its path.
template <detail::AnySyntaxNode Node> struct LocatedNode {
  /// Null where the path leads nowhere.
  Node* node = nullptr;
  /// Child indices from the tree's root to the node.
  std::vector<std::size_t> indices{};
};

/// The variable a for loop's head names ("i"), or "while", "do", "for".
[[nodiscard]] inline std::string loop_component(const SyntaxNode& loop) {
  if (loop.kind == NodeKind::while_loop) return "while";
  if (loop.kind == NodeKind::do_loop) return "do";
  if (loop.kind != NodeKind::for_loop) return {};
  const SyntaxNode& init = loop_init(loop);
  if (init.kind == NodeKind::declaration && !init.children.empty()) return init.children.front().text;
  if (init.kind == NodeKind::assignment && left_operand(init).kind == NodeKind::name)
    return left_operand(init).text;
  const SyntaxNode& condition = loop_condition(loop);
  if (condition.kind == NodeKind::binary && left_operand(condition).kind == NodeKind::name)
    return left_operand(condition).text;
  return "for";
}

/// The entry function a `//@ launch` line names; empty for any other node.
[[nodiscard]] inline std::string launch_entry(const SyntaxNode& node) {
  if (node.kind != NodeKind::launch_comment) return {};
  std::string_view text = node.text;
  const auto skip_blanks = [&text] {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  };
  skip_blanks();
  if (!text.starts_with("//@") && !text.starts_with("#@")) return {};
  text.remove_prefix(text.front() == '#' ? 2 : 3);
  skip_blanks();
  if (!text.starts_with("launch")) return {};
  text.remove_prefix(6);
  skip_blanks();
  std::size_t length = 0;
  while (length < text.size() &&
         (text[length] == '_' || (text[length] >= '0' && text[length] <= '9') ||
          (text[length] >= 'a' && text[length] <= 'z') || (text[length] >= 'A' && text[length] <= 'Z')))
    ++length;
  return std::string(text.substr(0, length));
}

namespace detail {

struct PathComponent {
  std::string_view name;
  int number = 1;
};

/// "i#2" as name and number; number 0 if malformed.
[[nodiscard]] inline PathComponent read_component(std::string_view text) {
  PathComponent result{text, 1};
  const std::size_t hash = text.rfind('#');
  if (hash == std::string_view::npos) return result;
  result.name = text.substr(0, hash);
  result.number = 0;
  for (const char c : text.substr(hash + 1)) {
    if (c < '0' || c > '9' || result.number > 100000) return {result.name, 0};
    result.number = 10 * result.number + (c - '0');
  }
  return result;
}

/// Finds the n-th node below `from` that `matches`, without entering nodes for which `stops` holds.
template <AnySyntaxNode Node, class Matches, class Stops>
[[nodiscard]] bool find_nth(Node& from, const Matches& matches, const Stops& stops, int& remaining,
                            LocatedNode<Node>& found) {
  for (std::size_t i = 0; i < from.children.size(); ++i) {
    Node& child = from.children[i];
    found.indices.push_back(i);
    if (matches(child) && --remaining == 0) {
      found.node = &child;
      return true;
    }
    if (!stops(child) && find_nth(child, matches, stops, remaining, found)) return true;
    found.indices.pop_back();
  }
  return false;
}

template <AnySyntaxNode Node>
[[nodiscard]] bool locate_function(Node& tree, std::string_view text, LocatedNode<Node>& found) {
  const PathComponent wanted = read_component(text);
  int remaining = wanted.number;
  return find_nth(
      tree,
      [&](const SyntaxNode& node) { return node.kind == NodeKind::function && node.text == wanted.name; },
      [](const SyntaxNode& node) { return node.kind != NodeKind::scope; }, remaining, found);
}

template <AnySyntaxNode Node>
[[nodiscard]] bool locate_launch(Node& tree, std::string_view text, LocatedNode<Node>& found) {
  const PathComponent wanted = read_component(text);
  if (wanted.name.empty()) return false;
  int remaining = wanted.number;
  return find_nth(
      tree, [&](const SyntaxNode& node) { return launch_entry(node) == wanted.name; },
      [](const SyntaxNode& node) { return node.kind != NodeKind::scope; }, remaining, found);
}

template <AnySyntaxNode Node>
[[nodiscard]] bool locate_loop(std::string_view text, LocatedNode<Node>& found) {
  const PathComponent wanted = read_component(text);
  int remaining = wanted.number;
  Node& from = *found.node;
  return find_nth(
      from, [&](const SyntaxNode& node) { return is_loop(node.kind) && loop_component(node) == wanted.name; },
      [](const SyntaxNode& node) { return is_loop(node.kind) || is_expression(node.kind); }, remaining,
      found);
}

inline constexpr std::string_view threads_prefix = "threads:";
inline constexpr std::string_view store_prefix = "store:";

/// The array that a statement assigns an element of, by its name in the text; empty if it is none.
[[nodiscard]] inline std::string_view stored_array(const SyntaxNode& node) {
  if (node.kind != NodeKind::expression_statement || operand(node).kind != NodeKind::assignment) return {};
  const SyntaxNode* place = &left_operand(operand(node));
  if (place->kind != NodeKind::subscript) return {};
  while (place->kind == NodeKind::subscript) place = &subscript_base(*place);
  return place->kind == NodeKind::name ? std::string_view(place->text) : std::string_view{};
}

template <AnySyntaxNode Node>
[[nodiscard]] bool locate_store(std::string_view text, LocatedNode<Node>& found) {
  const PathComponent wanted = read_component(text);
  int remaining = wanted.number;
  Node& from = *found.node;
  return find_nth(
      from, [&](const SyntaxNode& node) { return stored_array(node) == wanted.name; },
      [](const SyntaxNode& node) { return is_loop(node.kind) || is_expression(node.kind); }, remaining,
      found);
}

} // namespace detail

/// The nodes of a path in the tree: one for a function, loop or launch (its comment line), the members in
/// order for a sequence. Empty if the path names nothing. Works on const and mutable trees.
template <detail::AnySyntaxNode Node>
[[nodiscard]] std::vector<LocatedNode<Node>> locate(Node& tree, std::string_view path) {
  constexpr std::string_view launch_prefix = "launch:";
  std::vector<LocatedNode<Node>> result;
  LocatedNode<Node> around;
  const std::size_t last_slash = path.rfind('/');
  std::string_view members = path;
  const bool loops = last_slash != std::string_view::npos && !path.starts_with(launch_prefix);
  if (loops) {
    std::string_view parents = path.substr(0, last_slash);
    members = path.substr(last_slash + 1);
    bool first = true;
    while (true) {
      const std::size_t slash = parents.find('/');
      const std::string_view component = parents.substr(0, slash);
      if (!(first ? detail::locate_function(tree, component, around)
                  : detail::locate_loop(component, around)))
        return {};
      first = false;
      if (slash == std::string_view::npos) break;
      parents = parents.substr(slash + 1);
    }
  }
  while (true) {
    const std::size_t plus = members.find('+');
    std::string_view member = members.substr(0, plus);
    LocatedNode<Node> found = around;
    bool there = false;
    if (loops && member.starts_with(detail::threads_prefix))
      there = found.node->kind == NodeKind::function;
    else if (loops && member.starts_with(detail::store_prefix))
      there = detail::locate_store(member.substr(detail::store_prefix.size()), found);
    else if (loops)
      there = detail::locate_loop(member, found);
    else if (member.starts_with(launch_prefix))
      there = detail::locate_launch(tree, member.substr(launch_prefix.size()), found);
    else
      there = detail::locate_function(tree, member, found);
    if (!there) return {};
    result.push_back(std::move(found));
    if (plus == std::string_view::npos) return result;
    members = members.substr(plus + 1);
  }
}

/// The node that child indices lead to, or null.
template <detail::AnySyntaxNode Node>
[[nodiscard]] Node* node_at(Node& tree, const std::vector<std::size_t>& indices) {
  Node* node = &tree;
  for (const std::size_t index : indices) {
    if (index >= node->children.size()) return nullptr;
    node = &node->children[index];
  }
  return node;
}

} // namespace mtmc
