#pragma once
/// What values of a kernel of programs are in lanes behind the end of an axis: what folds a block may only be
/// given a larger one where these do not change its result.

#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/coder/transform/programs/block_values.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Reads them off the values of one kernel, for blocks of one size.
class ValuesBehindEnd {
public:
  /// `values` must outlive it.
  ValuesBehindEnd(const BlockValues& values, std::string block) : values_(values), block_(std::move(block)) {}

  /// What such a value is: a number, anything finite that is the same in all lanes, or not known.
  struct Behind {
    enum class Kind { number, finite, unknown };
    Kind kind = Kind::unknown; ///< what is known
    double number = 0;         ///< if it is a number

    [[nodiscard]] bool is(double value) const { return kind == Kind::number && number == value; }
  };
  [[nodiscard]] Behind of(const SyntaxNode& node) {
    assumed_.clear();
    budget_ = 2000;
    return behind(node, 40);
  }

private:
  using Kind = Behind::Kind;
  [[nodiscard]] static Behind number(double value) { return {Kind::number, value}; }

  [[nodiscard]] Behind behind(const SyntaxNode& node, int depth) {
    if (depth == 0 || --budget_ < 0) return {};
    const auto next = [&](const SyntaxNode& one) { return behind(one, depth - 1); };
    if (const auto value = literal_number(node)) return number(*value);
    if (!values_.of(node).lanes.contains(block_)) return {Kind::finite};
    switch (node.kind) {
    case NodeKind::name: {
      if (const auto found = assumed_.find(node.text); found != assumed_.end()) return found->second;
      // An accumulator keeps what it begins with, if each step says so.
      const auto values = values_.names().values(node.text);
      std::optional<Behind> agreed;
      for (const SyntaxNode* const value : values)
        if (value != nullptr && !agreed) {
          agreed = next(*value);
          assumed_[node.text] = *agreed;
        }
      if (!agreed || agreed->kind != Kind::number || !keeps(node.text, *agreed, depth)) {
        assumed_.clear(); // what followed from the wrong guess
        agreed = Behind{};
      }
      return assumed_[node.text] = *agreed;
    }
    case NodeKind::subscript:
      return next(subscript_base(node));
    case NodeKind::unary:
      if (node.text == "-") return computed("-", number(0), next(operand(node)));
      return {};
    case NodeKind::binary:
      return computed(node.text, next(left_operand(node)), next(right_operand(node)));
    case NodeKind::call:
      return behind_call(node, depth);
    default:
      return {};
    }
  }
  /// Whether all that is assigned to a name is that number.
  [[nodiscard]] bool keeps(const std::string& name, const Behind& value, int depth) {
    bool kept = true;
    walk(values_.body(), [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::assignment) return;
      const SyntaxNode& target = left_operand(node);
      if (target.kind == NodeKind::initializer_list)
        for (const SyntaxNode& one : target.children) kept = kept && !is_name(one, name);
      if (!is_name(target, name)) return;
      Behind here = behind(right_operand(node), depth - 1);
      if (node.text != "=" && node.text != ":=")
        here = computed(node.text.substr(0, node.text.size() - 1), value, here);
      kept = kept && here.is(value.number);
    });
    return kept;
  }
  [[nodiscard]] static std::optional<double> literal_number(const SyntaxNode& node) {
    if (node.kind == NodeKind::unary && node.text == "-") {
      const auto value = literal_number(operand(node));
      return value ? std::optional(-*value) : std::nullopt;
    }
    if (node.kind == NodeKind::call && is_name(callee(node), "float") && arguments(node).size() == 1 &&
        arguments(node)[0].kind == NodeKind::literal) {
      const std::string& text = arguments(node)[0].text;
      if (text.find("-inf") != std::string::npos) return -std::numeric_limits<double>::infinity();
      if (text.find("inf") != std::string::npos) return std::numeric_limits<double>::infinity();
      return std::nullopt;
    }
    if (node.kind != NodeKind::literal) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
    if (error != std::errc{} || end != node.text.data() + node.text.size()) return std::nullopt;
    return value;
  }
  [[nodiscard]] static Behind computed(std::string_view sign, const Behind& a, const Behind& b) {
    if (a.kind == Kind::unknown || b.kind == Kind::unknown) return {};
    if (a.kind == Kind::number && b.kind == Kind::number) {
      const double value = sign == "+"   ? a.number + b.number
                           : sign == "-" ? a.number - b.number
                           : sign == "*" ? a.number * b.number
                           : sign == "/" ? a.number / b.number
                                         : std::numeric_limits<double>::quiet_NaN();
      return std::isnan(value) ? Behind{} : number(value);
    }
    if (a.kind == Kind::finite && b.kind == Kind::finite) return {Kind::finite};
    const bool first = a.kind == Kind::number;
    const double known = first ? a.number : b.number;
    if (std::isinf(known) && (sign == "+" || (sign == "-" && first))) return number(known);
    if (std::isinf(known) && sign == "-") return number(-known);
    if (known == 0 && (sign == "*" || (sign == "/" && first))) return number(0);
    if (!std::isinf(known) && (sign == "+" || sign == "-" || sign == "*")) return {Kind::finite};
    return {};
  }
  [[nodiscard]] Behind behind_call(const SyntaxNode& call, int depth) {
    const std::string function = function_of_call(call);
    const auto next = [&](const SyntaxNode& one) { return behind(one, depth - 1); };
    const auto given = arguments(call);
    if (function == "load") {
      const SyntaxNode* const mask = argument_of(call, 1, "mask");
      const SyntaxNode* const other = argument_of(call, 2, "other");
      if (mask == nullptr || other == nullptr || !values_.masks(*mask, block_)) return {};
      const auto value = literal_number(*other);
      return value ? number(*value) : Behind{};
    }
    if (function == "zeros") return number(0);
    if (function == "full" && given.size() >= 2) {
      const auto value = literal_number(given[1]);
      return value ? number(*value) : Behind{};
    }
    if (function == "to" && callee(call).kind == NodeKind::member) return next(operand(callee(call)));
    if (function == "where" && given.size() == 3) {
      const Behind otherwise = next(given[2]);
      if (values_.masks(given[0], block_)) return otherwise;
      const Behind then = next(given[1]);
      return then.kind == Kind::number && otherwise.is(then.number) ? then : Behind{};
    }
    if ((function == "maximum" || function == "minimum") && given.size() == 2) {
      const Behind a = next(given[0]), b = next(given[1]);
      if (a.kind != Kind::number || b.kind != Kind::number) return {};
      return number(function == "maximum" ? std::max(a.number, b.number) : std::min(a.number, b.number));
    }
    if (given.empty()) return {};
    const Behind value = next(given[0]);
    if (value.kind != Kind::number) return {};
    if (function == "exp") return number(std::exp(value.number));
    if (function == "exp2") return number(std::exp2(value.number));
    if (function == "abs") return number(std::fabs(value.number));
    if (function == "sqrt" && value.number >= 0) return number(std::sqrt(value.number));
    return {};
  }

  const BlockValues& values_;
  std::string block_;
  std::map<std::string, Behind> assumed_{}; ///< by name, while it is looked into and afterwards
  int budget_ = 0;                          ///< so many more expressions are looked into
};

} // namespace mtmc::detail
