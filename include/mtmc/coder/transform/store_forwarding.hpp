#pragma once
/// What fusion gains: a value that one statement stores and a later one of the same iteration loads again
/// stays in a scalar, and a buffer that nobody reads any more goes.

#include <mtmc/analysis/element_type.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>
#include <mtmc/coder/transform/loop_sinking.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The assignment `array[...] = value` that a statement is, or null.
template <AnySyntaxNode Node> [[nodiscard]] Node* stored_assignment(Node& statement) {
  if (statement.kind != NodeKind::expression_statement || statement.children.empty()) return nullptr;
  Node& expression = statement.children.front();
  if (expression.kind != NodeKind::assignment || expression.text != "=") return nullptr;
  return left_operand(expression).kind == NodeKind::subscript ? &expression : nullptr;
}

/// Replaces reads of `place` below a node; returns how many there were. What an assignment by `=` writes is
/// not a read.
inline std::size_t replace_reads(SyntaxNode& node, const SyntaxNode& place, const SyntaxNode& value) {
  if (structurally_equal(node, place)) {
    node = value;
    return 1;
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    SyntaxNode& child = node.children[i];
    const bool written = node.kind == NodeKind::assignment && node.text == "=" && i == 0;
    if (written && child.kind == NodeKind::subscript)
      count += replace_reads(subscript_index(child), place, value);
    else
      count += replace_reads(child, place, value);
  }
  return count;
}

/// Whether a statement does anything with an array but read its elements: writes one, updates one, or hands
/// the pointer on.
[[nodiscard]] inline bool may_write(const SyntaxNode& statement, const std::string& array) {
  bool writes = false;
  const auto visit = [&](const auto& self, const SyntaxNode& node, bool subscripted) -> void {
    if (node.kind == NodeKind::opaque && uses_name(node, array)) writes = true;
    if (is_name(node, array) && !subscripted) writes = true;
    const bool changes =
        node.kind == NodeKind::assignment || node.kind == NodeKind::postfix ||
        (node.kind == NodeKind::unary && (node.text == "++" || node.text == "--" || node.text == "&"));
    if (changes && base_name(node.children.front()) == array) writes = true;
    for (std::size_t i = 0; i < node.children.size(); ++i)
      self(self, node.children[i], node.kind == NodeKind::subscript && i == 0);
  };
  visit(visit, statement, false);
  return writes;
}

/// The element type of a pointer or array that a function declares; empty if it declares none of that name.
[[nodiscard]] inline std::string element_type_of(const SyntaxNode& function, const std::string& array) {
  std::string type;
  walk(function, [&](const SyntaxNode& node) {
    if (node.kind == NodeKind::parameter && node.text == array) type = bare_type(node.type);
    if (node.kind == NodeKind::declaration)
      for (const SyntaxNode& declarator : node.children)
        if (declarator.text == array) type = bare_type(node.type);
  });
  return type;
}

/// Keeps in scalars what statements of one list store and later ones load from the same place. `function` is
/// the function they stand in, `tree` the whole kernel (for names that are free).
inline void forward_stores(std::vector<SyntaxNode>& list, const SyntaxNode& function,
                           const SyntaxNode& tree) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const SyntaxNode* const assignment = stored_assignment(list[i]);
    if (assignment == nullptr) continue;
    const SyntaxNode place = left_operand(*assignment);
    const SyntaxNode stored = right_operand(*assignment);
    const std::string array = base_name(place);
    const std::string type = element_type_of(function, array);
    if (type.empty()) continue;
    // a scalar that holds the value already and keeps it
    bool plain = stored.kind == NodeKind::name && element_type_of(function, stored.text) == type;
    for (std::size_t later = i + 1; plain && later < list.size(); ++later)
      plain = !has_name(assigned_scalars(list[later]), stored.text);
    const std::string name = plain ? stored.text : fresh_name(tree, array + "_value");

    const auto subscript_names = names_used(place);
    std::size_t replaced = 0;
    for (std::size_t later = i + 1; later < list.size(); ++later) {
      SyntaxNode* const next = stored_assignment(list[later]);
      if (next != nullptr && structurally_equal(left_operand(*next), place) &&
          !may_write(right_operand(*next), array)) {
        replaced += replace_reads(right_operand(*next), place, make_name(name));
        break;
      }
      if (may_write(list[later], array)) break;
      const NameSet changed = assigned_scalars(list[later]);
      if (std::any_of(subscript_names.begin(), subscript_names.end(),
                      [&](const std::string& used) { return has_name(changed, used); }))
        break;
      bool hidden = false; // a declaration inside that means something else by a name of the subscript
      walk(list[later], [&](const SyntaxNode& node) {
        if (node.kind == NodeKind::declarator &&
            std::find(subscript_names.begin(), subscript_names.end(), node.text) != subscript_names.end())
          hidden = true;
      });
      if (hidden) break;
      replaced += replace_reads(list[later], place, make_name(name));
    }
    if (replaced == 0 || plain) continue;
    SyntaxNode value = make_declaration("const " + type, name, stored);
    value.leading_trivia = std::exchange(list[i].leading_trivia, {});
    right_operand(list[i].children.front()) = make_name(name);
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), std::move(value));
    ++i;
  }
}

