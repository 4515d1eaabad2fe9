#pragma once
/// Definitions of analysis/python/forward_graph.hpp.

#include <mtmc/analysis/python/dotted_name.hpp>
#include <mtmc/analysis/python/forward_graph.hpp>
#include <mtmc/analysis/python/operator_table.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A function of a class by its name, or null.
[[nodiscard]] inline const SyntaxNode* method_of(const SyntaxNode& definition, std::string_view name) {
  const SyntaxNode* last = nullptr; // which is the one that counts
  for (const SyntaxNode& statement : statements(definition.children.back())) {
    const SyntaxNode& inner = statement.kind == NodeKind::decorated ? statement.children.back() : statement;
    if (inner.kind == NodeKind::function && inner.text == name) last = &inner;
  }
  return last;
}

/// Attributes of a module that are modules: the names of what they apply, in order.
class ModuleAttributes {
public:
  explicit ModuleAttributes(const SyntaxNode& initializer) {
    walk(initializer, [this](const SyntaxNode& node) { look_at(node); });
  }

  /// Whether `__init__` makes a tensor of it: a parameter, a buffer, or what a function of PyTorch gives.
  [[nodiscard]] bool is_tensor(const std::string& attribute) const { return tensors_.contains(attribute); }

  /// Null: not a module, as far as `__init__` tells.
  [[nodiscard]] const std::vector<std::string>* find(const std::string& attribute) const {
    const auto found = attributes_.find(attribute);
    return found == attributes_.end() ? nullptr : &found->second;
  }

private:
  void look_at(const SyntaxNode& node) {
    if (node.kind == NodeKind::assignment && node.text == "=") {
      const std::string target = dotted_name(left_operand(node));
      if (target.starts_with("self.") && right_operand(node).kind == NodeKind::call)
        add(target.substr(5), right_operand(node));
    }
    if (node.kind == NodeKind::call && node.children.size() > 1) {
      const std::string called = dotted_name(callee(node));
      const std::string& name = node.children[1].text; // with its quotes
      if ((called == "self.register_buffer" || called == "self.register_parameter") && name.size() > 2)
        tensors_.insert(name.substr(1, name.size() - 2));
    }
  }
  void add(const std::string& attribute, const SyntaxNode& call) {
    auto names = names_of(call);
    if (names.empty()) {
      const std::string made = dotted_name(callee(call));
      if (last_part(made) == "Parameter" || made.starts_with("torch.")) tensors_.insert(attribute);
      return;
    }
    // Built in two ways: which one is not known.
    if (const auto before = attributes_.find(attribute);
        before != attributes_.end() && before->second != names)
      names = {"one of several modules"};
    attributes_[attribute] = std::move(names);
  }
  /// What a constructor's call makes: modules begin with a capital letter, tensors do not.
  [[nodiscard]] static std::vector<std::string> names_of(const SyntaxNode& call) {
    const std::string dotted = dotted_name(callee(call));
    const std::string_view name = last_part(dotted);
    if (name.empty() || name.front() < 'A' || name.front() > 'Z' || name == "Parameter") return {};
    if (name != "Sequential") return {std::string(name)};
    std::vector<std::string> all;
    for (const SyntaxNode& argument : arguments(call)) {
      if (argument.kind != NodeKind::call) return {"Sequential"};
      auto names = names_of(argument);
      if (names.empty()) names.push_back(std::string(last_part(dotted_name(callee(argument)))));
      all.insert(all.end(), names.begin(), names.end());
    }
    return all.empty() ? std::vector<std::string>{"Sequential"} : all;
  }

  std::map<std::string, std::vector<std::string>> attributes_{};
  std::set<std::string> tensors_{};
};

/// Reads a forward statement by statement.
class ForwardReader {
public:
  /// `classes`: those of the file, which are no modules of PyTorch.
  ForwardReader(ForwardGraph& graph, const ModuleAttributes& modules, const std::set<std::string>& classes)
      : graph_(graph), modules_(modules), classes_(classes) {}

