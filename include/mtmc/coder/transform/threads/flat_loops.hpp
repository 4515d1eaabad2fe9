#pragma once
/// Two loops that go through neighbouring elements together, written as one: `for h, for w` over
/// `x[base + h * W + w]` as `for h_w` over `x[base + h_w]`.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/product_sum.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/core/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Makes one loop of two, where that changes no iteration and not their order.
class LoopFlattener {
public:
  /// All of them must outlive it; `launch` is that of a function of `tree`.
  LoopFlattener(const SyntaxNode& tree, const ThreadLaunch& launch, const Task& task)
      : tree_(tree), launch_(launch), task_(task) {}

  /// The loop that does what `outer` does with the one loop in it; nothing where that is not the same.
  [[nodiscard]] std::optional<SyntaxNode> flat(const LoopInfo& outer) const {
    if (outer.children.size() != 1 || !is_plain(outer) || !is_plain(*outer.children.front()))
      return std::nullopt;
    const LoopInfo& inner = *outer.children.front();
    const auto inside = statements(loop_body(*outer.node));
    if (inside.size() != 1 || &inside.front() != inner.node) return std::nullopt;
    const auto width = product_sum(*inner.bound_expression);
    if (!width || width->size() != 1 || inner.variable_type != outer.variable_type) return std::nullopt;
    if (!has_size_of_task(*outer.bound_expression, outer) ||
        !has_size_of_task(*inner.bound_expression, outer))
      return std::nullopt;
    SyntaxNode body = loop_body(*inner.node);
    const std::string name = launch_.fresh_local(tree_, outer.variable + '_' + inner.variable);
    const Nest nest{outer, inner, width->begin()->first, width->begin()->second, name};
    if (!replace(body, nest) || uses_name(body, outer.variable) || uses_name(body, inner.variable))
      return std::nullopt;
    SyntaxNode loop = make_counting_loop(outer.variable_type, name, make_integer(0),
                                         make_binary("*", *outer.bound_expression, *inner.bound_expression),
                                         make_integer(1), std::move(body));
    loop.leading_trivia = outer.node->leading_trivia;
    loop.trailing_trivia = outer.node->trailing_trivia;
    return loop;
  }

private:
  struct Nest {
    const LoopInfo& outer;
    const LoopInfo& inner;
    std::multiset<std::string> width_names; ///< the inner loop's bound, a product of these ...
    std::int64_t width_factor;              ///< ... and this
    std::string name;                       ///< of the new variable
  };

  [[nodiscard]] static bool is_plain(const LoopInfo& loop) {
    return loop.canonical && loop.step == 1 && loop.comparison == "<" && !loop.has_continue &&
           !loop.variable_type.empty() && loop.directives.empty() &&
           literal_value(*loop.start_expression) == 0;
  }

  /// A product of numbers and of parameters that the task gives sizes to, which are not negative.
  [[nodiscard]] bool has_size_of_task(const SyntaxNode& bound, const LoopInfo& loop) const {
    const auto product = product_sum(bound);
    if (!product || product->size() != 1 || product->begin()->second < 1) return false;
    return std::all_of(product->begin()->first.begin(), product->begin()->first.end(),
                       [&](const std::string& name) { return is_size(name, loop); });
  }
  [[nodiscard]] bool is_size(const std::string& name, const LoopInfo& loop) const {
    const FunctionAnalysis& function = *launch_.function;
    const Variable* const variable = variable_of(name);
    if (variable == nullptr || variable->kind != Variable::Kind::parameter || variable->address_taken ||
        without_qualifiers(variable->type) != without_qualifiers(loop.variable_type))
      return false;
    if (std::any_of(variable->uses.begin(), variable->uses.end(),
                    [&](std::size_t at) { return function.scalar_uses[at].write; }))
      return false;
    const auto formal = parameters(*function.node);
    for (std::size_t i = 0; i < formal.size() && i < launch_.line.arguments.size(); ++i) {
      if (formal[i].text != name) continue;
      const ProblemSize* const size = task_.main_size();
      const Argument* const argument = task_.find_argument(launch_.line.arguments[i]);
      const std::string& given =
          argument != nullptr && !argument->value.empty() ? argument->value : launch_.line.arguments[i];
      return size != nullptr && size->symbols.contains(given);
    }
    return false;
  }
  /// The only variable of that name.
  [[nodiscard]] const Variable* variable_of(const std::string& name) const {
    const Variable* found = nullptr;
    for (const Variable& variable : launch_.function->variables)
      if (variable.name == name) {
        if (found != nullptr) return nullptr;
        found = &variable;
      }
    return found;
  }

  /// Replaces the two variables wherever they make the number of an element together. False where they make
  /// something else.
  [[nodiscard]] bool replace(SyntaxNode& node, const Nest& nest) const {
    if (!uses_name(node, nest.outer.variable) && !uses_name(node, nest.inner.variable)) return true;
    if (node.kind == NodeKind::binary && node.text == "+")
      if (auto sum = with_one_number(node, nest)) {
        node = std::move(*sum);
        return true;
      }
    if (node.kind == NodeKind::name) return false;
    return std::all_of(node.children.begin(), node.children.end(),
                       [&](SyntaxNode& child) { return replace(child, nest); });
  }

