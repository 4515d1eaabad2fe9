#pragma once
/// The numbers that a launch's threads would have, from the number of the element that they would need: where
/// `C[row * N + column]` is needed, the row and the column of any element of C.

#include <mtmc/analysis/flow/polynomial.hpp>
#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/threads/thread_grid.hpp>
#include <mtmc/coder/transform/loop_sinking.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A number of a launch's threads along an axis, and what it is multiplied with in the number of an element.
struct ElementNumber {
  std::string name{};   ///< of its variable; empty where each block has one thread along the axis
  std::size_t axis = 0; ///< 0 = x
  Polynomial factor{};  ///< over the function's parameters
};

/// How many numbers along an axis have work at a size: guards that are about all of the work count.
[[nodiscard]] inline std::optional<std::int64_t> numbers_at_size(const TransformRequest& request,
                                                                 const ThreadLaunch& launch,
                                                                 const LaunchGeometry& shape,
                                                                 std::size_t axis, const ProblemSize& size) {
  auto count = value_at_size(request, size, launch.launched(axis));
  if (!count) return std::nullopt;
  std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;
  for (const Access& access : launch.function->accesses) {
    first = std::min(first, access.order);
    last = std::max(last, access.order);
  }
  const Symbols values = parameter_values(request, launch, size);
  for (const GuardBound& bound : launch.function->guard_bounds)
    if (bound.first <= first && bound.last > last && is_global_index(bound.below, axis, shape))
      if (const auto limit = bound.limit.evaluate_at(values)) count = std::min(*count, *limit);
  return count;
}

/// The numbers of the threads that need an element, smallest factor first. `element` is the number of the
/// element in them. Throws `TransformDeclined` where not just one element comes of such numbers.
[[nodiscard]] inline std::vector<ElementNumber> element_numbers(const TransformRequest& request,
                                                                const ThreadLaunch& launch,
                                                                const std::vector<ThreadIndex>& indices,
                                                                const LaunchGeometry& shape,
                                                                const Polynomial& element) {
  const std::string declined =
      "it is not known which thread of " + launch.line.entry + " would have an element";
  Polynomial rest = expanded(element);
  std::vector<ElementNumber> numbers;
  for (std::size_t axis = 0; axis < launch.line.grid.size(); ++axis) {
    ElementNumber number{.axis = axis};
    for (const ThreadIndex& index : indices)
      if (index.axis == axis) number.name = index.name;
    const bool threads = shape.block[axis] > 1;
    const std::string_view counted = threads ? thread_index_names[axis] : block_index_names[axis];
    const std::vector<const Symbol*> symbols = rest.symbols();
    const auto found = std::find_if(symbols.begin(), symbols.end(),
                                    [&](const Symbol* symbol) { return symbol->name == counted; });
    if (found == symbols.end()) {
      if (threads || shape.grid[axis] > 1) throw TransformDeclined(declined);
      continue; // there is but one
    }
    number.factor = rest.coefficient_of(*found);
    if (threads && number.name.empty()) throw TransformDeclined(declined);
    rest -= number.factor * Polynomial(*found);
    for (const Symbol* symbol : symbols)
      if (threads && symbol->name == block_index_names[axis])
        rest -= number.factor * Polynomial(symbol) * Polynomial(shape.block[axis]);
    numbers.push_back(std::move(number));
  }
  if (!rest.is_zero() || numbers.empty()) throw TransformDeclined(declined);
  const auto factor_at = [&](const ElementNumber& number, const ProblemSize& size) {
    return number.factor.evaluate_at(parameter_values(request, launch, size)).value_or(0);
  };
  const ProblemSize* const main = request.task.main_size();
  if (main == nullptr) throw TransformDeclined(declined);
  std::sort(numbers.begin(), numbers.end(), [&](const ElementNumber& a, const ElementNumber& b) {
    return factor_at(a, *main) < factor_at(b, *main);
  });
  for (const ProblemSize& size : request.task.sizes)
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::int64_t factor = factor_at(numbers[i], size);
      const std::int64_t next = i + 1 < numbers.size() ? factor_at(numbers[i + 1], size) : 0;
      const auto count = numbers_at_size(request, launch, shape, numbers[i].axis, size);
      if (factor < 1 || (i == 0 && factor != 1) || !count ||
          (next != 0 && (next % factor != 0 || factor * *count > next)))
        throw TransformDeclined(declined);
    }
  return numbers;
}