  void read(const SyntaxNode& function) {
    for (const SyntaxNode& parameter : parameters(function)) {
      if (parameter.text == "self" || parameter.text == "*" || parameter.text == "/") continue;
      graph_.inputs.push_back(parameter.text);
      const SyntaxNode* const value = initial_value(parameter);
      const bool number = parameter.type == "int" || parameter.type == "float" || parameter.type == "bool" ||
                          parameter.type == "str" ||
                          (value != nullptr && value->kind == NodeKind::literal && value->text != "None");
      values_[parameter.text] = Value{.tensor = !number};
    }
    visit_all(statements(function_body(function)));
  }

private:
  /// What an expression is, as far as operators care.
  struct Value {
    bool tensor = false;            ///< derived from an input, a parameter or an operator
    std::set<std::size_t> makers{}; ///< operators that it comes from
  };

  void note(std::string text) {
    if (std::find(graph_.notes.begin(), graph_.notes.end(), text) == graph_.notes.end())
      graph_.notes.push_back(std::move(text));
  }

  // --- statements

  void visit_all(std::span<const SyntaxNode> all) {
    for (const SyntaxNode& statement : all) visit_statement(statement);
  }
  void visit_statement(const SyntaxNode& node) {
    statement_ = node.range;
    switch (node.kind) {
    case NodeKind::expression_statement:
    case NodeKind::return_statement:
    case NodeKind::keyword_statement:
      for (const SyntaxNode& child : node.children) (void)value_of(child);
      break;
    case NodeKind::if_statement:
      note("a branch in line " + std::to_string(node.range.first_line));
      (void)value_of(if_condition(node));
      for (const SyntaxNode& child : std::span(node.children).subspan(1)) visit_all(statements(child));
      break;
    case NodeKind::for_each_loop:
      note("a loop in line " + std::to_string(node.range.first_line));
      bind(node.children[0], value_of(node.children[1]));
      for (const SyntaxNode& child : std::span(node.children).subspan(2)) visit_all(statements(child));
      break;
    case NodeKind::while_loop:
      note("a loop in line " + std::to_string(node.range.first_line));
      (void)value_of(loop_condition(node));
      visit_all(statements(loop_body(node)));
      break;
    case NodeKind::with_statement:
      visit_all(statements(node.children.back()));
      break;
    case NodeKind::empty:
    case NodeKind::launch_comment:
    case NodeKind::import_statement:
    case NodeKind::break_statement:
    case NodeKind::continue_statement:
      break;
    default:
      note("a statement in line " + std::to_string(node.range.first_line) + " that is not understood");
    }
  }
  void bind(const SyntaxNode& target, const Value& value) {
    if (target.kind == NodeKind::name)
      values_[target.text] = value;
    else if (target.kind == NodeKind::initializer_list)
      for (const SyntaxNode& one : target.children) bind(one, value);
    else if (target.kind == NodeKind::unary && !target.children.empty())
      bind(target.children.front(), value);
    else if (const std::string name = dotted_name(target); !name.empty())
      values_[name] = value;
  }

  // --- expressions

  /// Adds an operator and gives its result.
  Value add(std::string_view name, OperatorClass kind, const Value& operands, const SyntaxNode& node) {
    graph_.operators.push_back({.name = std::string(name),
                                .kind = kind,
                                .operands = {operands.makers.begin(), operands.makers.end()},
                                .range = node.range,
                                .statement = statement_});
    return {.tensor = true, .makers = {graph_.operators.size() - 1}};
  }
  void take(Value& into, const Value& other) {
    constexpr std::size_t most = 128;
    into.tensor |= other.tensor;
    into.makers.insert(other.makers.begin(), other.makers.end());
    if (into.makers.size() <= most) return;
    note("a value of more than " + std::to_string(most) + " operators, of which the last ones are told");
    while (into.makers.size() > most) into.makers.erase(into.makers.begin());
  }
  [[nodiscard]] Value all_of(std::span<const SyntaxNode> nodes) {
    Value all;
    for (const SyntaxNode& node : nodes) take(all, value_of(node));
    return all;
  }