  /// A sum with the new variable in it: what has nothing to do with the loops stays as it is written.
  [[nodiscard]] std::optional<SyntaxNode> with_one_number(const SyntaxNode& sum, const Nest& nest) const {
    std::vector<const SyntaxNode*> parts;
    take_parts(sum, parts);
    std::optional<SyntaxNode> rest, moving;
    for (const SyntaxNode* part : parts) {
      const bool moves = uses_name(*part, nest.outer.variable) || uses_name(*part, nest.inner.variable);
      std::optional<SyntaxNode>& to = moves ? moving : rest;
      to = to ? make_binary("+", std::move(*to), *part) : *part;
    }
    if (!moving || !has_one_type(*moving, nest)) return std::nullopt;
    const auto products = product_sum(*moving);
    if (!products) return std::nullopt;
    ProductSum left = *products, numbered;
    for (const auto& [names, factor] : *products) {
      const auto places = names.count(nest.inner.variable);
      if (places == 0) continue;
      if (places > 1 || names.contains(nest.outer.variable)) return std::nullopt;
      std::multiset<std::string> beside = names;
      beside.erase(nest.inner.variable);
      std::multiset<std::string> above = beside; // the same of the outer loop, which moves by whole widths
      above.insert(nest.width_names.begin(), nest.width_names.end());
      above.insert(nest.outer.variable);
      const auto found = left.find(above);
      if (found == left.end() || found->second != factor * nest.width_factor) return std::nullopt;
      left.erase(found);
      left.erase(names);
      beside.insert(nest.name);
      numbered[beside] = factor;
    }
    for (const auto& [names, factor] : left) {
      if (names.contains(nest.outer.variable)) return std::nullopt;
      numbered[names] = factor;
    }
    for (const auto& [names, factor] : numbered) {
      if (factor < 1) return std::nullopt;
      SyntaxNode product = product_of(names, factor);
      rest = rest ? make_binary("+", std::move(*rest), std::move(product)) : std::move(product);
    }
    return rest;
  }
  [[nodiscard]] static SyntaxNode product_of(const std::multiset<std::string>& names, std::int64_t factor) {
    std::optional<SyntaxNode> product;
    if (factor != 1 || names.empty()) product = make_integer(factor);
    for (const std::string& name : names)
      product = product ? make_binary("*", std::move(*product), make_name(name)) : make_name(name);
    return std::move(*product);
  }
  static void take_parts(const SyntaxNode& sum, std::vector<const SyntaxNode*>& parts) {
    if (sum.kind == NodeKind::binary && sum.text == "+") {
      take_parts(left_operand(sum), parts);
      take_parts(right_operand(sum), parts);
    } else {
      parts.push_back(&sum);
    }
  }
  /// All of an expression has the type of the loops' variables: whatever the order of its operations, they
  /// happen in that type.
  [[nodiscard]] bool has_one_type(const SyntaxNode& expression, const Nest& nest) const {
    const std::string type = without_qualifiers(nest.outer.variable_type);
    const auto names = names_used(expression);
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      if (name == nest.outer.variable || name == nest.inner.variable) return true;
      const Variable* const variable = variable_of(name);
      return variable != nullptr && without_qualifiers(variable->type) == type;
    });
  }

  const SyntaxNode& tree_;
  const ThreadLaunch& launch_;
  const Task& task_;
};

/// The path of the loop at these child indices of a tree; empty where there is none.
[[nodiscard]] inline std::string path_at(const SyntaxNode& tree, const FunctionAnalysis& function,
                                         const std::vector<std::size_t>& indices) {
  for (const LoopInfo& loop : function.loops) {
    const auto located = locate(tree, loop.path);
    if (located.size() == 1 && located.front().indices == indices) return loop.path;
  }
  return {};
}

/// What a transformation makes of a kernel in which each two loops of the action's function that can be one
/// are one.
template <class Apply>
[[nodiscard]] SyntaxNode with_flat_loops(const TransformRequest& request, const Apply& apply) {
  const ThreadLaunch launch = thread_launch(request);
  const LoopFlattener flattener(request.tree, launch, request.task);
  for (const LoopInfo& loop : launch.function->loops) {
    auto flat = flattener.flat(loop);
    if (!flat) continue;
    const auto indices = locate(request.tree, loop.path).front().indices;
    SyntaxNode tree = request.tree;
    *node_at(tree, indices) = std::move(*flat);
    const KernelAnalysis analysis{tree, &request.task};
    Action about = request.action;
    const bool within = about.region == loop.path || about.region.starts_with(loop.path + '/');
    const FunctionAnalysis* const function = analysis.find_function(launch.function->name);
    if (within && function != nullptr) about.region = path_at(tree, *function, indices);
    return with_flat_loops(TransformRequest{request.task, request.kernel, request.device, about, tree,
                                            analysis, request.variant},
                           apply);
  }
  return apply(request);
}

} // namespace mtmc::detail
