#pragma once
/// Unrolling: several iterations at once, so that loaded values are shared in registers and the processor has
/// independent work.

#include <mtmc/analysis/threads/thread_language.hpp>
#include <mtmc/coder/transform/directives.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/loop_sinking.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Several copies of a loop's body, one per iteration, woven into one: runs of simple statements stand one
/// copy after the other, equal inner loops become one loop with the copies of their bodies inside.
class Jammer {
public:
  /// `visible`: holds all names that may be used or hidden at the place. `independent`: iterations do not
  /// depend on each other, so what reads the same in all copies is one.
  Jammer(SyntaxNode visible, bool independent) : names_(std::move(visible)), independent_(independent) {}

  /// `copies` hold the same statements for successive iterations.
  [[nodiscard]] std::vector<SyntaxNode> jam(std::vector<std::vector<SyntaxNode>> copies) {
    for (auto& copy : copies) copy = split_declarations(std::move(copy));
    const std::vector<bool> shared = rename_declarations(copies);
    std::vector<SyntaxNode> result;
    const std::size_t count = copies.front().size();
    for (std::size_t begin = 0; begin < count;) {
      std::size_t end = begin;
      while (end < count && copies.front()[end].kind != NodeKind::for_loop) ++end;
      std::size_t pragmas = end;
      if (end < count)
        while (pragmas > begin && copies.front()[pragmas - 1].kind == NodeKind::pragma) --pragmas;
      for (std::size_t c = 0; c < copies.size(); ++c)
        for (std::size_t i = begin; i < pragmas; ++i)
          if (c == 0 || !shared[i]) result.push_back(std::move(copies[c][i]));
      if (end < count) add_loops(copies, pragmas, end, result);
      begin = end + 1;
    }
    return result;
  }

  /// A declaration of its own per copy for a scalar that is declared outside but private to an iteration;
  /// renames it in all copies but the first.
  [[nodiscard]] std::vector<SyntaxNode> separate(std::vector<std::vector<SyntaxNode>>& copies,
                                                 const Variable& variable) {
    std::vector<SyntaxNode> declarations;
    for (std::size_t c = 1; c < copies.size(); ++c) {
      const std::string name = new_name(variable.name, c);
      for (SyntaxNode& statement : copies[c]) rename(statement, variable.name, name);
      declarations.push_back(make_declaration(expanded_type(variable.type, variable.name), name));
    }
    return declarations;
  }

private:
  [[nodiscard]] std::string new_name(const std::string& name, std::size_t copy) {
    std::string found = fresh_name(names_, std::string(unnumbered(name)) + '_' + std::to_string(copy));
    names_.children.push_back(make_name(found)); // taken from now on
    return found;
  }

  /// Gives the variables declared in each copy names of their own. Tells which declarations are the same for
  /// all copies and need not be repeated.
  [[nodiscard]] std::vector<bool> rename_declarations(std::vector<std::vector<SyntaxNode>>& copies) {
    const std::size_t count = copies.front().size();
    std::vector<bool> shared(count, false);
    NameSet assigned;
    for (const SyntaxNode& statement : copies.front())
      for (const std::string& name : assigned_scalars(statement)) add_name(assigned, name);
    for (std::size_t i = 0; i < count; ++i) {
      if (copies.front()[i].kind != NodeKind::declaration) continue;
      const SyntaxNode& declarator = copies.front()[i].children.front();
      bool same = initial_value(declarator) != nullptr && extents(declarator).empty() &&
                  !has_name(assigned, declarator.text) && declarator.type.find('&') == std::string::npos;
      for (std::size_t c = 1; c < copies.size(); ++c)
        same = same && structurally_equal(copies.front()[i], copies[c][i]);
      if (same)
        walk(*initial_value(declarator), [&](const SyntaxNode& node) {
          const bool reads_memory = node.kind == NodeKind::subscript || node.kind == NodeKind::member ||
                                    (node.kind == NodeKind::unary && node.text == "*");
          const bool changes = node.kind == NodeKind::name && has_name(assigned, node.text);
          if (node.kind == NodeKind::opaque || node.kind == NodeKind::call || changes ||
              (reads_memory && !independent_))
            same = false;
        });
      shared[i] = same;
      if (same) continue;
      const std::string name = declarator.text;
      for (std::size_t c = 1; c < copies.size(); ++c) {
        const std::string renamed = new_name(name, c);
        for (std::size_t later = i; later < count; ++later) rename(copies[c][later], name, renamed);
      }
    }
    return shared;
  }