  Value value_of(const SyntaxNode& node) {
    switch (node.kind) {
    case NodeKind::name: {
      const auto known = values_.find(node.text);
      return known == values_.end() ? Value{} : known->second;
    }
    case NodeKind::member:
      return member(node);
    case NodeKind::assignment:
      return assignment(node);
    case NodeKind::binary: {
      Value operands = all_of(node.children);
      if (!operands.tensor || node.text == ":" || node.text == "as" || node.text == "and" ||
          node.text == "or" || node.text == "is" || node.text == "is not" || node.text == "in" ||
          node.text == "not in")
        return operands;
      return add(node.text, node.text == "@" ? OperatorClass::contraction : OperatorClass::pointwise,
                 operands, node);
    }
    case NodeKind::unary: {
      const Value operand = all_of(node.children);
      const bool computes = node.text == "-" || node.text == "~";
      return operand.tensor && computes ? add(node.text, OperatorClass::pointwise, operand, node) : operand;
    }
    case NodeKind::subscript: {
      Value base = value_of(subscript_base(node));
      const Value index = index_of(subscript_index(node));
      if (!base.tensor) return base;
      take(base, index);
      return add("[]", index.tensor ? OperatorClass::gather : OperatorClass::view, base, node);
    }
    case NodeKind::call:
      return call(node);
    case NodeKind::conditional:
      note_choice(node);
      return all_of(node.children);
    case NodeKind::comprehension:
      note_choice(node);
      // What it goes through comes before what it makes.
      for (const SyntaxNode& clause : std::span(node.children).subspan(1))
        if (clause.text != "if") bind(clause.children[0], value_of(clause.children[1]));
      return value_of(node.children.front());
    case NodeKind::lambda:
    case NodeKind::literal:
    case NodeKind::empty:
      return {};
    case NodeKind::opaque:
      note("text in line " + std::to_string(node.range.first_line) + " that is not understood");
      return {};
    default:
      return all_of(node.children);
    }
  }
  void note_choice(const SyntaxNode& node) {
    note("a choice or a loop within line " + std::to_string(node.range.first_line));
  }
  /// What an index is made of; bounds of slices are numbers.
  Value index_of(const SyntaxNode& node) {
    if (node.kind == NodeKind::slice) {
      (void)all_of(node.children);
      return {};
    }
    if (node.kind != NodeKind::initializer_list) return value_of(node);
    Value all;
    for (const SyntaxNode& child : node.children) take(all, index_of(child));
    return all;
  }
  /// `x[i] = value`: what stands in x from then on.
  void store(const SyntaxNode& target, const Value& value) {
    const SyntaxNode* base = &target;
    while (base->kind == NodeKind::subscript) base = &subscript_base(*base);
    Value operands = value_of(*base);
    const bool elements = operands.tensor;
    take(operands, value);
    if (elements) {
      take(operands, index_of(subscript_index(target)));
      operands = add("[]=", OperatorClass::gather, operands, target);
    }
    bind(*base, operands);
  }
  Value assignment(const SyntaxNode& node) {
    Value value = value_of(right_operand(node));
    const SyntaxNode& target = left_operand(node);
    if (node.text != "=" && node.text != ":=") {
      Value operands = value_of(target);
      take(operands, value);
      if (operands.tensor) {
        const std::string_view sign = std::string_view(node.text).substr(0, node.text.size() - 1);
        value =
            add(sign, sign == "@" ? OperatorClass::contraction : OperatorClass::pointwise, operands, node);
      }
    }
    if (target.kind == NodeKind::subscript)
      store(target, value);
    else
      bind(target, value);
    return value;
  }
  Value member(const SyntaxNode& node) {
    const std::string name = dotted_name(node);
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    if (name.starts_with("self.") && name.find('.', 5) == std::string::npos)
      return {.tensor = modules_.is_tensor(name.substr(5))};
    const Value object = value_of(operand(node));
    const std::string_view part = std::string_view(node.text).substr(1);
    if (name.starts_with("self.") && (part == "weight" || part == "bias")) return {.tensor = true};
    if (!object.tensor) return {};
    if (part == "T" || part == "mT" || part == "H") return add(part, OperatorClass::view, object, node);
    constexpr std::string_view facts[] = {"shape",   "dtype",         "device", "ndim",
                                          "is_cuda", "requires_grad", "layout"};
    const bool fact = std::find(std::begin(facts), std::end(facts), part) != std::end(facts);
    return fact ? Value{} : object;
  }

