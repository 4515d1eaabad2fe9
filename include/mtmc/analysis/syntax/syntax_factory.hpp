#pragma once

#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Functions that make syntax nodes for transformations. Parentheses, semicolons and layout are the printer's
/// work. For larger pieces it is often clearer to write text and use `parse_statements` / `parse_expression`
/// (parser.hpp), then `substitute` (syntax_query.hpp).

namespace mtmc::inline MTMC_ABI {

namespace detail {

[[nodiscard]] inline SyntaxNode make_node(NodeKind kind, std::string text = {},
                                          std::vector<SyntaxNode> children = {}) {
  SyntaxNode node;
  node.kind = kind;
  node.text = std::move(text);
  node.children = std::move(children);
  return node;
}

/// A vector of one or two moved-in nodes; an initializer list would copy them.
[[nodiscard]] inline std::vector<SyntaxNode> node_list(SyntaxNode first) {
  std::vector<SyntaxNode> list;
  list.push_back(std::move(first));
  return list;
}
[[nodiscard]] inline std::vector<SyntaxNode> node_list(SyntaxNode first, SyntaxNode second) {
  std::vector<SyntaxNode> list;
  list.reserve(2);
  list.push_back(std::move(first));
  list.push_back(std::move(second));
  return list;
}

} // namespace detail

/// An absent part, or the statement `;`.
[[nodiscard]] inline SyntaxNode make_empty() { return {}; }

/// A name: `i`, `std::min`.
[[nodiscard]] inline SyntaxNode make_name(std::string text) {
  return detail::make_node(NodeKind::name, std::move(text));
}

/// A literal as spelt: `0.0f`, `"text"`.
[[nodiscard]] inline SyntaxNode make_literal(std::string text) {
  return detail::make_node(NodeKind::literal, std::move(text));
}

/// An integer; a negative one becomes a unary minus.
[[nodiscard]] inline SyntaxNode make_integer(std::int64_t value) {
  SyntaxNode digits = make_literal(std::to_string(value));
  if (value >= 0) return digits;
  digits.text.erase(0, 1);
  return detail::make_node(NodeKind::unary, "-", detail::node_list(std::move(digits)));
}

/// Prefix operator: `make_unary("-", x)`.
[[nodiscard]] inline SyntaxNode make_unary(std::string symbol, SyntaxNode operand) {
  return detail::make_node(NodeKind::unary, std::move(symbol), detail::node_list(std::move(operand)));
}

/// Binary operator: `make_binary("+", a, b)`.
[[nodiscard]] inline SyntaxNode make_binary(std::string symbol, SyntaxNode left, SyntaxNode right) {
  return detail::make_node(NodeKind::binary, std::move(symbol),
                           detail::node_list(std::move(left), std::move(right)));
}

/// The expression `target symbol value`; `symbol` is `=`, `+=`, ...
[[nodiscard]] inline SyntaxNode make_assignment_expression(SyntaxNode target, std::string symbol,
                                                           SyntaxNode value) {
  return detail::make_node(NodeKind::assignment, std::move(symbol),
                           detail::node_list(std::move(target), std::move(value)));
}

/// The conditional expression `condition ? if_true : if_false`.
[[nodiscard]] inline SyntaxNode make_conditional(SyntaxNode condition, SyntaxNode if_true,
                                                 SyntaxNode if_false) {
  SyntaxNode node = detail::make_node(NodeKind::conditional, {},
                                      detail::node_list(std::move(condition), std::move(if_true)));
  node.children.push_back(std::move(if_false));
  return node;
}

/// A call: `make_call("std::min", {a, b})`.
[[nodiscard]] inline SyntaxNode make_call(std::string function, std::vector<SyntaxNode> arguments) {
  arguments.insert(arguments.begin(), make_name(std::move(function)));
  return detail::make_node(NodeKind::call, {}, std::move(arguments));
}

/// `base[index]`.
[[nodiscard]] inline SyntaxNode make_subscript(SyntaxNode base, SyntaxNode index) {
  return detail::make_node(NodeKind::subscript, {}, detail::node_list(std::move(base), std::move(index)));
}

/// A cast; `form` as in `NodeKind::cast`.
[[nodiscard]] inline SyntaxNode make_cast(std::string type, SyntaxNode operand,
                                          std::string form = "c_style") {
  SyntaxNode node = detail::make_node(NodeKind::cast, std::move(form), detail::node_list(std::move(operand)));
  node.type = std::move(type);
  return node;
}

/// An expression as a statement.
[[nodiscard]] inline SyntaxNode make_expression_statement(SyntaxNode expression) {
  return detail::make_node(NodeKind::expression_statement, {}, detail::node_list(std::move(expression)));
}

/// The statement `target symbol value;`.
[[nodiscard]] inline SyntaxNode make_assignment(SyntaxNode target, std::string symbol, SyntaxNode value) {
  return make_expression_statement(
      make_assignment_expression(std::move(target), std::move(symbol), std::move(value)));
}

/// `type name;` The type may end in pointers or a reference: `make_declaration("const float* __restrict__",
/// "p")`.
[[nodiscard]] inline SyntaxNode make_declaration(std::string type, std::string name) {
  SyntaxNode node = detail::make_node(
      NodeKind::declaration, {}, detail::node_list(detail::make_node(NodeKind::declarator, std::move(name))));
  int depth = 0;
  std::size_t end = 0;
  for (; end < type.size() && (depth > 0 || (type[end] != '*' && type[end] != '&')); ++end)
    depth += type[end] == '<' || type[end] == '(' ? 1 : type[end] == '>' || type[end] == ')' ? -1 : 0;
  node.children.front().type = type.substr(end);
  type.resize(end);
  while (!type.empty() && type.back() == ' ') type.pop_back();
  node.type = std::move(type);
  return node;
}

/// `type name = value;`
[[nodiscard]] inline SyntaxNode make_declaration(std::string type, std::string name, SyntaxNode value) {
  SyntaxNode node = make_declaration(std::move(type), std::move(name));
  node.children.front().children.push_back(
      detail::make_node(NodeKind::initializer, "=", detail::node_list(std::move(value))));
  return node;
}

/// `type name[size]...;`, zeroed with `= {}` if `zeroed`.
[[nodiscard]] inline SyntaxNode make_array_declaration(std::string type, std::string name,
                                                       std::vector<SyntaxNode> sizes, bool zeroed = false) {
  SyntaxNode node = make_declaration(std::move(type), std::move(name));
  std::vector<SyntaxNode>& parts = node.children.front().children;
  for (SyntaxNode& size : sizes)
    parts.push_back(detail::make_node(NodeKind::extent, {}, detail::node_list(std::move(size))));
  if (zeroed)
    parts.push_back(detail::make_node(NodeKind::initializer, "=",
                                      detail::node_list(detail::make_node(NodeKind::initializer_list))));
  return node;
}

/// `{ statements }`.
[[nodiscard]] inline SyntaxNode make_block(std::vector<SyntaxNode> statements = {}) {
  return detail::make_node(NodeKind::block, {}, std::move(statements));
}

/// `statement` as a block: itself if it is one, else a block of it.
[[nodiscard]] inline SyntaxNode as_block(SyntaxNode statement) {
  if (statement.kind == NodeKind::block) return statement;
  return make_block(detail::node_list(std::move(statement)));
}

/// `for (init; condition; step) body`; see `NodeKind::for_loop` for what each may be.
[[nodiscard]] inline SyntaxNode make_for(SyntaxNode init, SyntaxNode condition, SyntaxNode step,
                                         SyntaxNode body) {
  SyntaxNode node =
      detail::make_node(NodeKind::for_loop, {}, detail::node_list(std::move(init), std::move(condition)));
  node.children.push_back(std::move(step));
  node.children.push_back(std::move(body));
  return node;
}

/// `for (type variable = first; variable < bound; variable += stride) body`, with `++variable` for a stride
/// of 1.
[[nodiscard]] inline SyntaxNode make_counting_loop(std::string type, const std::string& variable,
                                                   SyntaxNode first, SyntaxNode bound, SyntaxNode stride,
                                                   SyntaxNode body) {
  const bool unit = stride.kind == NodeKind::literal && stride.text == "1";
  SyntaxNode step = unit ? make_unary("++", make_name(variable))
                         : make_assignment_expression(make_name(variable), "+=", std::move(stride));
  return make_for(make_declaration(std::move(type), variable, std::move(first)),
                  make_binary("<", make_name(variable), std::move(bound)), std::move(step), std::move(body));
}

/// `if (condition) then_statement`.
[[nodiscard]] inline SyntaxNode make_if(SyntaxNode condition, SyntaxNode then_statement) {
  return detail::make_node(NodeKind::if_statement, {},
                           detail::node_list(std::move(condition), std::move(then_statement)));
}

/// `if (condition) then_statement else else_statement`.
[[nodiscard]] inline SyntaxNode make_if(SyntaxNode condition, SyntaxNode then_statement,
                                        SyntaxNode else_statement) {
  SyntaxNode node = make_if(std::move(condition), std::move(then_statement));
  node.children.push_back(std::move(else_statement));
  return node;
}

/// `return;`
[[nodiscard]] inline SyntaxNode make_return() { return detail::make_node(NodeKind::return_statement); }

/// `return value;`
[[nodiscard]] inline SyntaxNode make_return(SyntaxNode value) {
  return detail::make_node(NodeKind::return_statement, {}, detail::node_list(std::move(value)));
}

/// `#pragma text`: `make_pragma("omp parallel for")`. Put it right before the statement it is about.
[[nodiscard]] inline SyntaxNode make_pragma(std::string text) {
  return detail::make_node(NodeKind::pragma, std::move(text));
}

/// A launch or scratch line; `text` starts with `//@`.
[[nodiscard]] inline SyntaxNode make_launch_comment(std::string text) {
  return detail::make_node(NodeKind::launch_comment, std::move(text));
}

/// A preprocessor line such as `#include <algorithm>`.
[[nodiscard]] inline SyntaxNode make_preprocessor(std::string text) {
  return detail::make_node(NodeKind::preprocessor, std::move(text));
}

/// A parameter: type with pointers, and name.
[[nodiscard]] inline SyntaxNode make_parameter(std::string type, std::string name) {
  SyntaxNode node = detail::make_node(NodeKind::parameter, std::move(name));
  node.type = std::move(type);
  return node;
}

/// A function definition; `type` is all that stands before the name (`void`, `static inline float`).
[[nodiscard]] inline SyntaxNode make_function(std::string type, std::string name,
                                              std::vector<SyntaxNode> parameters, SyntaxNode body) {
  SyntaxNode node = detail::make_node(NodeKind::function, std::move(name), std::move(parameters));
  node.type = std::move(type);
  node.children.push_back(as_block(std::move(body)));
  return node;
}

/// The statement with a `// text` line before it (added to what stands there already).
[[nodiscard]] inline SyntaxNode with_comment(SyntaxNode statement, const std::string& text) {
  statement.leading_trivia += "// " + text + "\n";
  return statement;
}

} // namespace mtmc
