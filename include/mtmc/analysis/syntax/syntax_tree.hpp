#pragma once

#include <mtmc/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// \file
/// The language-neutral syntax tree: what a front end produces, what analyses read, what transformations edit
/// and what the printer turns back into source.
///
/// A tree is plain values: copy, move, swap and assign nodes freely, between trees too. **There is nothing to
/// mark after an edit.** Every parsed node remembers where it stood (`SyntaxNode::origin`) and a fingerprint
/// of what it was; the printer compares, prints what is unchanged byte for byte as it stood (moved to its new
/// indentation), and prints the rest in a clean canonical style. Comments travel with their statement in
/// `leading_trivia`/`trailing_trivia`.

namespace mtmc::inline MTMC_ABI {

/// What a node is. Shapes ("children: ...") are promises: every node a front end or a `make_*` function
/// produces has them, and every transformation keeps them. An absent part of a fixed shape is a node of kind
/// `empty`.
enum class NodeKind : std::uint8_t {
  // --- items of a file
  translation_unit, ///< the whole file; children: items and statements in order
  scope, ///< namespace or linkage block; text: its header (`namespace a`); suffix: comment after the brace;
         ///< children: items
  function,  ///< definition; text: name; type: all before the name (template head, qualifiers, return type);
             ///< suffix: all between `)` and the body; children: parameters..., body (a `block`)
  parameter, ///< text: name ("" if unnamed); type: full type with pointers (`const float* __restrict__`);
             ///< suffix: trailing attributes; children: `extent`s of an array, then perhaps an `initializer`
  launch_comment, ///< a `//@ ...` line (launch or scratch); text: the whole line
  // --- statements
  block,       ///< children: statements
  declaration, ///< type: what all declarators share (`const float`); children: `declarator`s (at least one)
  declarator,  ///< text: name; type: pointer part (`* __restrict__`, `&`, ""); suffix: trailing attributes;
               ///< children: `extent`s of an array, then perhaps an `initializer`
  extent,      ///< one `[...]` of a declared array; children: the size (kind `empty` for `[]`)
  initializer, ///< text: form, "=" (one child), "()" or "{}" (any number of children)
  expression_statement, ///< children: the expression
  for_loop,         ///< children: init (`declaration`, expression or `empty`), condition, step (expression or
                    ///< `empty`), body (any statement)
  while_loop,       ///< children: condition, body
  do_loop,          ///< children: body, condition
  if_statement,     ///< text: "" or "constexpr"; children: condition, then, perhaps else
  return_statement, ///< children: perhaps a value
  break_statement,  ///< no children
  continue_statement, ///< no children
  pragma,       ///< text: what follows `#pragma ` (`omp parallel for`); belongs to the statement after it
  preprocessor, ///< any other directive; text: the whole line(s), `#` included
  comment,      ///< a comment that no statement follows (before `}` or the file's end); text: as written
  // --- statements of Python; its functions have the type "def" or "async def", and "-> type" as their
  // suffix,
  // its parameters "*" or "**" before their name ("*" and "/" alone are parameters, too), its loops perhaps
  // an else behind the body
  decorated,        ///< children: decorators, then the function or class
  class_definition, ///< text: name; type: its bases in parentheses; children: the body
  for_each_loop,    ///< text: "" or "async"; children: target, iterable, body, perhaps else
  with_statement,   ///< text: "" or "async"; children: contexts (`binary` "as" with a name), then the body
  try_statement,    ///< children: body, then `clause`s "except", "except*", "else", "finally"
  clause,           ///< text: its word; type: the name an exception gets; children: perhaps exceptions, the
  ///< body; of a `comprehension` ("for", "async for", "if"): target and iterable, or condition
  import_statement,  ///< text: as written
  keyword_statement, ///< text: `raise`, `del`, `assert`, `global`, `nonlocal`; children: what follows
  // --- expressions (parentheses are not nodes: the printer sets them by precedence)
  name,        ///< text: identifier, qualified or with template arguments (`i`, `std::min<float>`)
  literal,     ///< number, string, character, true/false/nullptr; text: as written
  unary,       ///< prefix; text: operator (`-`, `!`, `*`, `&`, `++`, ...); children: operand
  postfix,     ///< text: `++` or `--`; children: operand
  binary,      ///< text: operator (also `,`); children: left, right
  assignment,  ///< text: operator (`=`, `+=`, ...); children: target, value
  conditional, ///< children: condition, value if true, value if false
  call,        ///< children: callee, arguments... (`sizeof(x)` is a call of the name `sizeof`)
  subscript,   ///< children: base, index; `a[i][j]` is a subscript of a subscript
  member,      ///< text: `.` or `->` and the member's name (`.x`); children: the object
  cast,        ///< type: target type; text: `c_style`, `functional`, `static_cast`, ...; children: operand
  initializer_list, ///< `{a, b}`; type: prefix type or ""; children: elements. In Python type is the bracket
                    ///< of
                    ///< a tuple, list, set or dictionary (entries: `binary` ":"), "" of a tuple without any
  // --- expressions of Python; `binary` also has "and", "or", "in", "not in", "is", "is not", "**", "//";
  // `unary`
  // also "not", "*" and "**" before arguments, "await", "yield", "yield from"; `assignment` also ":=", and
  // the
  // annotation as its type
  keyword_argument, ///< text: name; children: value
  slice,            ///< children: beginning, end, step; `empty` where they are left out
  chain,            ///< `a < b <= c`; text: the operators with ", " between; children: operands
  comprehension,    ///< type: its bracket; children: the element, then `clause`s
  lambda,           ///< children: parameters..., the value
  // --- both
  empty,  ///< nothing: an absent part, or the statement `;`
  opaque, ///< text as written that the front end does not model; stands for statements, items or an
          ///< expression
};

/// Where a node stood in the text it was parsed from. Offsets are bytes; lines and columns count from 1,
/// columns in bytes. Line 0: the node was made, not parsed from a file. Moving or copying a node leaves its
/// range as it was.
struct SourceRange {
  std::size_t begin = 0; ///< offset of the first byte
  std::size_t end = 0;   ///< offset behind the last byte
  int first_line = 0;    ///< 1-based; 0: not parsed from a file
  int last_line = 0;     ///< 1-based
  int first_column = 0;  ///< 1-based, in bytes

