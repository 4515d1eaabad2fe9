// A Python text, to its syntax tree and the graphs of its modules.
#include <mtmc/python.hpp>

#include <cstddef>
#include <string>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

void check_ranges(const mtmc::SyntaxNode& node, const mtmc::SourceRange& around) {
  if (node.range.known()) {
    require(node.range.begin <= node.range.end, "a node does not end before it begins");
    require(around.begin <= node.range.begin && node.range.end <= around.end,
            "a node stands within its parent");
    require(node.range.first_line <= node.range.last_line, "its lines, too");
  }
  for (const mtmc::SyntaxNode& child : node.children)
    check_ranges(child, node.range.known() ? node.range : around);
}

} // namespace

void python(std::string_view input) {
  const mtmc::SyntaxNode tree = mtmc::parse_python(input);
  const mtmc::SourceRange whole{.begin = 0, .end = input.size(), .first_line = 1};
  for (const mtmc::SyntaxNode& statement : tree.children) check_ranges(statement, whole);
  std::size_t behind = 0;
  for (const mtmc::SyntaxNode& statement : tree.children) {
    require(behind <= statement.range.begin, "statements follow each other");
    behind = statement.range.end;
  }
  for (const mtmc::TritonKernel& kernel : mtmc::triton_text(tree, input).kernels)
    for (const mtmc::TritonOperation& one : kernel.operations)
      require(!one.loop || *one.loop < kernel.loops.size(), "an operation's loop is one of the kernel's");
  for (const mtmc::ForwardGraph& graph : mtmc::forward_graphs(tree)) {
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
      for (const std::size_t operand : graph.operators[i].operands)
        require(operand < i, "operands come before");
    require(mtmc::operator_chain(graph).size() <= graph.operators.size(), "a letter is an operator at least");
  }
  const auto structure =
      mtmc::PythonRegionFinder{}.find({}, {mtmc::languages::triton, std::string(input), {}});
  for (const mtmc::Region& region : structure.regions) {
    require(region.first_line >= 1 && region.first_line <= region.last_line, "a region has lines");
    require(structure.find_region(region.path) == &region, "no two regions have one path");
  }
}

} // namespace mtmc_fuzz
