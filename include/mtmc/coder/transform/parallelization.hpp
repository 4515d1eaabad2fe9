#pragma once
/// Parallelization: the iterations of a loop are spread over all compute units.

#include <mtmc/coder/transform/unrolling.hpp>
#include <mtmc/coder/transform/vectorization.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// How many loops from the outermost one on to spread together: one if it has iterations enough for all
/// units, else as many perfectly nested parallel loops as that takes.
[[nodiscard]] inline int loops_to_collapse(const TransformRequest& request, const LoopNest& nest) {
  constexpr std::int64_t shares_per_unit = 4; // fewer leave units idle at the end
  std::int64_t iterations = 1;
  int count = 0;
  for (std::size_t level = 0; level < nest.size() && level < 3; ++level) {
    if (level > 0) {
      const LoopInfo& loop = nest.loop(level);
      if (!nest.perfect(level - 1, level) || !loop_is_parallel(loop) || !loop.directives.empty() ||
          loop.variable_type.empty())
        break;
      bool rectangular = true;
      for (std::size_t outer = 0; outer < level; ++outer)
        rectangular = rectangular && !uses_name(*loop.bound_expression, nest.loop(outer).variable) &&
                      !uses_name(*loop.start_expression, nest.loop(outer).variable);
      if (!rectangular) break;
    }
    ++count;
    const auto trips = main_trips(request, nest.loop(level));
    if (!trips) break;
    iterations *= std::max<std::int64_t>(*trips, 1);
    if (iterations >= shares_per_unit * request.device.compute_units) break;
  }
  return std::max(count, 1);
}

/// A reduction in shares of fixed size: each share accumulates for itself, all are combined in their order.
/// The shares do not depend on the number of threads, so that results have equal bits with any number.
[[nodiscard]] inline std::vector<SyntaxNode> write_shares(SyntaxNode& tree, const LoopInfo& loop) {
  constexpr std::int64_t shares = 64;
  const CountingLoop head = head_of(loop);
  if (head.step != 1) throw TransformDeclined(loop_name(loop) + " does not step by one");
  const auto reductions = scalar_reductions(loop);
  const std::string share = fresh_name(tree, "share");
  const std::string first = fresh_name(tree, head.variable + "_first");
  const std::string last = fresh_name(tree, head.variable + "_last");
  std::vector<SyntaxNode> result, inside, ends;
  std::vector<SyntaxNode> body = body_of(*loop.node);
  const SyntaxNode index = make_binary("/", difference(make_name(first), head.first), make_name(share));
  const std::string each = fresh_name(tree, "part");
  std::vector<SyntaxNode> stores, starts, own;
  for (const Reduction& reduction : reductions) {
    const std::string& name = reduction.scalar->name;
    const std::string array = fresh_name(tree, name + "_parts");
    const std::string part = fresh_name(tree, name + "_part");
    const std::string type = expanded_type(reduction.scalar->type, name);
    const std::string identity = identity_of_reduction(reduction);
    std::vector<SyntaxNode> sizes;
    sizes.push_back(make_integer(shares));
    result.push_back(make_array_declaration(type, array, std::move(sizes)));
    // shares without iterations leave their part as it is here
    const SyntaxNode start = identity.empty() ? make_name(name) : make_literal(identity);
    starts.push_back(make_assignment(make_subscript(make_name(array), make_name(each)), "=", start));
    own.push_back(make_declaration(type, part, start));
    stores.push_back(make_assignment(make_subscript(make_name(array), index), "=", make_name(part)));
    for (SyntaxNode& statement : body) substitute(statement, name, make_name(part));
    ends.push_back(combine(reduction, make_name(name), make_subscript(make_name(array), make_name(each))));
    if (identity.empty()) ensure_include(tree, "<algorithm>");
  }
  const auto over_parts = [&](std::vector<SyntaxNode> statements) {
    return make_counting_loop("int", each, make_integer(0), make_integer(shares), make_integer(1),
                              make_block(std::move(statements)));
  };
  result.push_back(over_parts(std::move(starts)));
  // (n - 1) / 64 + 1 iterations a share, at most 64 shares
  SyntaxNode each_share =
      offset_by(make_binary("/", offset_by(difference(head.bound, head.first), -1), make_integer(shares)), 1);
  result.push_back(make_declaration(
      "const " + head.type, share,
      make_call("std::max<" + head.type + ">", node_list(std::move(each_share), make_integer(1)))));
  CountingLoop points = head;
  points.first = make_name(first);
  points.bound = make_name(last);
  inside.push_back(make_declaration(
      "const " + head.type, last,
      make_call("std::min<" + head.type + ">",
                node_list(make_binary("+", make_name(first), make_name(share)), head.bound))));
  for (SyntaxNode& declaration : own) inside.push_back(std::move(declaration));
  inside.push_back(points.with_body(std::move(body)));
  for (SyntaxNode& store : stores) inside.push_back(std::move(store));
  result.push_back(make_pragma("omp parallel for schedule(static)" + private_clause(loop)));
  SyntaxNode shares_loop = make_counting_loop(head.type, first, head.first, head.bound, make_name(share),
                                              make_block(std::move(inside)));
  result.push_back(std::move(shares_loop));
  result.push_back(with_comment(over_parts(std::move(ends)), "parts in fixed order"));
  ensure_include(tree, "<algorithm>");
  return result;
}

} // namespace detail

