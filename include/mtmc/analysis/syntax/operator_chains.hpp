#pragma once
/// Chains of one operator (`a && b && c`) as their operands, and numbers whatever their spelling.

#include <mtmc/analysis/syntax/syntax_query.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A number as text, its sign and what follows its digits aside: "1" of `1.0f`.
[[nodiscard]] inline bool is_number(const SyntaxNode& node, char digit) {
  const SyntaxNode& value = without_casts(node);
  if (value.kind != NodeKind::literal || value.text.empty() || value.text.front() != digit) return false;
  return value.text.find_first_not_of(".0fFuUlL", 1) == std::string::npos &&
         (value.text.find('.') != std::string::npos || value.text.find('0', 1) == std::string::npos);
}

/// The operands of a chain of one operator.
inline void collect_chain(const SyntaxNode& node, std::string_view symbol,
                          std::vector<const SyntaxNode*>& result) {
  if (node.kind == NodeKind::binary && node.text == symbol) {
    collect_chain(left_operand(node), symbol, result);
    collect_chain(right_operand(node), symbol, result);
    return;
  }
  result.push_back(&node);
}
[[nodiscard]] inline std::vector<const SyntaxNode*> chain_of(const SyntaxNode& node,
                                                             std::string_view symbol) {
  std::vector<const SyntaxNode*> result;
  collect_chain(node, symbol, result);
  return result;
}

} // namespace mtmc::detail