/// The number of an element as `high * length + low`, where `low < length` holds.
struct SplitElement {
  SyntaxNode high{};
  SyntaxNode length{};
  SyntaxNode low{};
};

/// Whether something below a node is declared by a name of the expression.
[[nodiscard]] inline bool declares_part_of(const SyntaxNode& node, const SyntaxNode& expression) {
  bool found = false;
  walk(node, [&](const SyntaxNode& inner) {
    found = found || (inner.kind == NodeKind::declarator && uses_name(expression, inner.text));
  });
  return found;
}

/// The number of an element taken apart, where it is written like that, with names, and what stands around
/// the statement at `place` says that the low part is below the length.
[[nodiscard]] inline std::optional<SplitElement>
split_element(const SyntaxNode& body, const std::vector<std::size_t>& place, const SyntaxNode& element) {
  SyntaxNode sum = element;
  const NameSet changed = assigned_scalars(body, false);
  if (sum.kind == NodeKind::name && !has_name(changed, sum.text)) { // `const int at = i * N + j;`
    std::size_t found = 0;
    walk(body, [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::declarator || node.text != element.text) return;
      ++found;
      if (const SyntaxNode* const value = initial_value(node)) sum = *value;
    });
    if (found != 1) return std::nullopt;
  }
  if (sum.kind != NodeKind::binary || sum.text != "+") return std::nullopt;
  const bool product_first = left_operand(sum).kind == NodeKind::binary && left_operand(sum).text == "*";
  const SyntaxNode& product = product_first ? left_operand(sum) : right_operand(sum);
  SplitElement split;
  split.low = product_first ? right_operand(sum) : left_operand(sum);
  if (product.kind != NodeKind::binary || product.text != "*") return std::nullopt;
  std::vector<SyntaxNode> conditions;
  const SyntaxNode* node = &body;
  for (const std::size_t index : place) {
    const bool inside = node->kind == NodeKind::if_statement && index == 1;
    if (inside) take_conditions(if_condition(*node), conditions);
    node = &node->children[index];
    if (!inside) continue;
    std::erase_if(conditions,
                  [node](const SyntaxNode& condition) { return declares_part_of(*node, condition); });
  }
  const auto holds = [&](const SyntaxNode& length) {
    return std::any_of(conditions.begin(), conditions.end(), [&](const SyntaxNode& condition) {
      return structurally_equal(condition, make_binary("<", split.low, length));
    });
  };
  const bool length_last = holds(right_operand(product));
  if (!length_last && !holds(left_operand(product))) return std::nullopt;
  split.length = length_last ? right_operand(product) : left_operand(product);
  split.high = length_last ? left_operand(product) : right_operand(product);
  for (const SyntaxNode* part : {&split.high, &split.length, &split.low})
    if (part->kind != NodeKind::name || has_name(changed, part->text)) return std::nullopt;
  return split;
}

/// The numbers from that of the element. `in_words` writes a factor in the words of where they will stand.
[[nodiscard]] inline std::vector<SyntaxNode>
values_of_numbers(const std::vector<ElementNumber>& numbers, const SyntaxNode& element,
                  const std::optional<SplitElement>& split,
                  const std::function<SyntaxNode(const Polynomial&)>& in_words) {
  if (numbers.size() == 2 && split && structurally_equal(in_words(numbers[1].factor), split->length))
    return {split->low, split->high};
  std::vector<SyntaxNode> values;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    SyntaxNode value = element;
    if (i + 1 < numbers.size()) value = make_binary("%", value, in_words(numbers[i + 1].factor));
    if (!(numbers[i].factor == Polynomial(1))) value = make_binary("/", value, in_words(numbers[i].factor));
    values.push_back(std::move(value));
  }
  return values;
}

} // namespace mtmc::detail
