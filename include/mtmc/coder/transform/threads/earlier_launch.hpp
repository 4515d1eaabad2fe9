#pragma once
/// A second function for part of what a launched function does, with a launch of its own in front.

#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Leaves a function the parameters that its body uses. Returns what its launch line gives for them.
[[nodiscard]] inline std::vector<std::string> keep_used_parameters(SyntaxNode& function,
                                                                   const LaunchLine& line) {
  std::vector<std::string> arguments;
  std::vector<SyntaxNode> kept;
  const SyntaxNode& body = function_body(function);
  const auto formal = parameters(function);
  for (std::size_t i = 0; i < formal.size(); ++i) {
    if (!uses_name(body, formal[i].text)) continue;
    kept.push_back(formal[i]);
    arguments.push_back(line.arguments.at(i));
  }
  kept.push_back(std::move(function.children.back()));
  function.children = std::move(kept);
  return arguments;
}

/// Adds a parameter behind the others.
inline void add_parameter(SyntaxNode& function, const std::string& type, const std::string& name) {
  function.children.insert(function.children.end() - 1, make_parameter(type, name));
}

/// Puts a function in front of the launched one and the lines, of scratch and its launch, in front of that
/// one's line. Moves the places that `launch` knows.
inline void add_earlier_launch(SyntaxNode& tree, ThreadLaunch& launch, SyntaxNode function,
                               const std::vector<std::string>& texts) {
  std::vector<SyntaxNode> lines;
  for (const std::string& text : texts) lines.push_back(make_launch_comment(text));
  lines.front().leading_trivia = tree.children[launch.line_at].leading_trivia;
  tree.children[launch.line_at].leading_trivia.clear();
  const std::size_t function_at = launch.function_at.front();
  SyntaxNode& behind = tree.children[function_at];
  if (!behind.leading_trivia.starts_with('\n')) behind.leading_trivia.insert(0, "\n");
  const auto insert = [&](std::size_t at, SyntaxNode node) {
    tree.children.insert(tree.children.begin() + static_cast<std::ptrdiff_t>(at), std::move(node));
  };
  insert(function_at, std::move(function));
  const std::size_t line_at = launch.line_at + (launch.line_at > function_at ? 1 : 0);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) insert(line_at, std::move(*line));
  launch.function_at.front() += 1 + (line_at <= function_at ? lines.size() : 0);
  launch.line_at = line_at + lines.size();
}

} // namespace mtmc::detail
