#pragma once
/// How integer expressions change from one element of a vector to the next one.

#include <mtmc/analysis/flow/type_facts.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/pointwise.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// An expression within one vector of elements: its value for element e is that for the first one plus
/// `step * e`, and that for the first one is a multiple of `multiple`.
struct ElementStep {
  std::int64_t step = 0;
  std::int64_t multiple = 1;
};

/// Steps of the expressions of a pointwise function when threads do `width` neighbouring elements each, the
/// first of them a multiple of `width`. Quotients and remainders by what is a multiple of `width`, too, are
/// understood; whether it is must be tested at run time (`divisors`).
class ElementSteps {
public:
  /// `divides(divisor)`: whether it is worth to count on that the divisor is a multiple of the width.
  ElementSteps(const PointwiseLaunch& function, std::int64_t width,
               std::function<bool(const SyntaxNode&)> divides)
      : function_(function), width_(width), divides_(std::move(divides)) {
    for (const SyntaxNode* declaration : function.own) add(*declaration);
    if (function.element_conditions.empty())
      for (const SyntaxNode* statement : function.work)
        if (statement->kind == NodeKind::declaration) add(*statement);
    // what is a multiple of the width has to be known before anything is asked
    for (const SyntaxNode* declaration : function.own) find_divisors(*declaration);
    for (const SyntaxNode* statement : function.work) find_divisors(*statement);
  }

  /// Nothing where it is not known.
  [[nodiscard]] std::optional<ElementStep> of(const SyntaxNode& node) {
    switch (node.kind) {
    case NodeKind::literal: {
      const auto value = integer_literal(node.text);
      return value ? std::optional(ElementStep{0, *value}) : std::nullopt;
    }
    case NodeKind::name:
      return of_name(node);
    case NodeKind::cast: {
      const TypeFacts type = type_facts(node.type);
      return type.integer && !type.pointer && type.size >= 4 ? of(operand(node)) : std::nullopt;
    }
    case NodeKind::binary:
      return of_binary(node);
    default:
      return std::nullopt;
    }
  }

  /// What must be multiples of the width, each once.
  [[nodiscard]] const std::vector<SyntaxNode>& divisors() const noexcept { return divisors_; }