  /// The loops at `at` of all copies, with the pragmas before them: one loop if their heads are equal.
  void add_loops(std::vector<std::vector<SyntaxNode>>& copies, std::size_t pragmas, std::size_t at,
                 std::vector<SyntaxNode>& result) {
    bool equal = true;
    for (std::size_t c = 1; c < copies.size(); ++c)
      for (std::size_t part = 0; part < 3; ++part)
        equal = equal && structurally_equal(copies.front()[at].children[part], copies[c][at].children[part]);
    if (!equal) {
      for (auto& copy : copies)
        for (std::size_t i = pragmas; i <= at; ++i) result.push_back(std::move(copy[i]));
      return;
    }
    for (std::size_t i = pragmas; i < at; ++i) {
      SyntaxNode pragma = std::move(copies.front()[i]);
      for (std::size_t c = 1; c < copies.size(); ++c)
        pragma.text = merge_reductions(pragma.text, copies[c][i].text);
      result.push_back(std::move(pragma));
    }
    std::vector<std::vector<SyntaxNode>> bodies;
    for (auto& copy : copies) bodies.push_back(body_of(copy[at]));
    SyntaxNode loop = std::move(copies.front()[at]);
    const std::size_t taken = names_.children.size();
    loop_body(loop) = make_block(jam(std::move(bodies)));
    names_.children.resize(taken); // the names given inside are free again
    result.push_back(std::move(loop));
  }

  /// `reduction(+ : a)` and `reduction(+ : a_1)` as one clause.
  [[nodiscard]] static std::string merge_reductions(std::string text, const std::string& other) {
    const std::string mine = clause_of(text, "reduction");
    const std::string theirs = clause_of(other, "reduction");
    const std::size_t colon = theirs.find(':');
    if (mine == theirs || colon == std::string::npos) return text;
    const std::size_t at = text.find(mine);
    text.insert(at + mine.size(), "," + theirs.substr(colon + 1));
    return text;
  }

  /// Holds the names that are taken.
  SyntaxNode names_;
  bool independent_;
};

/// Adds up what substitution left of a loop variable: `i + 2 + 1` becomes `i + 3`.
inline void fold_offsets(SyntaxNode& statement, const std::string& variable) {
  walk(statement, [&](SyntaxNode& node) {
    if (node.kind != NodeKind::binary || (node.text != "+" && node.text != "-")) return;
    const auto offset = literal_value(right_operand(node));
    const SyntaxNode& left = left_operand(node);
    if (offset && left.kind == NodeKind::binary && is_name(left_operand(left), variable))
      node = offset_by(left, node.text == "+" ? *offset : -*offset);
  });
}

/// The bodies of `factor` successive iterations: the loop's variable replaced by itself plus multiples of the
/// step.
[[nodiscard]] inline std::vector<std::vector<SyntaxNode>>
copies_of_body(const LoopInfo& loop, const SyntaxNode& first, std::int64_t factor) {
  std::vector<std::vector<SyntaxNode>> copies;
  for (std::int64_t c = 0; c < factor; ++c) {
    std::vector<SyntaxNode> copy = body_of(*loop.node);
    for (SyntaxNode& statement : copy) {
      if (c > 0 || !is_name(first, loop.variable))
        substitute(statement, loop.variable, offset_by(first, c * loop.step));
      fold_offsets(statement, loop.variable);
      if (c > 0) {
        statement.leading_trivia.clear(); // comments once
        statement.trailing_trivia.clear();
      }
    }
    copies.push_back(std::move(copy));
  }
  return copies;
}

