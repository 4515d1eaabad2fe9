#pragma once
/// Splitting: more threads than results work on a long reduction on a GPU. The threads of a block share it
/// and combine their parts in shared memory; where that leaves multiprocessors idle, several blocks share it,
/// and a second launch combines their parts in fixed order.

#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>
#include <mtmc/coder/transform/threads/columns.hpp>
#include <mtmc/coder/transform/threads/earlier_launch.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/threads/reductions.hpp>
#include <mtmc/coder/transform/threads/split_plan.hpp>
#include <mtmc/coder/transform/threads/split_scratch.hpp>
#include <mtmc/coder/transform/threads/split_shapes.hpp>
#include <mtmc/coder/transform/threads/split_stages.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Writes a function that reduces anew, and its launches.
class ReductionSplitter {
public:
  /// `reduction` and `plan` must outlive it.
  ReductionSplitter(const ReductionLaunch& reduction, const SplitPlan& plan)
      : reduction_(reduction), plan_(plan), launch_(reduction.launch), scratch_(reduction, plan),
        stages_(reduction, plan) {}

  /// The tree with the reduction split.
  [[nodiscard]] SyntaxNode write() {
    SyntaxNode tree = reduction_.request.tree;
    if (plan_.shape.blocks == 0)
      write_one(tree);
    else
      write_two(tree);
    for (const ThreadReduction& one : plan_.combiners)
      if (!one.is_there) launch_.add_function(tree, one.text());
    return tree;
  }

private:
  /// Threads of a block share the results, in the launch that is there.
  void write_one(SyntaxNode& tree) {
    SyntaxNode& function = *node_at(tree, launch_.function_at);
    function.type = without_launch_bounds(function.type);
    function_body(function).children = parse_statements(stages_.text(SplitStage::whole));
    launch_.line.grid = plan_.geometry.grid;
    launch_.line.block = plan_.geometry.block;
    tree.children[launch_.line_at].text = launch_line_text(launch_.line);
  }

  /// Blocks share the results, whose parts the function combines in a launch of its own.
  void write_two(SyntaxNode& tree) {
    SyntaxNode& rest = *node_at(tree, launch_.function_at);
    rest.type = without_launch_bounds(rest.type);
    SyntaxNode parts = rest;
    parts.text = fresh_name(tree, reduction_.function().name + "_in_parts");
    function_body(parts).children = parse_statements(stages_.text(SplitStage::parts));
    function_body(rest).children = parse_statements(stages_.text(SplitStage::rest));
    auto part_arguments = keep_used_parameters(parts, launch_.line);
    auto rest_arguments = keep_used_parameters(rest, launch_.line);
    for (std::size_t i = 0; i < reduction_.body.values.size(); ++i) {
      add_parameter(parts, reduction_.body.values[i].type + "*", plan_.names.scratch[i]);
      add_parameter(rest, "const " + reduction_.body.values[i].type + "*", plan_.names.scratch[i]);
      part_arguments.push_back(plan_.names.scratch[i]);
      rest_arguments.push_back(plan_.names.scratch[i]);
    }
    add_parameter(rest, "int", plan_.names.parts);
    rest_arguments.push_back(plan_.geometry.parts);

    LaunchLine first = launch_.line;
    first.entry = parts.text;
    first.arguments = part_arguments;
    first.block = plan_.geometry.block;
    first.grid = plan_.geometry.grid;
    if (plan_.geometry.part_axis == 0)
      first.grid[0] = plan_.geometry.parts;
    else
      first.grid.push_back(plan_.geometry.parts);
    LaunchLine second = launch_.line;
    second.arguments = rest_arguments;
    second.block = plan_.geometry.block;
    second.grid = plan_.geometry.grid;

    parts.leading_trivia =
        "\n// A block's part of what " + reduction_.function().name + " reduces, which combines the parts.\n";
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < reduction_.body.values.size(); ++i) lines.push_back(scratch_.line(i));
    lines.push_back(launch_line_text(first));
    tree.children[launch_.line_at].text = launch_line_text(second);
    add_earlier_launch(tree, launch_, std::move(parts), lines);
  }

  const ReductionLaunch& reduction_;
  const SplitPlan& plan_;
  ThreadLaunch launch_;
  SplitScratch scratch_;
  SplitStages stages_;
};

/// More threads share the reduction of each result, in the way that the request's variant asks for. Throws
/// `TransformDeclined` where the function does not reduce in one loop, or there is no such way.
[[nodiscard]] inline SyntaxNode split_among_threads(const TransformRequest& request) {
  const ReductionLaunch reduction = reduction_launch(request);
  const SplitPlan plan = split_plan(reduction, choose_variant(SplitShapes(reduction).all(), request.variant));
  return ReductionSplitter(reduction, plan).write();
}

/// Splits the reduction of the action; where more than a result follows it, threads above each other share
/// all that a thread does.
[[nodiscard]] inline SyntaxNode split_reduction(const TransformRequest& request) {
  try {
    return split_among_threads(request);
  } catch (const TransformDeclined& declined) {
    const std::string reason = declined.what();
    if (reason.starts_with("no further variant")) throw;
    try {
      ColumnSpreader columns(request);
      if (columns.lies_along_memory())
        return columns.write(choose_variant(columns.shapes(), request.variant));
    } catch (const TransformDeclined& other) {
      if (std::string_view(other.what()).starts_with("no further variant")) throw;
    }
    throw;
  }
}

} // namespace mtmc::detail
