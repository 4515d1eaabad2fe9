#pragma once
/// Tiling: the iterations of two or more loops are done in blocks whose data stays in a near cache.

#include <mtmc/coder/transform/directives.hpp>
#include <mtmc/coder/transform/loop_cost.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// One way to tile a band of loops.
struct TilingVariant {
  /// Tile size per loop of the band; 0 = not tiled.
  std::vector<std::int64_t> sizes{};
  /// Full tiles with constant bounds and remainders in loops of their own; else one set of loops whose bounds
  /// are minima.
  bool separate = true;
};

/// How many levels from the first one on form a band that may be tiled: perfectly nested and permutable.
[[nodiscard]] inline std::size_t band_depth(const LoopNest& nest, std::string& reason) {
  std::size_t depth = 1;
  while (depth < nest.size() && depth < 4 && nest.perfect(depth - 1, depth)) {
    const Legality legality = band_is_permutable(nest, 0, depth);
    if (!legality) {
      reason = legality.reason;
      break;
    }
    ++depth;
  }
  return depth;
}

/// Whether the bounds of a loop mention the variable of another.
[[nodiscard]] inline bool bounds_depend_on(const CountingLoop& head, const std::string& variable) {
  return uses_name(head.first, variable) || uses_name(head.bound, variable);
}

/// Writes the loops of a tiled band from the outside inwards.
class BandTiler {
public:
  BandTiler(const SyntaxNode& tree, std::vector<CountingLoop> heads, TilingVariant variant,
            std::vector<std::size_t> point_order, std::vector<SyntaxNode> body)
      : heads_(std::move(heads)), variant_(std::move(variant)), point_order_(std::move(point_order)),
        body_(std::move(body)) {
    for (const CountingLoop& head : heads_) tile_variables_.push_back(tile_name(tree, head.variable));
  }

  [[nodiscard]] std::vector<SyntaxNode> write() { return write_tiles(0, heads_); }

private:
  /// The tile loops from level `level` on; `points` are the loops over single iterations so far.
  [[nodiscard]] std::vector<SyntaxNode> write_tiles(std::size_t level,
                                                    const std::vector<CountingLoop>& points) {
    if (level == heads_.size()) return write_points(points);
    const std::int64_t size = variant_.sizes[level];
    if (size == 0) return write_tiles(level + 1, points);
    const CountingLoop& head = heads_[level];
    const std::string& variable = tile_variables_[level];
    std::vector<SyntaxNode> result;
    std::vector<CountingLoop> inner = points;
    inner[level].first = make_name(variable);
    if (!variant_.separate) {
      CountingLoop tiles = head;
      tiles.variable = variable;
      tiles.step = head.step * size;
      inner[level].bound =
          make_call("std::min<" + head.type + ">", {offset_by(make_name(variable), tiles.step), head.bound});
      result.push_back(tiles.with_body(write_tiles(level + 1, inner)));
      return result;
    }
    BlockedRange range = split_range(head, size);
    if (range.blocks) {
      range.blocks->variable = variable;
      inner[level].bound = offset_by(make_name(variable), range.blocks->step);
      result.push_back(range.blocks->with_body(write_tiles(level + 1, inner)));
      if (level == 0) result.back().leading_trivia = "// full tiles\n";
    }
    if (range.rest) {
      inner[level] = *range.rest;
      std::vector<SyntaxNode> rest = write_points(inner);
      rest.front().leading_trivia = "// remainder of " + head.variable + "\n" + rest.front().leading_trivia;
      for (SyntaxNode& statement : rest) result.push_back(std::move(statement));
    }
    return result;
  }

  [[nodiscard]] std::vector<SyntaxNode> write_points(const std::vector<CountingLoop>& points) const {
    std::vector<SyntaxNode> result = body_;
    for (std::size_t p = point_order_.size(); p-- > 0;) {
      SyntaxNode loop = points[point_order_[p]].with_body(std::move(result));
      result = node_list(std::move(loop));
    }
    return result;
  }

  std::vector<CountingLoop> heads_;
  TilingVariant variant_;
  /// The levels in the order of the loops over single iterations.
  std::vector<std::size_t> point_order_;
  std::vector<SyntaxNode> body_;
  std::vector<std::string> tile_variables_;
};