  /// True if the node comes from a parsed file.
  [[nodiscard]] bool known() const noexcept { return first_line > 0; }
  friend bool operator==(const SourceRange&, const SourceRange&) = default; ///< member by member
};

/// What the printer needs to print an unchanged node as it stood. Written by the parser, read by the printer;
/// everyone else leaves it alone (copying and moving it along with the node is right).
struct NodeOrigin {
  std::shared_ptr<const std::string> source; ///< the text the node was parsed from; null: print canonically
  std::size_t header_end = 0;                ///< functions, loops, ifs: where the part before the body ends
  std::uint64_t fingerprint = 0;             ///< of the node when parsed
  std::uint64_t header_fingerprint = 0;      ///< of the part before the body when parsed
};

/// One node of the tree, a plain value.
struct SyntaxNode {
  NodeKind kind = NodeKind::empty;  ///< what the node is
  std::string text;                 ///< name, operator, spelling: see NodeKind
  std::string type;                 ///< type text where NodeKind says so
  std::string suffix;               ///< trailing attributes where NodeKind says so
  std::vector<SyntaxNode> children; ///< as NodeKind says
  std::string leading_trivia;       ///< blank lines and comments before a statement: whole lines
  std::string trailing_trivia;      ///< comment after a statement on its last line (`// why`)
  SourceRange range;                ///< of the tokens, without the trivia
  NodeOrigin origin;                ///< what it was parsed from; empty if it was made
};

/// The name of a kind, as it is spelt in `NodeKind`.
[[nodiscard]] inline std::string_view to_string(NodeKind kind) noexcept {
  switch (kind) {
  case NodeKind::translation_unit:
    return "translation_unit";
  case NodeKind::scope:
    return "scope";
  case NodeKind::function:
    return "function";
  case NodeKind::parameter:
    return "parameter";
  case NodeKind::launch_comment:
    return "launch_comment";
  case NodeKind::block:
    return "block";
  case NodeKind::declaration:
    return "declaration";
  case NodeKind::declarator:
    return "declarator";
  case NodeKind::extent:
    return "extent";
  case NodeKind::initializer:
    return "initializer";
  case NodeKind::expression_statement:
    return "expression_statement";
  case NodeKind::for_loop:
    return "for_loop";
  case NodeKind::while_loop:
    return "while_loop";
  case NodeKind::do_loop:
    return "do_loop";
  case NodeKind::if_statement:
    return "if_statement";
  case NodeKind::return_statement:
    return "return_statement";
  case NodeKind::break_statement:
    return "break_statement";
  case NodeKind::continue_statement:
    return "continue_statement";
  case NodeKind::pragma:
    return "pragma";
  case NodeKind::preprocessor:
    return "preprocessor";
  case NodeKind::comment:
    return "comment";
  case NodeKind::decorated:
    return "decorated";
  case NodeKind::class_definition:
    return "class_definition";
  case NodeKind::for_each_loop:
    return "for_each_loop";
  case NodeKind::with_statement:
    return "with_statement";
  case NodeKind::try_statement:
    return "try_statement";
  case NodeKind::clause:
    return "clause";
  case NodeKind::import_statement:
    return "import_statement";
  case NodeKind::keyword_statement:
    return "keyword_statement";
  case NodeKind::name:
    return "name";
  case NodeKind::literal:
    return "literal";
  case NodeKind::unary:
    return "unary";
  case NodeKind::postfix:
    return "postfix";
  case NodeKind::binary:
    return "binary";
  case NodeKind::assignment:
    return "assignment";
  case NodeKind::conditional:
    return "conditional";
  case NodeKind::call:
    return "call";
  case NodeKind::subscript:
    return "subscript";
  case NodeKind::member:
    return "member";
  case NodeKind::cast:
    return "cast";
  case NodeKind::initializer_list:
    return "initializer_list";
  case NodeKind::keyword_argument:
    return "keyword_argument";
  case NodeKind::slice:
    return "slice";
  case NodeKind::chain:
    return "chain";
  case NodeKind::comprehension:
    return "comprehension";
  case NodeKind::lambda:
    return "lambda";
  case NodeKind::empty:
    return "empty";
  case NodeKind::opaque:
    return "opaque";
  }
  return "unknown";
}

/// True for kinds that are always expressions (`empty` and `opaque` may stand for one but are not counted).
[[nodiscard]] constexpr bool is_expression(NodeKind kind) noexcept {
  return kind >= NodeKind::name && kind <= NodeKind::lambda;
}

/// True for the three loops.
[[nodiscard]] constexpr bool is_loop(NodeKind kind) noexcept {
  return kind == NodeKind::for_loop || kind == NodeKind::while_loop || kind == NodeKind::do_loop;
}

namespace detail {

/// `SyntaxNode` or `const SyntaxNode`: accessors give back what they were given.
template <class Node>
concept AnySyntaxNode = std::same_as<std::remove_const_t<Node>, SyntaxNode>;

[[noreturn]] inline void throw_wrong_kind(const SyntaxNode& node, std::string_view accessor) {
  throw std::invalid_argument("mtmc: " + std::string(accessor) + " does not apply to a node of kind " +
                              std::string(to_string(node.kind)) + " (line " +
                              std::to_string(node.range.first_line) + ") with " +
                              std::to_string(node.children.size()) + " children");
}

/// The child at `index`, or an exception that names the accessor if the node is not one of `allowed`.
template <AnySyntaxNode Node>
[[nodiscard]] Node& child_of(Node& node, std::size_t index, std::string_view accessor,
                             std::initializer_list<NodeKind> allowed) {
  for (const NodeKind kind : allowed)
    if (node.kind == kind && index < node.children.size()) return node.children[index];
  throw_wrong_kind(node, accessor);
}

inline void require_kind(const SyntaxNode& node, std::string_view accessor,
                         std::initializer_list<NodeKind> allowed) {
  for (const NodeKind kind : allowed)
    if (node.kind == kind) return;
  throw_wrong_kind(node, accessor);
}

} // namespace detail

// --- Accessors: the names of the children. Each takes a const or a mutable node and returns a reference
// (pointer, span) into it, and throws std::invalid_argument when the node is of another kind.

/// A for loop's init: a `declaration`, an expression or `empty`.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& loop_init(Node& node) {
  return detail::child_of(node, 0, "loop_init", {NodeKind::for_loop});
}

