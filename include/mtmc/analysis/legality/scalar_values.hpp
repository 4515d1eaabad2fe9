#pragma once

#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// The values that an iteration leaves in scalars, as expressions of those it found there.

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

/// Scalars and what an iteration makes of them.
class ScalarValues {
public:
  /// The value behind the iteration, or null where it does not assign the scalar.
  [[nodiscard]] const SyntaxNode* find(std::string_view name) const noexcept {
    for (const auto& [known, value] : values_)
      if (known == name) return &value;
    return nullptr;
  }
  /// An inner loop does it: an iteration of the loop itself does it several times.
  [[nodiscard]] bool nested() const noexcept { return nested_; }
  /// It happens in some iterations only.
  [[nodiscard]] bool conditional() const noexcept { return conditional_; }

private:
  friend class ScalarValuesFinder;
  std::vector<std::pair<std::string, SyntaxNode>> values_{};
  bool nested_ = false;
  bool conditional_ = false;
};

/// Follows the statements of an iteration.
class ScalarValuesFinder {
public:
  ScalarValuesFinder(const LoopInfo& loop, const std::vector<std::string>& names, bool may_be_read)
      : loop_(loop), names_(names), may_be_read_(may_be_read) {}

  [[nodiscard]] std::optional<ScalarValues> find() {
    if (hides_names()) return std::nullopt;
    const auto body = statements_with_names();
    if (!body || !follow(*body)) return std::nullopt;
    return std::move(result_);
  }

private:
  static constexpr std::size_t max_nodes = 600; // of one value

