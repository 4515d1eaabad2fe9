#pragma once
/// The axes along which a launch has results: numbers of threads and blocks, and what a function takes out of
/// them by division.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/factors.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/local_values.hpp>
#include <mtmc/coder/transform/threads/sum.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// An axis along which a launch has results.
struct ResultAxis {
  std::string name{};     ///< of the variable that numbers them
  std::string type{};     ///< of that variable, without `const`
  SyntaxNode limit{};     ///< how many there are, from the function's parameters; empty: not known
  std::size_t source = 0; ///< axis of the launch it comes from: 0 = x
  bool is_block = false;  ///< it is the number of a block, as that is
};

/// A number of a thread or block, and the axes that are taken out of it, slowest first.
struct AxisSource {
  std::string name{};
  std::string type{};
  std::size_t axis = 0;
  bool is_block = false;
  std::optional<SyntaxNode> limit{}; ///< how many numbers there are, where that is known
  std::vector<ResultAxis> axes{};
  /// The number from those axes.
  [[nodiscard]] SyntaxNode value() const {
    SyntaxNode number = make_name(axes.front().name);
    for (std::size_t i = 1; i < axes.size(); ++i)
      number = make_binary("+", make_binary("*", number, axes[i].limit), make_name(axes[i].name));
    return number;
  }
};

