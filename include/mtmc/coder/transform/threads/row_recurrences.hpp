#pragma once
/// Recurrences through memory, `y[j] = y[j - 1] + x[j]`, as recurrences through a scalar.

#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// An element that an iteration writes, and the reads of what the iteration before wrote.
struct ElementRecurrence {
  const Access* write = nullptr;
  std::vector<const Access*> reads{};
};

/// The one array that a loop goes through from element to element; nothing where there is none, or more than
/// that.
[[nodiscard]] inline std::optional<ElementRecurrence> element_recurrence(const LoopInfo& loop) {
  if (!loop.canonical || !loop.understood || !loop.innermost()) return std::nullopt;
  ElementRecurrence found;
  for (const Dependence& dependence : dependences_in(loop)) {
    if (!carries(loop, dependence)) continue;
    for (const Access* access : {dependence.source, dependence.sink})
      if (access->write) {
        if (found.write != nullptr && found.write != access) return std::nullopt;
        found.write = access;
      }
  }
  if (found.write == nullptr || found.write->array->unknown || found.write->conditional ||
      found.write->subscripts.size() != 1 || !found.write->subscripts.front().defined())
    return std::nullopt;
  const Polynomial& written = found.write->subscripts.front();
  if (written.degree_in(loop.symbol) != 1) return std::nullopt;
  const Polynomial step = written.coefficient_of(loop.symbol) * Polynomial(loop.step);
  for (std::size_t i = loop.accesses.first; i < loop.accesses.last; ++i) {
    const Access& access = loop.function->accesses[i];
    if (access.array != found.write->array || &access == found.write) continue;
    if (access.write || access.subscripts.size() != 1 || access.order > found.write->order)
      return std::nullopt;
    if (access.subscripts.front() == written) continue; // the element itself, before it is written
    if (!(written - access.subscripts.front() == step)) return std::nullopt;
    found.reads.push_back(&access);
  }
  if (found.reads.empty()) return std::nullopt;
  return found;
}

/// `a - 1` with the numbers in it added up.
[[nodiscard]] inline SyntaxNode folded(SyntaxNode node) {
  for (SyntaxNode& child : node.children) child = folded(std::move(child));
  if (node.kind != NodeKind::binary || (node.text != "+" && node.text != "-")) return node;
  const auto value = literal_value(right_operand(node));
  if (!value) return node;
  return offset_by(left_operand(node), node.text == "+" ? *value : -*value);
}

/// Replaces nodes of a tree in its copy.
inline void replace_nodes(SyntaxNode& copy, const SyntaxNode& original,
                          const std::vector<const Access*>& places, const SyntaxNode& replacement) {
  for (const Access* place : places)
    if (place->node == &original) {
      copy = replacement;
      return;
    }
  for (std::size_t i = 0; i < copy.children.size(); ++i)
    replace_nodes(copy.children[i], original.children[i], places, replacement);
}

/// The tree with what the loop hands on through memory in a scalar; nothing where it hands on nothing so, or
/// it is not seen how.
[[nodiscard]] inline std::optional<SyntaxNode> with_carried_element(const SyntaxNode& tree,
                                                                    const LoopTarget& target) {
  const LoopInfo& loop = *target.loop;
  const auto recurrence = element_recurrence(loop);
  if (!recurrence || loop.comparison.empty()) return std::nullopt;
  const SyntaxNode& first_read = *recurrence->reads.front()->node;
  if (uses_locals(first_read, loop)) return std::nullopt;
  const auto body = statements(loop_body(*loop.node));
  std::size_t at = 0;
  while (at < body.size() && &body[at] != recurrence->write->statement) ++at;
  if (at == body.size() || body[at].kind != NodeKind::expression_statement) return std::nullopt;
  const SyntaxNode& store = operand(body[at]);
  if (store.kind != NodeKind::assignment || &left_operand(store) != recurrence->write->node)
    return std::nullopt;

  SyntaxNode changed = tree;
  const std::string carried = fresh_name(tree, recurrence->write->array->name + "_before");
  SyntaxNode& copy = *node_at(changed, target.indices);
  replace_nodes(loop_body(copy), loop_body(*loop.node), recurrence->reads, make_name(carried));
  loop_body(copy) = as_block(std::move(loop_body(copy)));
  SyntaxNode& stored = loop_body(copy).children[at];
  SyntaxNode value = right_operand(operand(stored));
  if (store.text != "=")
    value = make_binary(store.text.substr(0, store.text.size() - 1), left_operand(store), std::move(value));
  SyntaxNode next = make_assignment(make_name(carried), "=", std::move(value));
  next.leading_trivia = std::exchange(stored.leading_trivia, {});
  operand(stored) = make_assignment_expression(left_operand(store), "=", make_name(carried));
  loop_body(copy).children.insert(loop_body(copy).children.begin() + static_cast<std::ptrdiff_t>(at),
                                  std::move(next));

  // The element before the first one is there only if there is a first one.
  SyntaxNode start = first_read;
  substitute(start, loop.variable, *loop.start_expression);
  SyntaxNode enters = make_binary(loop.comparison, *loop.start_expression, *loop.bound_expression);
  SyntaxNode declaration =
      make_declaration(recurrence->write->array->element_type, carried,
                       make_conditional(std::move(enters), folded(std::move(start)), make_integer(0)));
  declaration.leading_trivia = std::exchange(copy.leading_trivia, {});
  SyntaxNode& parent = parent_at(changed, target.indices);
  if (parent.kind != NodeKind::block) return std::nullopt;
  parent.children.insert(parent.children.begin() + static_cast<std::ptrdiff_t>(target.indices.back()),
                         std::move(declaration));
  return changed;
}

} // namespace mtmc::detail