  /// One name stands for two variables.
  [[nodiscard]] bool hides_names() const {
    std::vector<std::string> declared = names_;
    bool twice = false;
    walk(loop_body(*loop_.node), [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::declarator) return;
      twice = twice || std::find(declared.begin(), declared.end(), node.text) != declared.end();
      declared.push_back(node.text);
    });
    return twice;
  }
  [[nodiscard]] bool mentions_names(const SyntaxNode& node) const {
    return std::any_of(names_.begin(), names_.end(),
                       [&](const std::string& name) { return uses_name(node, name); });
  }
  /// A name whose value depends on the scalars.
  [[nodiscard]] bool depends(const SyntaxNode& node) const {
    if (mentions_names(node)) return true;
    return std::any_of(result_.values_.begin(), result_.values_.end(), [&](const auto& entry) {
      return uses_name(node, entry.first) && mentions_names(entry.second);
    });
  }

  /// The statements that speak of the scalars stand in one block: that of the loop, or deeper. A branch is
  /// not left out where the states of all iterations are asked for.
  [[nodiscard]] std::optional<std::span<const SyntaxNode>> statements_with_names() {
    std::span<const SyntaxNode> body = statements(loop_body(*loop_.node));
    for (;;) {
      const SyntaxNode* only = nullptr;
      for (const SyntaxNode& statement : body) {
        if (!mentions_names(statement)) continue;
        if (only != nullptr) return body;
        only = &statement;
      }
      if (only == nullptr) return std::nullopt;
      if (only->kind == NodeKind::block) {
        body = statements(*only);
      } else if (only->kind == NodeKind::for_loop) {
        for (std::size_t part = 0; part < 3; ++part)
          if (mentions_names(only->children[part])) return std::nullopt;
        result_.nested_ = true;
        body = statements(loop_body(*only));
      } else if (!may_be_read_ && only->kind == NodeKind::if_statement && else_branch(*only) == nullptr &&
                 !mentions_names(if_condition(*only))) {
        result_.conditional_ = true;
        body = statements(then_branch(*only));
      } else {
        return body;
      }
    }
  }

  [[nodiscard]] bool follow(std::span<const SyntaxNode> body) {
    return std::all_of(body.begin(), body.end(),
                       [&](const SyntaxNode& statement) { return follow(statement); });
  }
  [[nodiscard]] bool follow(const SyntaxNode& statement) {
    switch (statement.kind) {
    case NodeKind::comment:
    case NodeKind::empty:
    case NodeKind::pragma:
      return true;
    case NodeKind::block:
      return follow(statements(statement));
    case NodeKind::declaration:
      for (const SyntaxNode& declarator : declarators(statement)) {
        if (std::find(names_.begin(), names_.end(), declarator.text) != names_.end()) return false;
        const SyntaxNode* const value = initial_value(declarator);
        if (value == nullptr) {
          if (initializer(declarator) != nullptr && depends(declarator)) return false;
          continue;
        }
        if (!declarator.type.empty() || !extents(declarator).empty()) {
          if (depends(*value)) return false;
          continue;
        }
        if (!set(declarator.text, *value)) return false;
      }
      return true;
    case NodeKind::expression_statement:
      return follow_expression(operand(statement));
    case NodeKind::if_statement:
      return follow_branch(statement);
    default:
      return (may_be_read_ || !depends(statement)) && !assigns_known(statement);
    }
  }

  [[nodiscard]] bool follow_expression(const SyntaxNode& expression) {
    if (expression.kind == NodeKind::binary && expression.text == ",")
      return follow_expression(left_operand(expression)) && follow_expression(right_operand(expression));
    const bool step =
        expression.kind == NodeKind::postfix ||
        (expression.kind == NodeKind::unary && (expression.text == "++" || expression.text == "--"));
    if (step && operand(expression).kind == NodeKind::name)
      return set(operand(expression).text,
                 make_binary(expression.text.substr(0, 1), operand(expression), make_integer(1)));
    if (expression.kind == NodeKind::assignment && left_operand(expression).kind == NodeKind::name) {
      const SyntaxNode& target = left_operand(expression);
      if (expression.text == "=") return set(target.text, right_operand(expression));
      return set(target.text, make_binary(expression.text.substr(0, expression.text.size() - 1), target,
                                          right_operand(expression)));
    }
    return (may_be_read_ || !depends(expression)) && !assigns_known(expression);
  }

  /// Both ways, with what each assigns chosen by the condition.
  [[nodiscard]] bool follow_branch(const SyntaxNode& statement) {
    if (!depends(statement) && !assigns_known(statement)) return true;
    SyntaxNode condition = followed(if_condition(statement));
    const auto before = result_.values_;
    if (!follow(statements(then_branch(statement)))) return false;
    const auto then_values = std::exchange(result_.values_, before);
    if (else_branch(statement) != nullptr && !follow(statements(*else_branch(statement)))) return false;
    const auto else_values = std::exchange(result_.values_, before);
    const auto value_in = [](const auto& values, const std::string& name) -> SyntaxNode {
      for (const auto& [known, value] : values)
        if (known == name) return value;
      return make_name(name);
    };
    for (const auto* values : {&then_values, &else_values})
      for (const auto& [name, value] : *values) {
        const SyntaxNode first = value_in(then_values, name), second = value_in(else_values, name);
        if (structurally_equal(first, second)) {
          put(name, first);
          continue;
        }
        put(name, make_conditional(condition, first, second));
      }
    return true;
  }

  /// The statement assigns something that values are known of, or scalars.
  [[nodiscard]] bool assigns_known(const SyntaxNode& statement) const {
    bool found = false;
    walk(statement, [&](const SyntaxNode& node) {
      const bool step =
          node.kind == NodeKind::postfix ||
          (node.kind == NodeKind::unary && (node.text == "++" || node.text == "--" || node.text == "&"));
      if (node.kind != NodeKind::assignment && !step) return;
      const SyntaxNode& place = node.children.front();
      if (place.kind == NodeKind::name) found = true;
    });
    return found;
  }

  [[nodiscard]] bool set(const std::string& name, const SyntaxNode& value) {
    bool plain = true; // nothing in it assigns
    walk(value, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::assignment || node.kind == NodeKind::postfix ||
          node.kind == NodeKind::opaque ||
          (node.kind == NodeKind::unary && (node.text == "++" || node.text == "--")))
        plain = false;
    });
    if (!plain) return false;
    SyntaxNode known = followed(value);
    std::size_t nodes = 0;
    walk(known, [&](const SyntaxNode&) { ++nodes; });
    if (nodes > max_nodes) return false;
    put(name, std::move(known));
    return true;
  }
  void put(const std::string& name, SyntaxNode value) {
    for (auto& [known, old] : result_.values_)
      if (known == name) {
        old = std::move(value);
        return;
      }
    result_.values_.emplace_back(name, std::move(value));
  }
  /// The expression with the values of all names at this point.
  [[nodiscard]] SyntaxNode followed(const SyntaxNode& expression) const {
    if (expression.kind == NodeKind::name)
      if (const SyntaxNode* const value = result_.find(expression.text)) return *value;
    SyntaxNode result = expression;
    const std::size_t first = expression.kind == NodeKind::call ? 1 : 0; // the callee is no variable
    for (std::size_t i = first; i < result.children.size(); ++i)
      result.children[i] = followed(expression.children[i]);
    return result;
  }

  const LoopInfo& loop_;
  const std::vector<std::string>& names_;
  const bool may_be_read_;
  ScalarValues result_{};
};

/// What one iteration makes of the named scalars. Nothing where it is not understood, or where they decide
/// about something else (which `may_be_read` allows, as long as no scalar is assigned there; the values are
/// then those behind every iteration, so that none is `conditional`).
[[nodiscard]] inline std::optional<ScalarValues> values_after_iteration(const LoopInfo& loop,
                                                                        const std::vector<std::string>& names,
                                                                        bool may_be_read = false) {
  return ScalarValuesFinder(loop, names, may_be_read).find();
}

} // namespace mtmc::detail