/// Whether a function only ever stores into elements of a parameter, by plain statements.
[[nodiscard]] inline bool only_stores_into(const SyntaxNode& function, const std::string& parameter) {
  bool only = true;
  const auto visit = [&](const auto& self, const SyntaxNode& node) -> void {
    if (const SyntaxNode* store = stored_assignment(node);
        store != nullptr && left_operand(*store).children.front().kind == NodeKind::name &&
        left_operand(*store).children.front().text == parameter) {
      bool effects = uses_name(right_operand(*store), parameter) ||
                     uses_name(subscript_index(left_operand(*store)), parameter);
      walk(right_operand(*store), [&](const SyntaxNode& part) {
        if (part.kind == NodeKind::assignment || part.kind == NodeKind::postfix ||
            part.kind == NodeKind::opaque)
          effects = true;
      });
      if (effects) only = false;
      return;
    }
    if (is_name(node, parameter) || (node.kind == NodeKind::opaque && uses_name(node, parameter)))
      only = false;
    for (const SyntaxNode& child : node.children) self(self, child);
  };
  visit(visit, function_body(function));
  return only;
}

/// Removes the statements that store into a parameter.
inline void remove_stores(SyntaxNode& node, const std::string& parameter) {
  std::erase_if(node.children, [&](const SyntaxNode& child) {
    const SyntaxNode* const store = stored_assignment(child);
    return node.kind == NodeKind::block && store != nullptr &&
           is_name(left_operand(*store).children.front(), parameter);
  });
  for (SyntaxNode& child : node.children) {
    const SyntaxNode* const store = stored_assignment(child);
    if (store != nullptr && is_name(left_operand(*store).children.front(), parameter))
      child = make_block();
    else
      remove_stores(child, parameter);
  }
}

/// Removes scratch buffers that no launch reads: their stores, parameters, launch arguments and `scratch`
/// lines.
inline void remove_dead_scratch(SyntaxNode& tree) {
  for (std::size_t line = 0; line < tree.children.size(); ++line) {
    const std::string buffer = scratch_name(tree.children[line]);
    if (buffer.empty()) continue;
    bool dead = true;
    struct Use {
      SyntaxNode* function;
      std::string parameter;
    };
    std::vector<Use> uses;
    for (const LaunchNode& launch : launches_of(tree)) {
      SyntaxNode* const function = find_function(tree, launch.line.entry);
      for (std::size_t i = 0; i < launch.line.arguments.size(); ++i) {
        if (!mentions(launch.line.arguments[i], buffer)) continue;
        const bool plain =
            launch.line.arguments[i] == buffer && function != nullptr && i < parameters(*function).size();
        if (!plain || count_launches(tree, launch.line.entry) > 1 || is_called(tree, launch.line.entry) ||
            !only_stores_into(*function, parameters(*function)[i].text)) {
          dead = false;
          break;
        }
        uses.push_back({function, parameters(*function)[i].text});
      }
    }
    if (!dead) continue;
    for (const Use& use : uses) {
      remove_stores(function_body(*use.function), use.parameter);
      remove_parameter(tree, *use.function, use.parameter);
    }
    if (line + 1 < tree.children.size() && tree.children[line + 1].leading_trivia.empty())
      tree.children[line + 1].leading_trivia = std::move(tree.children[line].leading_trivia);
    tree.children.erase(tree.children.begin() + static_cast<std::ptrdiff_t>(line));
    --line;
  }
}

} // namespace mtmc::detail
