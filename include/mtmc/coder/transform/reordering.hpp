#pragma once
/// Reordering: the loop that moves through memory by single elements becomes the innermost one.

#include <mtmc/coder/transform/loop_cost.hpp>
#include <mtmc/coder/transform/loop_sinking.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// One way to reorder a nest.
struct ReorderingVariant {
  /// The level that becomes the innermost one.
  std::size_t level = 0;
  /// Iterations of it that are moved at a time, with their scalars in arrays; 0: all, nothing is expanded.
  std::int64_t tile = 0;
  /// The order of a perfect nest; empty if statements have to be distributed.
  std::vector<std::size_t> order{};
};

/// Loops of at most this many iterations in every run are moved whole: their arrays stay in the nearest
/// cache.
inline constexpr std::int64_t largest_expansion = 256;

/// Whether some scalar that must survive between the parts of a distributed body would have to be expanded;
/// conservative: any scalar declared in the body or private to it.
[[nodiscard]] inline bool has_private_scalars(const LoopInfo& loop) {
  const auto scalars = classify_scalars(loop);
  return std::any_of(scalars.begin(), scalars.end(),
                     [](const ScalarFacts& scalar) { return scalar.role == ScalarRole::privatizable; });
}

/// The nest with its heads in another order, innermost body untouched. Only for perfect nests.
[[nodiscard]] inline SyntaxNode permute_perfect(const LoopNest& nest, const std::vector<std::size_t>& order) {
  std::vector<SyntaxNode> body = body_of(*nest.levels.back().loop->node);
  SyntaxNode result;
  for (std::size_t p = order.size(); p-- > 0;) {
    result = *nest.loop(order[p]).node;
    result.leading_trivia.clear();
    loop_body(result) = make_block(std::move(body));
    body = node_list(result);
  }
  return result;
}

/// Orders of a perfect nest that are legal and have a cheaper innermost loop, cheapest first.
inline void add_perfect_orders(const LoopNest& nest, const Symbols& symbols,
                               std::vector<ReorderingVariant>& variants) {
  std::vector<const LoopInfo*> innermost;
  collect_innermost(nest.loop(0), innermost);
  std::vector<double> costs;
  for (const NestLevel& level : nest.levels) costs.push_back(innermost_cost(*level.loop, innermost, symbols));
  std::vector<std::size_t> order(nest.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // from the inside outwards, in millionths so that near-ties are ties
  const auto rank = [&](const std::vector<std::size_t>& candidate) {
    std::vector<long long> ranks;
    for (std::size_t p = candidate.size(); p-- > 0;)
      ranks.push_back(static_cast<long long>(costs[candidate[p]] * 1e6));
    return ranks;
  };
  const auto present = rank(order);
  std::vector<std::pair<std::vector<long long>, std::vector<std::size_t>>> found;
  for (int guard = 0; guard < 120 && std::next_permutation(order.begin(), order.end()); ++guard)
    if (rank(order).front() < present.front() && permutation_legal(nest, 0, order))
      found.emplace_back(rank(order), order);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [ranks, candidate] : found) variants.push_back({candidate.back(), 0, std::move(candidate)});
}

/// Tiles to move at a time, the one expected to be best first: eight vectors are enough to hide the latency
/// of additions and few enough to stay in registers.
[[nodiscard]] inline std::vector<std::int64_t> expansion_tiles(std::optional<std::int64_t> trips,
                                                               const Device& device) {
  const std::int64_t best = 8 * vector_elements(device);
  std::vector<std::int64_t> tiles;
  for (const std::int64_t tile : {best, best / 2, best * 2, best / 4, best * 4})
    if (!trips || *trips >= tile) tiles.push_back(tile);
  if (tiles.empty()) tiles.push_back(best / 4);
  return tiles;
}

/// Every way to reorder the nest, the one expected to be best first. `reason` says why if there is none.
[[nodiscard]] inline std::vector<ReorderingVariant>
reorderings_of(const TransformRequest& request, const LoopNest& nest, std::string& reason) {
  std::vector<ReorderingVariant> variants;
  const ProblemSize* const size = request.task.main_size();
  const Symbols symbols = size == nullptr ? Symbols{} : size->symbols;
  const LoopInfo& outermost = nest.loop(0);
  if (outermost.innermost()) {
    reason = loop_name(outermost) + " contains no other loop";
    return variants;
  }
  const bool perfect = nest.perfect(0, nest.size() - 1) && nest.levels.back().loop->innermost();
  if (perfect && nest.size() > 1) add_perfect_orders(nest, symbols, variants);
  if (!variants.empty()) return variants;

  std::vector<const LoopInfo*> innermost;
  collect_innermost(outermost, innermost);
  double present = 0;
  for (const LoopInfo* loop : innermost) present = std::max(present, innermost_cost(*loop, {loop}, symbols));
  std::vector<std::pair<double, std::size_t>> candidates;
  reason = "no other order of the loops moves through memory in smaller steps";
  for (std::size_t level = 0; level < nest.size(); ++level) {
    const LoopInfo& loop = nest.loop(level);
    if (loop.innermost() || loop.step != 1) continue;
    const double cost = innermost_cost(loop, innermost, symbols);
    if (cost >= present) continue;
    const Legality legality = loop_is_parallel(loop);
    if (!legality) {
      reason = legality.reason;
      continue;
    }
    candidates.emplace_back(cost, level);
  }
  std::stable_sort(candidates.begin(), candidates.end());
  for (const auto& [cost, level] : candidates) {
    const LoopInfo& loop = nest.loop(level);
    const CountingLoop head = head_of(loop);
    if (head.trips && *head.trips <= largest_expansion)
      variants.push_back({level, *head.trips, {}});
    else
      for (const std::int64_t tile : expansion_tiles(main_trips(request, loop), request.device))
        variants.push_back({level, tile, {}});
  }
  return variants;
}