/// Factor by which a loop is unrolled; with `lanes`, the accumulators of a reduction; `full`: no loop is
/// left.
struct UnrollingVariant {
  std::int64_t factor = 4;
  bool lanes = false;
  bool full = false;
};

/// The constant from which a reduction starts, as text; empty for minimum and maximum.
[[nodiscard]] inline std::string identity_of_reduction(const Reduction& reduction) {
  const bool single = reduction.type.find("float") != std::string::npos;
  const bool real = single || reduction.type.find("double") != std::string::npos;
  if (reduction.operation == ReductionOperation::sum) return single ? "0.0f" : real ? "0.0" : "0";
  if (reduction.operation == ReductionOperation::product) return single ? "1.0f" : real ? "1.0" : "1";
  const bool truth = has_word(reduction.type, "bool");
  if (reduction.operation == ReductionOperation::bits_or || reduction.operation == ReductionOperation::any ||
      reduction.operation == ReductionOperation::bits_xor)
    return truth ? "false" : "0";
  if (reduction.operation == ReductionOperation::all) return truth ? "true" : "1";
  if (reduction.operation == ReductionOperation::bits_and) return truth ? "true" : "-1";
  return {};
}

/// The function of the smaller or larger of two values: of the standard library, or CUDA's own.
[[nodiscard]] inline std::string extremum_function(const Reduction& reduction, bool cuda) {
  const std::string name = reduction.operation == ReductionOperation::minimum ? "min" : "max";
  if (!cuda) return "std::" + name;
  const std::string_view type = trim(std::string_view(reduction.type));
  if (type == "float") return 'f' + name + 'f';
  return type == "double" ? 'f' + name : name;
}

/// `target = target op value` as a statement.
[[nodiscard]] inline SyntaxNode combine(const Reduction& reduction, const SyntaxNode& target,
                                        SyntaxNode value, bool cuda = false) {
  switch (reduction.operation) {
  case ReductionOperation::sum:
    return make_assignment(target, "+=", std::move(value));
  case ReductionOperation::product:
    return make_assignment(target, "*=", std::move(value));
  case ReductionOperation::bits_or:
  case ReductionOperation::bits_and:
  case ReductionOperation::bits_xor:
    return make_assignment(target, std::string(to_string(reduction.operation)) + '=', std::move(value));
  case ReductionOperation::any:
  case ReductionOperation::all:
    return make_assignment(
        target, "=", make_binary(std::string(to_string(reduction.operation)), target, std::move(value)));
  default:
    return make_assignment(
        target, "=", make_call(extremum_function(reduction, cuda), node_list(target, std::move(value))));
  }
}

/// The scalar reductions of a loop; throws `TransformDeclined` if one goes through the elements of an array.
[[nodiscard]] inline std::vector<Reduction> scalar_reductions(const LoopInfo& loop) {
  std::vector<Reduction> reductions = reductions_of(loop);
  for (const Reduction& reduction : reductions)
    if (reduction.scalar == nullptr)
      throw TransformDeclined(loop_name(loop) + " accumulates into elements of " + reduction.array->name);
  return reductions;
}