/// The condition of any loop; `empty` in `for (;;)`.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& loop_condition(Node& node) {
  return detail::child_of(node, node.kind == NodeKind::while_loop ? 0 : 1, "loop_condition",
                          {NodeKind::for_loop, NodeKind::while_loop, NodeKind::do_loop});
}

/// A for loop's step: an expression or `empty`.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& loop_step(Node& node) {
  return detail::child_of(node, 2, "loop_step", {NodeKind::for_loop});
}

/// The body of any loop: a `block` or any other statement.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& loop_body(Node& node) {
  return detail::child_of(node,
                          node.kind == NodeKind::for_loop     ? 3
                          : node.kind == NodeKind::while_loop ? 1
                                                              : 0,
                          "loop_body", {NodeKind::for_loop, NodeKind::while_loop, NodeKind::do_loop});
}

/// A function's body, a `block`.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& function_body(Node& node) {
  return detail::child_of(node, node.children.empty() ? 0 : node.children.size() - 1, "function_body",
                          {NodeKind::function});
}

/// A function's parameters in order.
template <detail::AnySyntaxNode Node> [[nodiscard]] std::span<Node> parameters(Node& node) {
  (void)function_body(node);
  return std::span<Node>(node.children).first(node.children.size() - 1);
}

/// The statements of a body: a block's children, or the single statement itself.
template <detail::AnySyntaxNode Node> [[nodiscard]] std::span<Node> statements(Node& body) {
  if (body.kind == NodeKind::block || body.kind == NodeKind::translation_unit || body.kind == NodeKind::scope)
    return std::span<Node>(body.children);
  return std::span<Node>(&body, 1);
}

