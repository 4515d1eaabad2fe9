#pragma once
/// Another number of threads to a block, where threads work alone and the one at hand fits no device well.

#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/launch_words.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The comparisons of a condition that must all hold.
inline void add_comparisons(const SyntaxNode& condition, std::vector<SyntaxNode>& found) {
  if (condition.kind == NodeKind::binary && condition.text == "&&") {
    add_comparisons(left_operand(condition), found);
    add_comparisons(right_operand(condition), found);
  } else {
    found.push_back(condition);
  }
}

/// Throws `TransformDeclined` unless threads beyond those that the launch line names do nothing.
inline void require_guards(const TransformRequest& request, const ThreadLaunch& launch,
                           const std::vector<ThreadIndex>& indices) {
  const ThreadIndex last = *std::max_element(
      indices.begin(), indices.end(), [](const auto& a, const auto& b) { return a.statement < b.statement; });
  const GuardedBody guarded = guarded_body(launch, last);
  std::vector<SyntaxNode> comparisons;
  if (guarded.guarded) {
    const auto body = statements(function_body(*launch.function->node));
    const SyntaxNode& branch = body[guarded.nested ? guarded.first : guarded.first - 1];
    add_comparisons(guarded.nested ? if_condition(branch)
                                   : opposite_of(if_condition(branch), *launch.function->node),
                    comparisons);
  }
  const LaunchWords words(request.task, launch);
  for (const ThreadIndex& index : indices) {
    const bool held = std::any_of(comparisons.begin(), comparisons.end(), [&](const SyntaxNode& one) {
      if (one.kind != NodeKind::binary || one.text != "<" || !is_name(left_operand(one), index.name))
        return false;
      const auto limit = words.of(right_operand(one));
      return limit && without_brackets(*limit) == without_brackets(launch.threads(index.axis));
    });
    if (!held)
      throw TransformDeclined("it is not one branch that leaves out threads beyond the last " + index.name);
  }
}

/// Gives the blocks of a launch whose threads work alone another shape.
[[nodiscard]] inline SyntaxNode reshape_blocks(const TransformRequest& request) {
  ThreadLaunch launch = thread_launch(request);
  if (!launch.function->barriers.empty()) throw TransformDeclined("the threads wait for each other");
  for (const Array& array : launch.function->arrays)
    if (array.place == ArrayPlace::block)
      throw TransformDeclined("the threads of a block share " + array.name);
  const auto indices = thread_indices(launch);
  std::size_t axes = 0;
  for (const std::string& extent : launch.line.block) axes += extent == "1" ? 0 : 1;
  if (indices.empty() || indices.size() < axes || launch.line.block.size() > 2 ||
      launch.line.block.size() != indices.size())
    throw TransformDeclined("no variables number the threads of " + launch.line.entry);
  require_guards(request, launch, indices);

  using Shape = std::vector<std::int64_t>;
  std::vector<Shape> shapes = indices.size() == 1 ? std::vector<Shape>{{256}, {128}, {512}}
                                                  : std::vector<Shape>{{32, 8}, {16, 16}, {64, 4}};
  std::erase_if(shapes, [&](const Shape& shape) {
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (launch.line.block[axis] != std::to_string(shape[axis])) return false;
    return true;
  });
  const Shape shape = choose_variant(shapes, request.variant);

  SyntaxNode tree = request.tree;
  SyntaxNode& function = *node_at(tree, launch.function_at);
  function.type = without_launch_bounds(function.type);
  auto grid = launch.line.grid;
  for (const ThreadIndex& index : indices) {
    SyntaxNode& declaration = function_body(function).children[index.statement];
    walk(*initial_value(declarators(declaration).front()), [&](SyntaxNode& node) {
      if (node.kind == NodeKind::literal && node.text == launch.line.block[index.axis])
        node = parse_expression("blockDim." + std::string(axis_names[index.axis]));
    });
    grid[index.axis] = launch.threads_divided_by(shape[index.axis], index.axis);
  }
  launch.line.grid = std::move(grid);
  launch.line.block.clear();
  for (const std::int64_t extent : shape) launch.line.block.push_back(std::to_string(extent));
  tree.children[launch.line_at].text = launch_line_text(launch.line);
  return tree;
}

} // namespace mtmc::detail