  Value call(const SyntaxNode& node) {
    const SyntaxNode& called = callee(node);
    const std::string name = dotted_name(called);
    std::vector<Value> given;
    Value operands;
    for (const SyntaxNode& argument : arguments(node)) {
      given.push_back(value_of(argument));
      take(operands, given.back());
    }
    if (name.starts_with("self.") && values_.find(name) == values_.end()) {
      const std::string attribute = name.substr(5);
      if (const auto* const layers = modules_.find(attribute)) return applied(*layers, operands, node);
      if (attribute.find('.') == std::string::npos) return foreign("self." + attribute, operands, node);
    }
    const std::string function(called.kind == NodeKind::member ? std::string_view(called.text).substr(1)
                                                               : std::string_view(name));
    if (is_library(name)) return function_of(function, operands, axis_is_tensor(node, given, 1), node);
    if (called.kind == NodeKind::member) {
      if (function == "append" || function == "extend") return grown(operand(called), operands);
      const Value object = value_of(operand(called));
      if (!object.tensor) return foreign(name.empty() ? function : name, operands, node);
      take(operands, object);
      Value result = function_of(function, operands, axis_is_tensor(node, given, 0), node);
      // x.add_(y) is x from then on.
      if (function.size() > 1 && function.ends_with('_') && !function.ends_with("__"))
        bind(operand(called), result);
      return result;
    }
    if (called.kind != NodeKind::name) {
      const Value object = value_of(called);
      take(operands, object);
      return foreign("what an expression gives", operands, node);
    }
    if (values_.find(name) != values_.end() || classes_.contains(name)) return foreign(name, operands, node);
    constexpr std::string_view plain[] = {"bool",  "float", "int",  "isinstance", "len", "print",
                                          "range", "str",   "type", "hasattr",    "id",  "repr"};
    if (std::find(std::begin(plain), std::end(plain), name) != std::end(plain)) return {};
    constexpr std::string_view hands_on[] = {"list",   "tuple", "zip",  "enumerate", "reversed",
                                             "sorted", "iter",  "next", "dict",      "set"};
    if (std::find(std::begin(hands_on), std::end(hands_on), name) != std::end(hands_on)) return operands;
    if (class_of_operator(name))
      return function_of(name, operands, given.size() > 1 && given[1].tensor, node);
    return foreign(name, operands, node);
  }
  /// A call that is not looked into.
  Value foreign(const std::string& name, const Value& operands, const SyntaxNode& node) {
    if (!operands.tensor) return {};
    note("a call of " + name);
    return add(last_part(name), OperatorClass::unknown, operands, node);
  }
  /// Whether the argument at that place is a tensor, not the number of an axis.
  [[nodiscard]] static bool axis_is_tensor(const SyntaxNode& node, std::span<const Value> given,
                                           std::size_t place) {
    const auto all = arguments(node);
    if (all.size() <= place) return false;
    const bool named = all[place].kind == NodeKind::keyword_argument;
    return given[place].tensor && (!named || all[place].text == "other");
  }
  Value function_of(std::string_view function, const Value& operands, bool of_two, const SyntaxNode& node) {
    constexpr std::string_view facts[] = {"size",   "dim",           "numel",     "item",
                                          "tolist", "is_contiguous", "get_device"};
    if (std::find(std::begin(facts), std::end(facts), function) != std::end(facts)) return {};
    auto kind = class_of_operator(function).value_or(OperatorClass::unknown);
    // The largest of an axis, or the larger of two.
    if ((function == "max" || function == "min") && of_two) kind = OperatorClass::pointwise;
    const bool makes = kind == OperatorClass::creation || kind == OperatorClass::random;
    if (!operands.tensor && !makes) return {};
    if (kind == OperatorClass::unknown)
      note("the function " + std::string(function) + " is not in the table");
    Value result = add(function, kind, operands, node);
    for (const SyntaxNode& argument : arguments(node))
      if (argument.kind == NodeKind::keyword_argument && argument.text == "out")
        bind(argument.children.front(), result);
    return result;
  }
  /// A list that got more elements.
  Value grown(const SyntaxNode& list, const Value& elements) {
    if (const std::string name = dotted_name(list); !name.empty()) take(values_[name], elements);
    return {};
  }
  Value applied(const std::vector<std::string>& layers, Value operands, const SyntaxNode& node) {
    for (const std::string& layer : layers) {
      auto kind = class_of_operator(layer);
      if (classes_.contains(layer)) {
        note("the class " + layer + " is applied");
        kind = OperatorClass::unknown;
      } else if (!kind) {
        note("the module " + layer + " is not in the table");
      }
      operands = add(layer, kind.value_or(OperatorClass::unknown), operands, node);
    }
    return operands;
  }
  /// Whether a dotted name is of PyTorch itself, by the names under which it is imported.
  [[nodiscard]] static bool is_library(std::string_view name) noexcept {
    for (const std::string_view root : {"torch.", "F.", "nn.", "functional."})
      if (name.starts_with(root)) return true;
    return false;
  }

