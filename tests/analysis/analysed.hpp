#pragma once
// What the tests of the data flow share: text to analysis, and analysis to text.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/parser.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace analysed {

/// A parsed text and its data flow.
struct Text {
  explicit Text(const std::string& source, const mtmc::Task* task = nullptr)
      : tree(mtmc::parse(source)), analysis(tree, task) {}

  [[nodiscard]] const mtmc::FunctionAnalysis& function() const { return *analysis.functions().front(); }
  [[nodiscard]] const mtmc::LoopInfo& loop(const std::string& path) const {
    const mtmc::LoopInfo* found = analysis.find_loop(path);
    if (found == nullptr) throw std::runtime_error("no loop " + path);
    return *found;
  }
  [[nodiscard]] mtmc::LoopNest nest(const std::string& path) const { return mtmc::nest_of(loop(path)); }

  mtmc::SyntaxNode tree;
  mtmc::KernelAnalysis analysis;
};

inline char shown(mtmc::Directions set) {
  switch (set) {
  case mtmc::Directions::less:
    return '<';
  case mtmc::Directions::equal:
    return '=';
  case mtmc::Directions::greater:
    return '>';
  default:
    return '*';
  }
}

/// "flow A (=,<) 0,1", sorted, each once; a reduction's ends with " reduction".
inline std::vector<std::string> dependences(const mtmc::FunctionAnalysis& function) {
  std::vector<std::string> lines;
  for (const auto& dependence : function.dependences) {
    std::string line = dependence.kind == mtmc::DependenceKind::flow   ? "flow "
                       : dependence.kind == mtmc::DependenceKind::anti ? "anti "
                                                                       : "output ";
    line += dependence.source->array->name + " (";
    for (std::size_t i = 0; i < dependence.directions.size(); ++i) {
      if (i > 0) line += ',';
      line += shown(dependence.directions[i]);
    }
    line += ')';
    for (std::size_t i = 0; i < dependence.distances.size(); ++i)
      line += (i == 0 ? " " : ",") +
              (dependence.distances[i] ? std::to_string(*dependence.distances[i]) : std::string("?"));
    if (dependence.reduction) line += " reduction";
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

} // namespace analysed
