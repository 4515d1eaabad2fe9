#pragma once
/// A block of threads in the place of one thread that does everything.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/launch_text.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/one_thread.hpp>
#include <mtmc/coder/transform/threads/rows.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The launch of a function that is launched once.
[[nodiscard]] inline LaunchLine launch_line_of(const SyntaxNode& tree, std::string_view entry) {
  for (const LaunchNode& launch : launches_of(tree))
    if (launch.line.entry == entry) return launch.line;
  return {};
}

/// What one thread does alone is done by one block: it is a row of its own, which `spread_rows` shares.
[[nodiscard]] inline SyntaxNode spread_over_block(const TransformRequest& request, ThreadLaunch launch,
                                                  const OneThread& only) {
  SyntaxNode tree = request.tree;
  const std::string row = fresh_name(tree, "row");
  std::vector<SyntaxNode> work;
  for (const SyntaxNode* statement : only.work()) work.push_back(*statement);
  std::vector<SyntaxNode> body =
      parse_statements("const int " + row + " = blockIdx.x * blockDim.x + threadIdx.x;");
  body.push_back(make_if(make_binary("<", make_name(row), make_integer(1)), make_block(std::move(work))));
  SyntaxNode& function = *node_at(tree, launch.function_at);
  function.type = without_launch_bounds(function.type);
  function_body(function).children = std::move(body);
  launch.set_grid(tree, {"1"}, "1");

  const KernelAnalysis analysis{tree, &request.task};
  SyntaxNode shared = spread_rows(
      {request.task, request.kernel, request.device, request.action, tree, analysis, request.variant});
  // The one row needs no number where it has the one block.
  const LaunchLine line = launch_line_of(shared, launch.line.entry);
  SyntaxNode* const after = find_function(shared, launch.line.entry);
  if (after == nullptr || line.grid != std::vector<std::string>{"1"}) return shared;
  auto& statements = function_body(*after).children;
  const bool plain = !statements.empty() && statements.front().kind == NodeKind::declaration &&
                     statements.back().kind == NodeKind::if_statement &&
                     declarators(statements.front()).front().text == row &&
                     is_name(left_operand(if_condition(statements.back())), row);
  if (!plain) return shared;
  std::vector<SyntaxNode> inside = std::move(then_branch(statements.back()).children);
  statements.pop_back();
  statements.erase(statements.begin());
  for (SyntaxNode& statement : inside) statements.push_back(std::move(statement));
  return shared;
}

} // namespace mtmc::detail
