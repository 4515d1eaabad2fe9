#pragma once
/// What the variables of a function are made from: each stands for an expression of others that nothing
/// changes.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The variables of a function that are declared with a value and never changed.
class LocalValues {
public:
  explicit LocalValues(const FunctionAnalysis& function) {
    for (const Variable& variable : function.variables) {
      if (variable.kind != Variable::Kind::local || variable.declaration == nullptr || variable.array ||
          variable.address_taken)
        continue;
      types_[variable.name] = without_qualifiers(variable.type);
      const SyntaxNode* const value = initial_value(*variable.declaration);
      const bool changes = std::any_of(variable.uses.begin(), variable.uses.end(), [&](std::size_t at) {
        const ScalarUse& use = function.scalar_uses[at];
        return use.write && use.node != variable.declaration;
      });
      if (value == nullptr || changes || is_loop_variable(function, variable)) continue;
      if (values_.contains(variable.name)) // two of one name: neither is meant
        kept_.insert(variable.name);
      names_.push_back(variable.name);
      values_[variable.name] = converted(types_[variable.name], *value);
    }
  }

  /// Their names in the order of their declarations.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  /// The type of a variable, without qualifiers.
  [[nodiscard]] std::string type_of(const std::string& name) const {
    const auto found = types_.find(name);
    return found == types_.end() ? "int" : found->second;
  }
  /// The variable stands for itself from now on.
  void keep(const std::string& name) { kept_.insert(name); }
  /// The variable stands for an expression from now on.
  void set(const std::string& name, SyntaxNode value) {
    kept_.erase(name);
    values_[name] = std::move(value);
  }
  /// Whether it stands for an expression.
  [[nodiscard]] bool has(const std::string& name) const {
    return values_.contains(name) && !kept_.contains(name);
  }
  /// An expression with what its variables stand for in their places.
  [[nodiscard]] SyntaxNode expanded(SyntaxNode expression) const {
    for (const std::string& name : names_used(expression)) {
      if (!has(name)) continue;
      const SyntaxNode value = expanded(values_.at(name));
      if (is_name(expression, name))
        expression = value;
      else
        substitute(expression, name, value);
    }
    return expression;
  }

private:
  [[nodiscard]] static bool is_loop_variable(const FunctionAnalysis& function, const Variable& variable) {
    return std::any_of(function.loops.begin(), function.loops.end(),
                       [&](const LoopInfo& loop) { return loop.variable == variable.name; });
  }
  /// A value as the variable has it: of its type.
  [[nodiscard]] static SyntaxNode converted(const std::string& type, const SyntaxNode& value) {
    const bool plain = type == "int" || type == "auto" || type.find('*') != std::string::npos;
    return plain ? value : make_cast(type, value);
  }

  std::vector<std::string> names_{};
  std::map<std::string, std::string> types_{};
  std::map<std::string, SyntaxNode> values_{};
  std::set<std::string> kept_{};
};

} // namespace mtmc::detail
