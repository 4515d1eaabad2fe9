#pragma once
/// Fusing launches: two entry functions become one, their loops are fused, and what they handed on through
/// memory stays in registers.

#include <mtmc/coder/transform/function_merger.hpp>
#include <mtmc/coder/transform/fusion.hpp>
#include <mtmc/coder/transform/threads/fusion.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Merges two launches that follow each other; `position` counts launches. The merged one stands in the place
/// of the first.
inline void merge_launches(SyntaxNode& tree, const Task& task, std::size_t position) {
  const auto launches = launches_of(tree);
  const LaunchNode& first = launches[position];
  const LaunchNode& second = launches[position + 1];
  FunctionMerger merger{tree, first.line, second.line};
  const std::string name = fresh_name(tree, first.line.entry + '_' + second.line.entry);
  SyntaxNode merged = merger.take(name);
  place_merged(tree, first, second, std::move(merged), merger.arguments());

  // the last loop of the first part with the first loop of the second
  const auto function = locate(tree, name).front();
  std::vector<std::size_t> block = function.indices;
  block.push_back(function.node->children.size() - 1);
  const auto& body = node_at(tree, block)->children;
  std::size_t a = merger.boundary(), b = merger.boundary();
  while (a > 0 && body[a - 1].kind != NodeKind::for_loop) --a;
  while (b < body.size() && body[b].kind != NodeKind::for_loop) ++b;
  if (a == 0 || b == body.size()) throw TransformDeclined("there are no loops to fuse");
  LoopFuser fuser{tree, task};
  fuser.fuse(block, a - 1, b);
}

/// Fuses consecutive launches.
[[nodiscard]] inline SyntaxNode fuse_launches(const TransformRequest& request) {
  SyntaxNode tree = request.tree;
  const auto members = locate(tree, request.action.region);
  if (members.size() < 2) throw TransformDeclined("fusion needs two launches");
  const auto launches = launches_of(tree);
  std::size_t position = launches.size();
  for (std::size_t i = 0; i < launches.size(); ++i)
    if (launches[i].index == members.front().indices.front()) position = i;
  for (std::size_t m = 0; m < members.size(); ++m)
    if (position + m >= launches.size() || launches[position + m].index != members[m].indices.front())
      throw TransformDeclined("the launches do not follow each other");
  const bool grid = !launches[position].line.grid.empty();
  for (std::size_t m = 1; m < members.size(); ++m) {
    if (grid) // from the back, where elements have their plain numbers
      merge_where_made(request, tree, position + members.size() - 1 - m);
    else
      merge_launches(tree, request.task, position);
    remove_dead_scratch(tree);
  }
  return tree;
}

} // namespace detail

/// Merges the members of a sequence, loops of one block or consecutive launches, as far in as the loops
/// match. Intermediate values stay in scalars; scratch buffers that are no longer read disappear with their
/// stores, parameters and launch arguments. There is one variant.
[[nodiscard]] inline SyntaxNode apply_fusion(const TransformRequest& request) {
  static const std::vector<int> only{0};
  (void)choose_variant(only, request.variant);
  return request.action.region.starts_with("launch:") ? detail::fuse_launches(request)
                                                      : detail::fuse_loops(request);
}

} // namespace mtmc
