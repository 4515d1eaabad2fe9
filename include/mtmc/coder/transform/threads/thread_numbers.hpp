#pragma once
/// Kernels number their threads in one declaration, `int i = ..., j = ...;`, where transformations want one
/// for each number.

#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The declarators of a declaration, each in one of its own.
[[nodiscard]] inline std::vector<SyntaxNode> separated(SyntaxNode declaration) {
  std::vector<SyntaxNode> result;
  for (SyntaxNode& declarator : declaration.children) {
    SyntaxNode one = make_node(NodeKind::declaration, {}, node_list(std::move(declarator)));
    one.type = declaration.type;
    one.range = declaration.range;
    result.push_back(std::move(one));
  }
  result.front().leading_trivia = std::move(declaration.leading_trivia);
  result.back().trailing_trivia = std::move(declaration.trailing_trivia);
  return result;
}

/// Separates the declarations of a function's body whose values name threads.
inline void separate_thread_numbers(SyntaxNode& tree, std::string_view function_name) {
  SyntaxNode* const function = find_function(tree, function_name);
  if (function == nullptr) return;
  auto& body = function_body(*function).children;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i].kind != NodeKind::declaration || body[i].children.size() < 2 || !names_thread(body[i]))
      continue;
    auto parts = separated(std::move(body[i]));
    body[i] = std::move(parts.front());
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::make_move_iterator(parts.begin() + 1),
                std::make_move_iterator(parts.end()));
  }
}

} // namespace mtmc::detail