  ForwardGraph& graph_;
  const ModuleAttributes& modules_;
  const std::set<std::string>& classes_;
  std::map<std::string, Value> values_{};
  SourceRange statement_{};
};

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::vector<ForwardGraph> forward_graphs(const SyntaxNode& tree) {
  std::vector<const SyntaxNode*> definitions;
  std::set<std::string> classes;
  walk(tree, [&](const SyntaxNode& node) {
    if (node.kind != NodeKind::class_definition) return;
    definitions.push_back(&node);
    classes.insert(node.text);
  });
  std::vector<ForwardGraph> graphs;
  for (const SyntaxNode* const definition : definitions) {
    const SyntaxNode* const forward = detail::method_of(*definition, "forward");
    if (forward == nullptr) continue;
    const SyntaxNode* const initializer = detail::method_of(*definition, "__init__");
    const detail::ModuleAttributes modules(initializer != nullptr ? *initializer : SyntaxNode{});
    ForwardGraph graph{.module = definition->text, .range = forward->range};
    detail::ForwardReader(graph, modules, classes).read(*forward);
    graphs.push_back(std::move(graph));
  }
  return graphs;
}

MTMC_INLINE std::string operator_chain(const ForwardGraph& graph) {
  std::string chain;
  for (const ForwardOperator& one : graph.operators) {
    char letter = '\0';
    switch (one.kind) {
    case OperatorClass::contraction:
    case OperatorClass::convolution:
      letter = 'H';
      break;
    case OperatorClass::pointwise:
    case OperatorClass::random:
      letter = 'P';
      break;
    case OperatorClass::reduction:
    case OperatorClass::normalization:
    case OperatorClass::pooling:
    case OperatorClass::scan:
      letter = 'R';
      break;
    case OperatorClass::unknown:
    case OperatorClass::library:
    case OperatorClass::gather:
      letter = 'X';
      break;
    default:
      continue;
    }
    if (letter == 'H' || chain.empty() || chain.back() != letter) chain += letter;
  }
  return chain;
}

} // namespace mtmc