/// A reduction with one accumulator per lane: the lanes advance together, and are combined in their order.
[[nodiscard]] inline std::vector<SyntaxNode> write_lanes(SyntaxNode& tree, const LoopInfo& loop,
                                                         std::int64_t lanes, bool cuda) {
  const CountingLoop head = head_of(loop);
  if (head.step != 1) throw TransformDeclined(loop_name(loop) + " does not step by one");
  const BlockedRange range = split_range(head, lanes);
  if (!range.blocks) throw TransformDeclined(loop_name(loop) + " has fewer iterations than lanes");
  const auto reductions = scalar_reductions(loop);
  const std::string block_variable = tile_name(tree, head.variable);
  const std::string lane = fresh_name(tree, "lane");
  std::vector<SyntaxNode> result, starts, ends;
  std::vector<SyntaxNode> body = body_of(*loop.node);
  for (const Reduction& reduction : reductions) {
    const std::string& name = reduction.scalar->name;
    const std::string array = fresh_name(tree, name + "_lanes");
    const std::string start = identity_of_reduction(reduction);
    std::vector<SyntaxNode> sizes;
    sizes.push_back(make_integer(lanes));
    result.push_back(
        make_array_declaration(expanded_type(reduction.scalar->type, name), array, std::move(sizes)));
    const SyntaxNode own = make_subscript(make_name(array), make_name(lane));
    starts.push_back(make_assignment(own, "=", start.empty() ? make_name(name) : make_literal(start)));
    ends.push_back(combine(reduction, make_name(name), own, cuda));
    if (start.empty() && !cuda) ensure_include(tree, "<algorithm>");
    const SyntaxNode element = make_subscript(
        make_name(array), make_binary("-", make_name(head.variable), make_name(block_variable)));
    for (SyntaxNode& statement : body) substitute(statement, name, element);
  }
  const auto over_lanes = [&](std::vector<SyntaxNode> statements) {
    return make_counting_loop("int", lane, make_integer(0), make_integer(lanes), make_integer(1),
                              make_block(std::move(statements)));
  };
  result.push_back(over_lanes(std::move(starts)));
  CountingLoop blocks = *range.blocks;
  blocks.variable = block_variable;
  CountingLoop points = head;
  points.first = make_name(block_variable);
  points.bound = offset_by(points.first, lanes);
  std::vector<SyntaxNode> inside = node_list(points.with_body(std::move(body)));
  result.push_back(blocks.with_body(std::move(inside)));
  if (range.rest) result.push_back(with_comment(range.rest->with_body(body_of(*loop.node)), "remainder"));
  result.push_back(with_comment(over_lanes(std::move(ends)), "lanes in fixed order"));
  return result;
}

/// Elements of the small arrays that one iteration of a loop works in at a time: of the largest block of
/// statements, what it declares with constant extents.
[[nodiscard]] inline std::int64_t local_elements(const SyntaxNode& node) {
  std::int64_t here = 0, below = 0;
  for (const SyntaxNode& child : node.children) {
    below = std::max(below, local_elements(child));
    if (child.kind != NodeKind::declaration) continue;
    for (const SyntaxNode& declarator : child.children) {
      std::int64_t elements = extents(declarator).empty() ? 0 : 1;
      for (const SyntaxNode& extent : extents(declarator))
        elements *= literal_value(extent.children.front()).value_or(0);
      here += elements;
    }
  }
  return here + below;
}

/// Factors for register blocking, the one expected to be best first: as many rows of accumulators as the
/// vector registers hold.
[[nodiscard]] inline std::vector<std::int64_t> jam_factors(const LoopInfo& loop, const Device& device) {
  constexpr std::int64_t vector_registers = 16;
  const std::int64_t room = vector_registers * vector_elements(device);
  const std::int64_t elements = loop.innermost() ? 0 : local_elements(loop_body(*loop.node));
  std::vector<std::int64_t> factors{4, 2, 8, 3};
  if (elements > 0)
    std::stable_partition(factors.begin(), factors.end(),
                          [&](std::int64_t factor) { return factor * elements <= room; });
  return factors;
}

/// What unrolling can do with a loop, the variant expected to be best first.
[[nodiscard]] inline std::vector<UnrollingVariant>
unrollings_of(const LoopInfo& loop, const CountingLoop& head, std::optional<std::int64_t> trips, bool reduces,
              const Device& device, bool on_grid) {
  constexpr std::int64_t largest_full = 16;
  std::vector<UnrollingVariant> variants;
  const auto add = [&](std::int64_t factor, bool lanes) {
    if (head.trips && *head.trips < factor) return;
    if (!trips || *trips >= factor) variants.push_back({factor, lanes, false});
  };
  // Threads of a GPU have 64 registers each where blocks are largest.
  const std::vector<std::int64_t> accumulators =
      on_grid ? std::vector<std::int64_t>{8, 4, 16} : std::vector<std::int64_t>{32, 16, 64, 8};
  if (reduces && loop.innermost())
    for (const std::int64_t lanes : accumulators) add(lanes, true);
  if (head.trips && *head.trips > 0 && *head.trips <= largest_full)
    variants.push_back({*head.trips, false, true});
  for (const std::int64_t factor : jam_factors(loop, device)) add(factor, false);
  return variants;
}

} // namespace detail

