#pragma once
/// Our trees of Python files against those of Python's own `ast`, node by node.

#include <mtmc/analysis/python/python_parser.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/text.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc_test {

/// What came of it.
struct AstComparison {
  bool have_python = true;
  std::size_t files = 0; ///< that ast could read and that have no statement that we leave opaque
  std::vector<std::string> differences{}; ///< the first one of each file, as sentences
};

namespace detail {

/// A tree in the lines of ast_tree.py; what that cannot tell is left out.
inline void add_lines(const mtmc::SyntaxNode& node, std::size_t depth, std::vector<std::string>& lines) {
  using mtmc::NodeKind;
  if (node.kind == NodeKind::launch_comment) return; // a comment of Python's
  const bool tuple = node.kind == NodeKind::initializer_list && node.type == "(";
  const std::string type = tuple || node.kind == NodeKind::class_definition ? std::string() : node.type;
  std::string line(depth, ' ');
  line += std::string(to_string(node.kind)) + " [" + node.text + '|' + type + "] @";
  if (node.range.known()) line += std::to_string(node.range.begin) + '-' + std::to_string(node.range.end);
  std::string told;
  for (const char c : line) {
    if (c == '\n')
      told += "\\n";
    else if (c == '\r')
      told += "\\r";
    else
      told += c;
  }
  lines.push_back(told);
  for (const mtmc::SyntaxNode& child : node.children) add_lines(child, depth + 1, lines);
}

/// Whether a line of ast's is that of ours; it may leave open where the node stands.
inline bool agree(std::string_view ast, std::string_view ours) {
  return ast.ends_with("] @") ? ours.starts_with(ast) : ast == ours;
}

} // namespace detail

/// Compares files, with options of ast_tree.py among them. Throws where that fails.
inline AstComparison compare_with_ast(const std::vector<std::string>& files) {
  mtmc::ProcessOptions process;
  process.arguments = {"python3", std::string(MTMC_REPOSITORY) + "/tests/analysis/python/ast_tree.py"};
  process.arguments.insert(process.arguments.end(), files.begin(), files.end());
  process.output_limit = std::size_t{1} << 30;
  const auto done = mtmc::run_process(process);
  AstComparison result;
  if (done.status == mtmc::ProcessStatus::failed_to_start) {
    result.have_python = false;
    return result;
  }
  if (!done.succeeded()) throw std::runtime_error(done.message + '\n' + done.error);

  std::string path;
  std::vector<std::string> ours;
  std::size_t at = 0;
  bool same = true;
  const auto differs = [&](std::string_view theirs) {
    same = false;
    result.differences.push_back(path + ": ast has " + std::string(theirs) + ", and we " +
                                 (at < ours.size() ? ours[at] : std::string("nothing")));
  };
  std::string_view rest = done.output;
  while (!rest.empty()) {
    const std::string_view line = mtmc::detail::take_line(rest);
    if (line.starts_with("# ")) {
      if (same && at < ours.size()) differs("nothing");
      path = line.substr(2);
      ours.clear();
      const mtmc::SyntaxNode tree = mtmc::parse_python(mtmc::read_file(path));
      for (const mtmc::SyntaxNode& child : tree.children) detail::add_lines(child, 1, ours);
      at = 0;
      same = true;
      ++result.files;
    } else if (same) {
      if (at < ours.size() && detail::agree(line, ours[at]))
        ++at;
      else
        differs(line);
    }
  }
  if (same && at < ours.size()) differs("nothing");
  return result;
}

} // namespace mtmc_test
