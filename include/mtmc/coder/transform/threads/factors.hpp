#pragma once
/// Products as their factors.

#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Factors of a product, `1` and conversions left out.
using Factors = std::vector<SyntaxNode>;

[[nodiscard]] inline Factors factors_of(const SyntaxNode& expression) {
  const SyntaxNode& plain = without_casts(expression);
  if (plain.kind == NodeKind::literal && literal_value(plain) == 1) return {};
  if (plain.kind != NodeKind::binary || plain.text != "*") return {plain};
  Factors factors = factors_of(left_operand(plain));
  for (SyntaxNode& factor : factors_of(right_operand(plain))) factors.push_back(std::move(factor));
  return factors;
}
/// What is left of a product without some of its factors; nothing where it has not all of them.
[[nodiscard]] inline std::optional<Factors> without(Factors product, const Factors& some) {
  for (const SyntaxNode& factor : some) {
    const auto at = std::find_if(product.begin(), product.end(), [&](const SyntaxNode& other) {
      return structurally_equal(without_casts(factor), without_casts(other));
    });
    if (at == product.end()) return std::nullopt;
    product.erase(at);
  }
  return product;
}
/// The product of factors: 1 of none.
[[nodiscard]] inline SyntaxNode product_of(const Factors& factors) {
  if (factors.empty()) return make_integer(1);
  SyntaxNode product = factors.front();
  for (std::size_t i = 1; i < factors.size(); ++i) product = make_binary("*", product, factors[i]);
  return product;
}

} // namespace mtmc::detail