  /// The value that a variable of an element starts with and keeps; null if it has none.
  [[nodiscard]] const SyntaxNode* definition(const std::string& name) const {
    const auto found = definitions_.find(name);
    return found == definitions_.end() ? nullptr : found->second;
  }

private:
  void find_divisors(const SyntaxNode& part) {
    walk(part, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::binary && (node.text == "/" || node.text == "%")) (void)of(node);
    });
  }

  void add(const SyntaxNode& declaration) {
    for (const SyntaxNode& declarator : declarators(declaration)) {
      const SyntaxNode* const value = initial_value(declarator);
      if (value == nullptr || !declarator.type.empty() || !extents(declarator).empty() ||
          !is_integer_type_name(declaration.type))
        continue;
      for (const Variable& variable : function_.function->variables) {
        if (variable.declaration != &declarator || variable.address_taken) continue;
        const bool changes = std::any_of(variable.uses.begin(), variable.uses.end(), [&](std::size_t at) {
          const ScalarUse& use = function_.function->scalar_uses[at];
          return use.write && use.statement != &declaration;
        });
        if (!changes && type_facts(declaration.type).size >= 4) definitions_[declarator.text] = value;
      }
    }
  }

  [[nodiscard]] std::optional<ElementStep> of_name(const SyntaxNode& node) {
    if (node.text == function_.index.name) return ElementStep{1, width_};
    if (const SyntaxNode* const value = definition(node.text)) return of(*value);
    if (!function_.is_uniform(node)) return std::nullopt;
    return ElementStep{0, is_divisor(node) ? width_ : 1};
  }

  [[nodiscard]] std::optional<ElementStep> of_binary(const SyntaxNode& node) {
    const auto a = of(left_operand(node));
    const auto b = of(right_operand(node));
    if (!a || !b) return std::nullopt;
    if (a->step == 0 && b->step == 0) {
      const bool product = node.text == "*";
      if (product) return ElementStep{0, limited(a->multiple * b->multiple)};
      const bool sum = node.text == "+" || node.text == "-";
      return ElementStep{0, sum ? std::gcd(a->multiple, b->multiple) : 1};
    }
    if (node.text == "+") return ElementStep{a->step + b->step, std::gcd(a->multiple, b->multiple)};
    if (node.text == "-") return ElementStep{a->step - b->step, std::gcd(a->multiple, b->multiple)};
    if (node.text == "*") return product(node, *a, *b);
    if (b->step == 0 && is_counted(left_operand(node))) return part(node);
    return std::nullopt;
  }

  /// The number of the element, or a remainder of it: it moves by one, is not negative, and that of the first
  /// element is a multiple of the width.
  [[nodiscard]] bool is_counted(const SyntaxNode& expression) const {
    const SyntaxNode& node = without_casts(expression);
    if (is_name(node, function_.index.name)) return true;
    if (node.kind == NodeKind::name) {
      const SyntaxNode* const value = definition(node.text);
      return value != nullptr && is_counted(*value);
    }
    return node.kind == NodeKind::binary && (node.text == "%" || node.text == "&") &&
           is_counted(left_operand(node));
  }

  /// By a number.
  [[nodiscard]] std::optional<ElementStep> product(const SyntaxNode& node, const ElementStep& a,
                                                   const ElementStep& b) const {
    const auto value =
        integer_literal(without_casts(b.step == 0 ? right_operand(node) : left_operand(node)).text);
    const ElementStep& other = b.step == 0 ? a : b;
    constexpr std::int64_t largest = 64;
    if (!value || *value < 0 || *value > largest || other.step > largest) return std::nullopt;
    return ElementStep{other.step * *value, limited(other.multiple * *value)};
  }

  /// The quotient or the remainder of what moves by one element by something that is the same for all: a
  /// vector that begins at a multiple of its width does not cross a multiple of the divisor.
  [[nodiscard]] std::optional<ElementStep> part(const SyntaxNode& node) {
    const SyntaxNode& divisor = right_operand(node);
    const auto number = integer_literal(without_casts(divisor).text);
    if (node.text == ">>" || node.text == "&") {
      if (!number || *number < 0 || *number > (std::int64_t{1} << 30)) return std::nullopt;
      if (node.text == ">>")
        return *number < 31 && (std::int64_t{1} << *number) % width_ == 0 ? std::optional(ElementStep{0, 1})
                                                                          : std::nullopt;
      const bool mask = ((*number + 1) & *number) == 0 && (*number + 1) % width_ == 0;
      return mask ? std::optional(ElementStep{1, width_}) : std::nullopt;
    }
    if (node.text != "/" && node.text != "%") return std::nullopt;
    if (number) {
      if (*number == 0 || *number % width_ != 0) return std::nullopt;
    } else if (!is_divisor(divisor)) {
      if (touches_memory(divisor) || !function_.is_uniform(divisor) || !divides_(divisor))
        return std::nullopt;
      divisors_.push_back(divisor);
    }
    return node.text == "/" ? ElementStep{0, 1} : ElementStep{1, width_};
  }

  [[nodiscard]] bool is_divisor(const SyntaxNode& expression) const {
    return std::any_of(divisors_.begin(), divisors_.end(),
                       [&](const SyntaxNode& known) { return structurally_equal(known, expression); });
  }
  /// Large multiples tell no more than small ones.
  [[nodiscard]] static std::int64_t limited(std::int64_t multiple) {
    constexpr std::int64_t enough = 1 << 20;
    return std::gcd(multiple, enough);
  }

  const PointwiseLaunch& function_;
  const std::int64_t width_;
  const std::function<bool(const SyntaxNode&)> divides_;
  std::map<std::string, const SyntaxNode*> definitions_{};
  std::vector<SyntaxNode> divisors_{};
};

} // namespace mtmc::detail
