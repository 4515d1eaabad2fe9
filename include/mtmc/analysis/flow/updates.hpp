#pragma once

#include <mtmc/analysis/flow/access.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// \file
/// Updates `x = x op value` in all their spellings, and what literals are worth.

namespace mtmc::inline MTMC_ABI::detail {

/// Both expressions are written the same way.
[[nodiscard]] inline bool same_expression(const SyntaxNode& a, const SyntaxNode& b) noexcept {
  if (a.kind != b.kind || a.text != b.text || a.type != b.type || a.children.size() != b.children.size())
    return false;
  for (std::size_t i = 0; i < a.children.size(); ++i)
    if (!same_expression(a.children[i], b.children[i])) return false;
  return true;
}

/// The value of an integer literal as spelt (`42u`, `0x1f`, `1'000`, `'a'` is none).
[[nodiscard]] inline std::optional<std::int64_t> integer_literal(std::string_view text) noexcept {
  if (text == "true") return 1;
  if (text == "false") return 0;
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
    base = 2;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
  }
  std::int64_t value = 0;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'') continue;
    int digit = 99;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (base == 16 && c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (base == 16 && c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit >= base) break;
    if (__builtin_mul_overflow(value, std::int64_t{base}, &value) ||
        __builtin_add_overflow(value, std::int64_t{digit}, &value))
      return std::nullopt;
  }
  if (i == 0) return std::nullopt;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c != 'u' && c != 'U' && c != 'l' && c != 'L' && c != 'z' && c != 'Z') return std::nullopt;
  }
  return value;
}

/// An update `target = target op value` recognised in an assigned value.
struct Update {
  ReductionOperation operation = ReductionOperation::none;
  /// Where the value reads the target.
  const SyntaxNode* read = nullptr;
};

/// `target` as a term of a sum (or factor of a product) that is not negated.
[[nodiscard]] inline const SyntaxNode* find_operand(const SyntaxNode& value, const SyntaxNode& target,
                                                    bool product) noexcept {
  if (same_expression(value, target)) return &value;
  if (value.kind != NodeKind::binary) return nullptr;
  const bool commutes = value.text == (product ? "*" : "+");
  if (!commutes && (product || value.text != "-")) return nullptr;
  if (const SyntaxNode* left = find_operand(value.children[0], target, product); left != nullptr) return left;
  return commutes ? find_operand(value.children[1], target, product) : nullptr;
}

/// `target` as an operand of a chain of one operator on bits or truth values.
[[nodiscard]] inline const SyntaxNode* find_chained(const SyntaxNode& value, const SyntaxNode& target,
                                                    std::string_view symbol) noexcept {
  if (same_expression(value, target)) return &value;
  if (value.kind != NodeKind::binary || value.text != symbol) return nullptr;
  const SyntaxNode* const left = find_chained(value.children[0], target, symbol);
  return left != nullptr ? left : find_chained(value.children[1], target, symbol);
}

/// Whether `condition ? a : b` selects the smaller or the larger of `a` and `b`.
[[nodiscard]] inline ReductionOperation selection(const SyntaxNode& condition, const SyntaxNode& a,
                                                  const SyntaxNode& b) noexcept {
  if (condition.kind != NodeKind::binary) return ReductionOperation::none;
  const std::string& symbol = condition.text;
  const bool less = symbol == "<" || symbol == "<=";
  if (!less && symbol != ">" && symbol != ">=") return ReductionOperation::none;
  const bool straight =
      same_expression(condition.children[0], a) && same_expression(condition.children[1], b);
  const bool crossed = same_expression(condition.children[0], b) && same_expression(condition.children[1], a);
  if (!straight && !crossed) return ReductionOperation::none;
  return less == straight ? ReductionOperation::minimum : ReductionOperation::maximum;
}

/// Whether `condition ? a : b` is `a < n ? a : n - 1`: the smaller one of two integers.
[[nodiscard]] inline bool is_clamp(const SyntaxNode& condition, const SyntaxNode& a,
                                   const SyntaxNode& b) noexcept {
  return condition.kind == NodeKind::binary && condition.text == "<" && b.kind == NodeKind::binary &&
         b.text == "-" && b.children[1].kind == NodeKind::literal && b.children[1].text == "1" &&
         same_expression(condition.children[0], a) && same_expression(condition.children[1], b.children[0]);
}

/// Whether a function is `a * b + c`, rounded once or not.
[[nodiscard]] inline bool is_multiply_add(const SyntaxNode& function) noexcept {
  return function.kind == NodeKind::name &&
         (function.text == "fmaf" || function.text == "fma" || function.text == "std::fma" ||
          function.text == "__fmaf_rn" || function.text == "__builtin_fmaf");
}

/// The update that assigning `value` to `target` is, if it is one. `min_max_of` gives what a call selects.
template <class MinMaxOf>
[[nodiscard]] Update find_update(const SyntaxNode& target, const SyntaxNode& value,
                                 const MinMaxOf& min_max_of) {
  if (value.kind == NodeKind::binary) {
    if (value.text == "+" || value.text == "-")
      if (const SyntaxNode* read = find_operand(value, target, false); read != nullptr)
        return {ReductionOperation::sum, read};
    if (value.text == "*")
      if (const SyntaxNode* read = find_operand(value, target, true); read != nullptr)
        return {ReductionOperation::product, read};
    if (const ReductionOperation operation = truth_operation(value.text);
        operation != ReductionOperation::none && target.kind == NodeKind::name)
      if (const SyntaxNode* read = find_chained(value, target, value.text); read != nullptr)
        return {operation, read};
  }
  if (value.kind == NodeKind::call && value.children.size() == 3) {
    const ReductionOperation operation = min_max_of(value);
    if (operation != ReductionOperation::none) {
      if (same_expression(value.children[1], target)) return {operation, &value.children[1]};
      if (same_expression(value.children[2], target)) return {operation, &value.children[2]};
    }
  }
  if (value.kind == NodeKind::call && value.children.size() == 4 && is_multiply_add(value.children[0]) &&
      same_expression(value.children[3], target))
    return {ReductionOperation::sum, &value.children[3]};
  if (value.kind == NodeKind::conditional) {
    const ReductionOperation operation = selection(value.children[0], value.children[1], value.children[2]);
    if (operation != ReductionOperation::none) {
      if (same_expression(value.children[1], target)) return {operation, &value.children[1]};
      if (same_expression(value.children[2], target)) return {operation, &value.children[2]};
    }
  }
  return {};
}

} // namespace mtmc::detail