/// Tile sizes for a band, the ones expected to be best first. Without an element that is used again, as in a
/// transpose, a tile edge of one cache line is enough: longer ones only collide in the cache's sets. With
/// reuse, tiles are as large as the second-level cache allows.
[[nodiscard]] inline std::vector<TilingVariant>
tilings_of(const std::vector<std::optional<std::int64_t>>& trips, const std::vector<double>& reuse,
           const Device& device, bool full_band) {
  const bool reused = std::any_of(reuse.begin(), reuse.end(), [](double fixed) { return fixed > 0; });
  std::vector<std::int64_t> edges{16, 32, 64, 8};
  if (reused && full_band) {
    // three square tiles of f32 in half of the cache
    std::int64_t edge = 256;
    while (edge > 16 && 3 * edge * edge * 4 > cache_bytes(device, 2) / 2) edge /= 2;
    edges = {edge, edge / 2, edge / 4, 32};
  } else if (reused) {
    edges = {64, 32, 128, 16};
  }
  std::vector<TilingVariant> variants;
  const auto add = [&](std::int64_t edge, bool separate) {
    TilingVariant variant{{}, separate};
    int tiled = 0;
    for (const auto& trip : trips) {
      const bool worthwhile = !trip || *trip > edge;
      variant.sizes.push_back(worthwhile ? edge : 0);
      tiled += worthwhile ? 1 : 0;
    }
    const bool known = std::any_of(variants.begin(), variants.end(), [&](const TilingVariant& other) {
      return other.sizes == variant.sizes && other.separate == separate;
    });
    if (tiled > 0 && !known) variants.push_back(std::move(variant));
  };
  for (const std::int64_t edge : edges) add(edge, true);
  add(edges.front(), false);
  return variants;
}

} // namespace detail

/// Cuts the iterations of a band of permutable loops into tiles: tile loops outside, in the order of the
/// band, loops over the iterations of one tile inside, in the order that suits memory (neighbouring writes
/// first). Full tiles have constant bounds; what is left over gets loops of its own.
[[nodiscard]] inline SyntaxNode apply_tiling(const TransformRequest& request) {
  const detail::LoopTarget target = detail::find_loop(request);
  detail::require_no_collapse(*target.loop);
  const LoopNest nest = nest_of(*target.loop);
  std::string reason = "fewer than two loops are nested without statements in between";
  const std::size_t depth = detail::band_depth(nest, reason);
  if (depth < 2) throw TransformDeclined(reason);

  std::vector<detail::CountingLoop> heads;
  std::vector<std::optional<std::int64_t>> trips;
  for (std::size_t level = 0; level < depth; ++level) {
    heads.push_back(detail::head_of(nest.loop(level)));
    trips.push_back(detail::main_trips(request, nest.loop(level)));
    for (const auto& outer : heads)
      if (detail::bounds_depend_on(heads.back(), outer.variable))
        throw TransformDeclined("the bounds of " + detail::loop_name(nest.loop(level)) + " depend on " +
                                outer.variable);
    if (level > 0 && !nest.loop(level).directives.empty() && detail::contains_parallel(nest.loop(level)))
      throw TransformDeclined("an inner loop is already spread over threads");
  }

  const ProblemSize* const size = request.task.main_size();
  const Symbols symbols = size == nullptr ? Symbols{} : size->symbols;
  std::vector<const LoopInfo*> innermost;
  detail::collect_innermost(*target.loop, innermost);
  // the loop with the cheapest steps innermost; of equals, the one that writes to neighbouring elements
  std::vector<std::size_t> point_order;
  std::vector<double> costs, reuse;
  for (std::size_t level = 0; level < depth; ++level) {
    point_order.push_back(level);
    costs.push_back(detail::access_cost(nest.loop(level), innermost, symbols, 1.01));
    double fixed = 0;
    for (const Access& access : target.loop->function->accesses)
      if (access.loop != nullptr && access.loop->inside(target.loop) && !access.array->local &&
          detail::stride_of(access, nest.loop(level), symbols) == 0)
        fixed += 1;
    reuse.push_back(fixed);
  }
  const bool full_band = nest.loop(depth - 1).innermost();
  if (full_band)
    std::stable_sort(point_order.begin(), point_order.end(),
                     [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  const auto variants = detail::tilings_of(trips, reuse, request.device, full_band);
  if (variants.empty()) throw TransformDeclined("the loops have too few iterations for tiles");
  const auto& variant = choose_variant(variants, request.variant);

  SyntaxNode tree = request.tree;
  SyntaxNode& parent = detail::parent_at(tree, target.indices);
  std::size_t place = target.indices.back();
  auto replacement = detail::without_vector_hints(detail::take_pragmas_before(parent, place));
  detail::BandTiler tiler{request.tree, heads, variant, point_order,
                          detail::body_of(*nest.loop(depth - 1).node)};
  for (SyntaxNode& statement : tiler.write()) replacement.push_back(std::move(statement));
  detail::replace_statement(parent, place, std::move(replacement));
  if (!variant.separate) detail::ensure_include(tree, "<algorithm>");
  return tree;
}

} // namespace mtmc