/// Does several iterations of a loop at once. A loop around others is unrolled and its copies are jammed into
/// the inner loops, which then share loads (register blocking). An innermost loop that reduces gets several
/// accumulators, combined in a fixed order; any other one is written out. What is left over gets a loop of
/// its own.
[[nodiscard]] inline SyntaxNode apply_unrolling(const TransformRequest& request) {
  const detail::LoopTarget target = detail::find_loop(request);
  const LoopInfo& loop = *target.loop;
  detail::require_no_collapse(loop);
  if (loop.has_continue) throw TransformDeclined(detail::loop_name(loop) + " is cut short by `continue`");
  const detail::CountingLoop head = detail::head_of(loop);
  const bool independent = loop_is_parallel(loop).legal;
  if (!loop.innermost() && !independent) detail::require_legal(unroll_and_jam_legal(nest_of(loop), 0));
  for (const LoopInfo* child : loop.children)
    if (detail::contains_parallel(*child))
      throw TransformDeclined("an inner loop is already spread over threads");
  const bool reduces = loop.innermost() && loop_is_reduction(loop).legal;
  const bool on_grid = detail::has_thread_grid(request.kernel.language);
  const auto variants =
      detail::unrollings_of(loop, head, detail::main_trips(request, loop), reduces, request.device, on_grid);
  if (variants.empty()) throw TransformDeclined(detail::loop_name(loop) + " has too few iterations");
  const auto& variant = choose_variant(variants, request.variant);

  SyntaxNode tree = request.tree;
  std::vector<SyntaxNode> unrolled;
  SyntaxNode original = *loop.node;
  original.leading_trivia.clear();
  if (variant.lanes) {
    unrolled = detail::write_lanes(tree, loop, variant.factor, on_grid);
  } else {
    detail::Jammer jammer{detail::visible_names(request.tree, target.indices), independent};
    auto copies =
        detail::copies_of_body(loop, variant.full ? head.first : make_name(head.variable), variant.factor);
    std::vector<SyntaxNode> separate;
    for (const ScalarFacts& scalar : classify_scalars(loop))
      if (scalar.role == ScalarRole::privatizable && !scalar.declared_inside && !scalar.live_out &&
          !detail::is_head_variable(scalar.variable->name, loop))
        for (SyntaxNode& declaration : jammer.separate(copies, *scalar.variable))
          separate.push_back(std::move(declaration));
    std::vector<SyntaxNode> body = jammer.jam(std::move(copies));
    body.insert(body.begin(), std::make_move_iterator(separate.begin()),
                std::make_move_iterator(separate.end()));
    if (variant.full) {
      unrolled.push_back(make_block(std::move(body)));
    } else {
      const detail::BlockedRange range = detail::split_range(head, variant.factor);
      unrolled.push_back(range.blocks->with_body(std::move(body)));
      if (range.rest) {
        loop_init(original) = make_declaration(head.type, head.variable, range.rest->first);
        unrolled.push_back(with_comment(std::move(original), "remainder of " + head.variable));
      }
    }
  }
  // locate again: an include may have been added
  auto indices = locate(tree, request.action.region).front().indices;
  SyntaxNode& parent = detail::parent_at(tree, indices);
  std::size_t place = indices.back();
  auto pragmas = detail::take_pragmas_before(parent, place);
  if (variant.lanes || variant.full || loop.innermost())
    pragmas = detail::without_vector_hints(std::move(pragmas));
  if ((variant.lanes || variant.full) && !pragmas.empty())
    throw TransformDeclined(detail::loop_name(loop) + " carries `#pragma " + pragmas.front().text + '`');
  unrolled.insert(unrolled.begin(), std::make_move_iterator(pragmas.begin()),
                  std::make_move_iterator(pragmas.end()));
  detail::replace_statement(parent, place, std::move(unrolled));
  return tree;
}

} // namespace mtmc
