#pragma once
/// Vectorization: the compiler is told that iterations of an innermost loop may share an instruction.

#include <mtmc/analysis/element_type.hpp>
#include <mtmc/analysis/flow/type_facts.hpp>
#include <mtmc/coder/transform/directives.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/vector_math.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Reductions through one element of an array, as `C[i] += ...` in a loop over k, with a scalar in its place:
/// loaded before the loop and stored after it. Edits `loop`; gives the statements before and after it.
struct ElementReduction {
  SyntaxNode place{};
  std::string scalar{};
  std::string type{};
};

[[nodiscard]] inline std::vector<ElementReduction> element_reductions(const SyntaxNode& tree,
                                                                      const LoopInfo& loop) {
  std::vector<ElementReduction> result;
  for (const Reduction& reduction : reductions_of(loop)) {
    if (reduction.scalar != nullptr) continue;
    const SyntaxNode& place = *reduction.access->node;
    const std::string element = std::string(bare_type(reduction.type));
    const auto type = type_facts(element);
    if (uses_name(place, loop.variable) || !(type.floating || type.integer))
      throw TransformDeclined(loop_name(loop) + " accumulates into elements of " + reduction.array->name);
    const bool known = std::any_of(result.begin(), result.end(), [&](const ElementReduction& other) {
      return structurally_equal(other.place, place);
    });
    if (!known) result.push_back({place, fresh_name(tree, reduction.array->name + "_value"), element});
  }
  return result;
}

/// Replaces every occurrence of an expression.
inline void replace_expression(SyntaxNode& node, const SyntaxNode& from, const SyntaxNode& to) {
  if (structurally_equal(node, from)) {
    node = to;
    return;
  }
  for (SyntaxNode& child : node.children) replace_expression(child, from, to);
}

/// The clauses `reduction(op : names)` of a loop; the names of one operation in one clause.
[[nodiscard]] inline std::string reduction_clauses(const LoopInfo& loop,
                                                   const std::vector<ElementReduction>& elements) {
  std::string clauses;
  for (const ReductionOperation operation :
       {ReductionOperation::sum, ReductionOperation::product, ReductionOperation::minimum,
        ReductionOperation::maximum, ReductionOperation::bits_or, ReductionOperation::bits_and,
        ReductionOperation::bits_xor, ReductionOperation::any, ReductionOperation::all}) {
    std::vector<std::string> names;
    for (const Reduction& reduction : reductions_of(loop)) {
      if (reduction.operation != operation) continue;
      std::string name;
      if (reduction.scalar != nullptr)
        name = reduction.scalar->name;
      else
        for (const ElementReduction& element : elements)
          if (structurally_equal(element.place, *reduction.access->node)) name = element.scalar;
      if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    if (names.empty()) continue;
    clauses += " reduction(" + std::string(to_string(operation)) + " : ";
    for (std::size_t i = 0; i < names.size(); ++i) clauses += (i > 0 ? ", " : "") + names[i];
    clauses += ')';
  }
  return clauses;
}

/// Scalars declared outside a loop that each iteration needs for itself, as a clause.
[[nodiscard]] inline std::string private_clause(const LoopInfo& loop) {
  std::string names;
  for (const ScalarFacts& scalar : classify_scalars(loop)) {
    if (scalar.role != ScalarRole::privatizable || scalar.declared_inside) continue;
    if (scalar.live_out)
      throw TransformDeclined('`' + scalar.variable->name + "` is used after " + loop_name(loop));
    names += (names.empty() ? "" : ", ") + scalar.variable->name;
  }
  return names.empty() ? std::string{} : " private(" + names + ')';
}

} // namespace detail

/// Marks an innermost loop with `#pragma omp simd`, with a clause for what it reduces. Sums into one element
/// of an array go through a scalar. Calls of `exp` and `tanh` of floats become calls of functions without
/// branches that are written into the kernel, since the library's stop the compiler. There is one variant.
[[nodiscard]] inline SyntaxNode apply_vectorization(const TransformRequest& request) {
  static const std::vector<int> only{0};
  (void)choose_variant(only, request.variant);
  detail::require_openmp(request);
  const detail::LoopTarget target = detail::find_loop(request);
  const LoopInfo& loop = *target.loop;
  if (!loop.innermost()) throw TransformDeclined(detail::loop_name(loop) + " contains other loops");
  if (loop.has_continue) throw TransformDeclined(detail::loop_name(loop) + " is cut short by `continue`");
  detail::require_legal(vectorization_legal(loop));
  detail::require_no_collapse(loop);
  for (const std::string& directive : loop.directives)
    if (has_word(directive, "simd"))
      throw TransformDeclined(detail::loop_name(loop) + " is vectorized already");
  (void)detail::head_of(loop);

  SyntaxNode tree = request.tree;
  SyntaxNode& parent = detail::parent_at(tree, target.indices);
  std::size_t place = target.indices.back();
  const auto elements = detail::element_reductions(request.tree, loop);
  const std::string reductions = detail::reduction_clauses(loop, elements);
  const std::string privates = detail::private_clause(loop);

  std::vector<SyntaxNode> pragmas = detail::take_pragmas_before(parent, place);
  SyntaxNode vectorized = parent.children[place];
  vectorized.leading_trivia.clear();
  bool used[std::size(detail::vector_functions)] = {};
  detail::replace_library_calls(loop_body(vectorized), detail::ExpressionTypes{*loop.function}, used);

  std::vector<SyntaxNode> replacement;
  for (const auto& element : elements) {
    replacement.push_back(make_declaration(element.type, element.scalar, element.place));
    detail::replace_expression(loop_body(vectorized), element.place, make_name(element.scalar));
  }
  bool merged = false;
  for (SyntaxNode& pragma : pragmas) {
    // `omp parallel for` and `omp simd` on one loop are one directive
    if (has_word(pragma.text, "for") && !elements.empty())
      throw TransformDeclined("threads accumulate into one element");
    if (has_word(pragma.text, "for") && !has_word(pragma.text, "simd")) {
      const std::size_t at = pragma.text.find("for");
      pragma.text.insert(at + 3, " simd");
      if (detail::clause_of(pragma.text, "reduction").empty()) pragma.text += reductions;
      if (detail::clause_of(pragma.text, "private").empty()) pragma.text += privates;
      merged = true;
    }
    if (!pragma.text.starts_with("GCC ivdep")) replacement.push_back(std::move(pragma));
  }
  if (!merged) replacement.push_back(make_pragma("omp simd" + reductions + privates));
  replacement.push_back(std::move(vectorized));
  for (const auto& element : elements)
    replacement.push_back(make_assignment(element.place, "=", make_name(element.scalar)));
  detail::replace_statement(parent, place, std::move(replacement));
  detail::add_vector_functions(tree, used);
  return tree;
}

} // namespace mtmc