/// Finds them. Throws `TransformDeclined` where two variables number one axis.
class ResultAxisReader {
public:
  ResultAxisReader(const ThreadSum& sum, LocalValues& values) : sum_(sum), values_(values) {
    for (const ThreadIndex& index : sum.indices) add_source(index.name, index.axis, false);
    for (const SyntaxNode* declaration : sum.before)
      for (const SyntaxNode& declarator : declarators(*declaration)) add_block(declarator);
    std::stable_sort(sources_.begin(), sources_.end(),
                     [](const AxisSource& a, const AxisSource& b) { return a.axis > b.axis; });
    for (AxisSource& source : sources_) take_apart(source);
  }
  /// All sources, slowest first; each has at least one axis.
  [[nodiscard]] const std::vector<AxisSource>& sources() const noexcept { return sources_; }
  /// Whether the condition says how far a source goes, which its axes say now.
  [[nodiscard]] bool is_limit(const SyntaxNode& condition) const {
    return std::any_of(limits_.begin(), limits_.end(),
                       [&](const SyntaxNode* limit) { return limit == &condition; });
  }

private:
  void add_block(const SyntaxNode& declarator) {
    const SyntaxNode* const value = initial_value(declarator);
    if (value == nullptr || value->kind != NodeKind::member || !is_name(operand(*value), "blockIdx")) return;
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (value->text == '.' + std::string(axis_names[axis])) add_source(declarator.text, axis, true);
  }
  void add_source(const std::string& name, std::size_t axis, bool is_block) {
    for (const AxisSource& other : sources_)
      if (other.axis == axis) throw TransformDeclined("two variables number the axis of " + name);
    AxisSource source{name, values_.type_of(name), axis, is_block};
    values_.keep(name);
    for (const SyntaxNode& condition : sum_.conditions) {
      if (condition.kind != NodeKind::binary || condition.text != "<" ||
          !is_name(without_casts(left_operand(condition)), name))
        continue;
      const SyntaxNode limit = values_.expanded(right_operand(condition));
      if (!is_from_parameters(limit)) continue;
      source.limit = limit;
      limits_.push_back(&condition);
      break;
    }
    if (!source.limit) source.limit = limit_of_launch(source);
    sources_.push_back(std::move(source));
  }
  [[nodiscard]] bool is_from_parameters(const SyntaxNode& expression) const {
    const auto formal = parameters(*sum_.function->node);
    bool all = true;
    walk(expression, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::name)
        all = all && std::any_of(formal.begin(), formal.end(), [&](const SyntaxNode& parameter) {
                return parameter.text == node.text && parameter.type.find('*') == std::string::npos;
              });
      else
        all = all && (node.kind == NodeKind::binary || node.kind == NodeKind::literal ||
                      node.kind == NodeKind::cast);
    });
    return all;
  }
  /// The number of threads or blocks that are launched, in the function's words, where it has them.
  [[nodiscard]] std::optional<SyntaxNode> limit_of_launch(const AxisSource& source) const {
    const LaunchLine& line = sum_.launch.line;
    const std::string text = source.is_block ? line.grid[source.axis] : sum_.launch.threads(source.axis);
    auto limit = in_function_words(parse_expression(text), line, *sum_.function->node);
    // More threads than results may be launched where no condition says how many there are.
    const bool more = !source.is_block && line.grid[source.axis].starts_with("ceil_div");
    return more && limit && limit->kind != NodeKind::name ? std::nullopt : limit;
  }

  /// A value that is `source / divisor % modulus`.
  struct Digit {
    std::string name{};
    Factors divisor{};
    std::optional<Factors> modulus{};
  };
  [[nodiscard]] std::optional<Digit> digit_of(const SyntaxNode& expression, const std::string& source) const {
    const SyntaxNode& plain = without_casts(expression);
    if (is_name(plain, source)) return Digit{};
    if (plain.kind != NodeKind::binary || (plain.text != "/" && plain.text != "%")) return std::nullopt;
    auto digit = digit_of(left_operand(plain), source);
    if (!digit || uses_name(right_operand(plain), source)) return std::nullopt;
    const Factors factors = factors_of(right_operand(plain));
    if (plain.text == "/") {
      if (digit->modulus) {
        digit->modulus = without(*digit->modulus, factors);
        if (!digit->modulus) return std::nullopt;
      }
      digit->divisor.insert(digit->divisor.end(), factors.begin(), factors.end());
    } else {
      if (digit->modulus && !without(*digit->modulus, factors)) return std::nullopt;
      digit->modulus = factors;
    }
    return digit;
  }

  /// The same factors in the words of the launch line.
  [[nodiscard]] Factors launched(const Factors& factors) const {
    Factors result;
    for (const SyntaxNode& factor : factors)
      for (SyntaxNode& one : factors_of(sum_.launch.in_launch_words(factor)))
        result.push_back(std::move(one));
    return result;
  }

  /// Finds the variables that are taken out of a source; where they do not make it up, it is one axis.
  void take_apart(AxisSource& source) {
    std::vector<Digit> digits;
    for (const std::string& name : values_.names()) {
      if (name == source.name) continue;
      auto digit = digit_of(values_.expanded(make_name(name)), source.name);
      if (!digit || (digit->divisor.empty() && !digit->modulus)) continue;
      digit->name = name;
      digits.push_back(std::move(*digit));
    }
    const Factors total = source.limit ? factors_of(*source.limit) : Factors{};
    Factors divisor, rest = launched(total);
    std::vector<ResultAxis> axes;
    while (source.limit) {
      const Digit* best = nullptr; // the one that goes on where the last one ended
      for (const Digit& digit : digits)
        if (digit.divisor.size() == divisor.size() && without(digit.divisor, divisor) &&
            (best == nullptr || (digit.modulus && !best->modulus)))
          best = &digit;
      if (best == nullptr) break;
      SyntaxNode limit;
      if (best->modulus) {
        const auto left = without(rest, launched(*best->modulus));
        if (!left) break;
        rest = *left;
        divisor.insert(divisor.end(), best->modulus->begin(), best->modulus->end());
        limit = product_of(*best->modulus);
      } else {
        rest.clear();
        const auto last = without(total, divisor);
        limit = last ? product_of(*last) : make_binary("/", product_of(total), product_of(divisor));
      }
      axes.push_back({best->name, values_.type_of(best->name), std::move(limit), source.axis, false});
      if (!best->modulus) break;
    }
    if (axes.size() < 2 || !rest.empty()) {
      source.axes = {
          {source.name, source.type, source.limit.value_or(make_empty()), source.axis, source.is_block}};
      values_.keep(source.name);
      return;
    }
    std::reverse(axes.begin(), axes.end());
    source.axes = std::move(axes);
    for (const ResultAxis& axis : source.axes) values_.keep(axis.name);
    values_.set(source.name, source.value());
  }

  const ThreadSum& sum_;
  LocalValues& values_;
  std::vector<AxisSource> sources_{};
  std::vector<const SyntaxNode*> limits_{};
};

} // namespace mtmc::detail
