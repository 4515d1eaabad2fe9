#pragma once
/// Integer expressions as sums of products of names.

#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// An integer expression as a sum of products of names; nothing where it is another one. Tells that
/// `(b * C + c) * P + p` and `b * C * P + c * P + p` are the same number.
using ProductSum = std::map<std::multiset<std::string>, std::int64_t>;
[[nodiscard]] inline std::optional<ProductSum> product_sum(const SyntaxNode& node) {
  if (const auto number = literal_value(node)) {
    ProductSum result;
    if (*number != 0) result[{}] = *number;
    return result;
  }
  if (node.kind == NodeKind::name) return ProductSum{{{node.text}, 1}};
  if (node.kind != NodeKind::binary || (node.text != "+" && node.text != "-" && node.text != "*"))
    return std::nullopt;
  const auto left = product_sum(left_operand(node)), right = product_sum(right_operand(node));
  constexpr std::size_t largest = 64;
  if (!left || !right || left->size() * right->size() > largest) return std::nullopt;
  ProductSum result;
  const auto add = [&result](const std::multiset<std::string>& names, std::int64_t factor) {
    std::int64_t& sum = result[names];
    sum += factor;
    if (sum == 0) result.erase(names);
  };
  if (node.text == "*") {
    for (const auto& [a, x] : *left)
      for (const auto& [b, y] : *right) {
        auto names = a;
        names.insert(b.begin(), b.end());
        add(names, x * y);
      }
    return result;
  }
  for (const auto& [names, factor] : *left) add(names, factor);
  for (const auto& [names, factor] : *right) add(names, node.text == "+" ? factor : -factor);
  return result;
}

} // namespace mtmc::detail