/// Spreads the iterations of a parallel loop over threads in contiguous shares (`omp parallel for`), with the
/// loops inside where one alone has too few iterations. A loop that reduces is cut into 64 parts whose
/// results are combined in order, so that bits do not depend on the number of threads. There is one variant.
[[nodiscard]] inline SyntaxNode apply_parallelization(const TransformRequest& request) {
  static const std::vector<int> only{0};
  (void)choose_variant(only, request.variant);
  detail::require_openmp(request);
  const detail::LoopTarget target = detail::find_loop(request);
  const LoopInfo& loop = *target.loop;
  if (detail::is_inside_parallel(loop) || detail::contains_parallel(loop))
    throw TransformDeclined(detail::loop_name(loop) + " is spread over threads already");
  (void)detail::head_of(loop);

  SyntaxNode tree = request.tree;
  const Legality parallel = loop_is_parallel(loop);
  if (!parallel) {
    const Legality reduction = loop_is_reduction(loop);
    if (!reduction) throw TransformDeclined(parallel.reason);
    for (const Reduction& one : detail::scalar_reductions(loop)) (void)one;
    auto replacement = detail::write_shares(tree, loop);
    const auto indices = locate(tree, request.action.region).front().indices;
    SyntaxNode& parent = detail::parent_at(tree, indices);
    std::size_t place = indices.back();
    auto pragmas = detail::take_pragmas_before(parent, place);
    // what was said of the loop holds for the loop over one part, with the part's name
    pragmas.clear();
    detail::replace_statement(parent, place, std::move(replacement));
    return tree;
  }
  std::string clauses = " schedule(static)";
  const int collapsed = detail::loops_to_collapse(request, nest_of(loop));
  if (collapsed > 1) clauses = " collapse(" + std::to_string(collapsed) + ')' + clauses;
  clauses += detail::private_clause(loop);
  SyntaxNode& parent = detail::parent_at(tree, target.indices);
  std::size_t place = target.indices.back();
  auto replacement = detail::take_pragmas_before(parent, place);
  if (!replacement.empty()) {
    // A compiler takes its hints right before a loop only, where `omp` has to stand.
    const auto before = replacement.front().leading_trivia;
    if (std::erase_if(replacement, detail::is_loop_hint) > 0)
      (replacement.empty() ? parent.children[place] : replacement.front()).leading_trivia = before;
  }
  bool merged = false;
  for (SyntaxNode& pragma : replacement)
    if (const std::size_t at = pragma.text.find("omp simd"); at != std::string::npos) {
      pragma.text.replace(at, 8, "omp parallel for simd");
      pragma.text += " schedule(static)";
      merged = true;
    }
  if (!merged) replacement.push_back(make_pragma("omp parallel for" + clauses));
  replacement.push_back(parent.children[place]);
  std::swap(replacement.front().leading_trivia, replacement.back().leading_trivia);
  if (replacement.size() > 1) replacement.back().leading_trivia.clear();
  replacement.front().leading_trivia.clear(); // `replace_statement` puts it back
  detail::replace_statement(parent, place, std::move(replacement));
  return tree;
}

} // namespace mtmc
