#pragma once
/// Names such as `torch.nn.functional.relu`.

#include <mtmc/requirements.hpp>

#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// "torch.nn.functional.relu" of such members; "" of anything else, and of names of more than eight parts.
[[nodiscard]] inline std::string dotted_name(const SyntaxNode& node, int parts = 8) {
  if (node.kind == NodeKind::name) return node.text;
  if (node.kind != NodeKind::member || parts <= 1) return {};
  const std::string object = dotted_name(operand(node), parts - 1);
  return object.empty() ? object : object + node.text;
}

[[nodiscard]] inline std::string_view last_part(std::string_view dotted) noexcept {
  return dotted.substr(dotted.rfind('.') + 1); // npos + 1 is 0
}

} // namespace mtmc::detail