/// The condition of an if.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& if_condition(Node& node) {
  return detail::child_of(node, 0, "if_condition", {NodeKind::if_statement});
}

/// The statement an if runs when its condition holds.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& then_branch(Node& node) {
  return detail::child_of(node, 1, "then_branch", {NodeKind::if_statement});
}

/// The else of an if, or null.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node* else_branch(Node& node) {
  detail::require_kind(node, "else_branch", {NodeKind::if_statement});
  return node.children.size() > 2 ? &node.children[2] : nullptr;
}

/// The declarators of a declaration, in order.
template <detail::AnySyntaxNode Node> [[nodiscard]] std::span<Node> declarators(Node& node) {
  detail::require_kind(node, "declarators", {NodeKind::declaration});
  return std::span<Node>(node.children);
}

/// The `extent` nodes of a declarator or parameter (empty span: not an array). `extents(d)[0].children[0]` is
/// the size.
template <detail::AnySyntaxNode Node> [[nodiscard]] std::span<Node> extents(Node& node) {
  detail::require_kind(node, "extents", {NodeKind::declarator, NodeKind::parameter});
  std::size_t count = 0;
  while (count < node.children.size() && node.children[count].kind == NodeKind::extent) ++count;
  return std::span<Node>(node.children).first(count);
}

/// The `initializer` node of a declarator or parameter, or null.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node* initializer(Node& node) {
  detail::require_kind(node, "initializer", {NodeKind::declarator, NodeKind::parameter});
  const bool present = !node.children.empty() && node.children.back().kind == NodeKind::initializer;
  return present ? &node.children.back() : nullptr;
}

/// The expression a declarator or parameter starts with (`= x`, `(x)`, `{x}`), or null if there is not
/// exactly one.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node* initial_value(Node& node) {
  Node* const start = initializer(node);
  return start != nullptr && start->children.size() == 1 ? &start->children.front() : nullptr;
}

/// The function a call calls.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& callee(Node& node) {
  return detail::child_of(node, 0, "callee", {NodeKind::call});
}

/// The arguments of a call, in order.
template <detail::AnySyntaxNode Node> [[nodiscard]] std::span<Node> arguments(Node& node) {
  (void)callee(node);
  return std::span<Node>(node.children).subspan(1);
}

/// What a subscript is applied to: `a[i]` in `a[i][j]`.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& subscript_base(Node& node) {
  return detail::child_of(node, 0, "subscript_base", {NodeKind::subscript});
}

/// The index of a subscript: `j` in `a[i][j]`.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& subscript_index(Node& node) {
  return detail::child_of(node, 1, "subscript_index", {NodeKind::subscript});
}

/// Left operand of a binary operator, target of an assignment.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& left_operand(Node& node) {
  return detail::child_of(node, 0, "left_operand", {NodeKind::binary, NodeKind::assignment});
}

/// Right operand of a binary operator, value of an assignment.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& right_operand(Node& node) {
  return detail::child_of(node, 1, "right_operand", {NodeKind::binary, NodeKind::assignment});
}

/// The one operand of a unary, postfix, cast or member expression, or the expression of an expression
/// statement.
template <detail::AnySyntaxNode Node> [[nodiscard]] Node& operand(Node& node) {
  return detail::child_of(
      node, 0, "operand",
      {NodeKind::unary, NodeKind::postfix, NodeKind::cast, NodeKind::member, NodeKind::expression_statement});
}

/// True if `node` is the name `text`.
[[nodiscard]] inline bool is_name(const SyntaxNode& node, std::string_view text) noexcept {
  return node.kind == NodeKind::name && node.text == text;
}

/// True if `node` is a call of the plain name `text`.
[[nodiscard]] inline bool is_call_of(const SyntaxNode& node, std::string_view text) noexcept {
  return node.kind == NodeKind::call && !node.children.empty() && is_name(node.children.front(), text);
}

} // namespace mtmc