/// One loop moved inwards through all others in its body, a tile at a time.
[[nodiscard]] inline std::vector<SyntaxNode> sink_in_tiles(const SyntaxNode& tree, const LoopInfo& loop,
                                                           std::int64_t tile) {
  constexpr int all_levels = 100;
  const LoopSinker sinker{tree, loop};
  const CountingLoop head = head_of(loop);
  const std::vector<SyntaxNode> body = body_of(*loop.node);
  if (head.trips && *head.trips <= tile) {
    if (*head.trips == 0) throw TransformDeclined(loop_name(loop) + " has no iterations");
    return sinker.sink({head, head.first, *head.trips}, body, all_levels);
  }
  const BlockedRange range = split_range(head, tile);
  const std::string tile_variable = tile_name(tree, head.variable);
  std::vector<SyntaxNode> result;
  const auto add = [&](CountingLoop tiles, SyntaxNode last, const char* comment) {
    tiles.variable = tile_variable;
    tiles.step = tile;
    CountingLoop points = head;
    points.first = make_name(tile_variable);
    points.bound = std::move(last);
    result.push_back(with_comment(
        tiles.with_body(sinker.sink({points, make_name(tile_variable), tile}, body, all_levels)), comment));
  };
  if (range.blocks)
    add(*range.blocks, offset_by(make_name(tile_variable), tile),
        ("full tiles of " + std::to_string(tile)).c_str());
  if (range.rest) add(*range.rest, head.bound, "remainder tile");
  return result;
}

} // namespace detail

/// Puts the loops of the region's nest into a better order: the innermost one is the loop whose neighbouring
/// iterations touch neighbouring data. Perfect nests are permuted. Otherwise, as in the naive matrix product,
/// the better loop must be parallel: it is cut into tiles, and each tile is moved inwards past the statements
/// and loops in its body, which keep their scalars in small arrays. Every sum keeps its order.
[[nodiscard]] inline SyntaxNode apply_reordering(const TransformRequest& request) {
  const detail::LoopTarget target = detail::find_loop(request);
  detail::require_no_collapse(*target.loop);
  const LoopNest nest = nest_of(*target.loop);
  std::string reason;
  const auto variants = detail::reorderings_of(request, nest, reason);
  if (variants.empty()) throw TransformDeclined(reason);
  const auto& variant = choose_variant(variants, request.variant);

  SyntaxNode tree = request.tree;
  std::vector<std::size_t> indices = target.indices;
  if (!variant.order.empty()) {
    SyntaxNode& parent = detail::parent_at(tree, indices);
    SyntaxNode permuted = detail::permute_perfect(nest, variant.order);
    std::size_t place = indices.back();
    auto pragmas = detail::without_vector_hints(detail::take_pragmas_before(parent, place));
    if (!pragmas.empty() && variant.order.front() != 0)
      throw TransformDeclined("the outermost loop carries `#pragma " + pragmas.front().text + '`');
    pragmas.push_back(std::move(permuted));
    detail::replace_statement(parent, place, std::move(pragmas));
    return tree;
  }
  const LoopInfo& loop = nest.loop(variant.level);
  for (const std::string& directive : loop.directives)
    if (has_word(directive, "parallel"))
      throw TransformDeclined(detail::loop_name(loop) + " is already spread over threads");
  detail::require_no_collapse(loop);
  std::vector<SyntaxNode> moved = detail::sink_in_tiles(request.tree, loop, variant.tile);
  // the loop's place: from the region's loop down through the bodies of the nest
  SyntaxNode* node = node_at(tree, indices);
  SyntaxNode* parent = &detail::parent_at(tree, indices);
  std::size_t place = indices.back();
  for (std::size_t level = 0; level < variant.level; ++level) {
    SyntaxNode& body = loop_body(*node);
    const SyntaxNode* const inner = nest.loop(level + 1).node;
    const auto body_of_level = nest.levels[level].body;
    place = detail::statement_position(body_of_level, inner);
    if (body.kind == NodeKind::block) {
      parent = &body;
    } else {
      parent = node;
      place = node->children.size() - 1;
    }
    node = &parent->children[place];
  }
  auto pragmas = detail::without_vector_hints(detail::take_pragmas_before(*parent, place));
  if (!pragmas.empty())
    throw TransformDeclined(detail::loop_name(loop) + " carries `#pragma " + pragmas.front().text + '`');
  detail::replace_statement(*parent, place, std::move(moved));
  for (auto& function : locate(tree, loop.function->path))
    for (const ScalarFacts& scalar : classify_scalars(loop))
      if (scalar.role == ScalarRole::privatizable && !scalar.declared_inside)
        detail::remove_if_unused(*function.node, scalar.variable->name);
  return tree;
}

} // namespace mtmc
