#pragma once
/// The expression half of the Python front end.

#include <mtmc/requirements.hpp>

#include <mtmc/analysis/python/python_lexer.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Thrown inside the front end where a text is not what its place asks for; the statement becomes `opaque`.
struct NotPython {};

/// Counts how deep a text is nested while it lives. Throws `NotPython` above a limit, so that neither the
/// front end nor what walks the tree runs out of stack.
class PythonNesting {
public:
  PythonNesting(int& depth, int limit) : depth_(depth) {
    if (++depth_ <= limit) return;
    --depth_;
    throw NotPython{};
  }
  ~PythonNesting() { --depth_; }
  PythonNesting(const PythonNesting&) = delete;
  PythonNesting& operator=(const PythonNesting&) = delete;

private:
  int& depth_;
};

/// Reads expressions off tokens that end with `end`.
class PythonExpressions {
public:
  PythonExpressions(std::string_view source, std::span<const PythonToken> tokens)
      : source_(source), tokens_(tokens) {}

  using Kind = PythonToken::Kind;

  [[nodiscard]] const PythonToken& here() const noexcept { return tokens_[at_]; }
  [[nodiscard]] const PythonToken& next() const noexcept {
    return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
  }
  [[nodiscard]] std::size_t place() const noexcept { return at_; }
  void go_back(std::size_t place) noexcept { at_ = place; }
  void advance() noexcept {
    if (at_ + 1 < tokens_.size()) ++at_;
  }

  [[nodiscard]] bool is(Kind kind) const noexcept { return here().kind == kind; }
  [[nodiscard]] bool is_symbol(std::string_view text) const noexcept {
    return here().kind == Kind::symbol && here().text == text;
  }
  [[nodiscard]] bool is_word(std::string_view text) const noexcept {
    return here().kind == Kind::name && here().text == text;
  }
  [[nodiscard]] bool take_symbol(std::string_view text) {
    if (!is_symbol(text)) return false;
    advance();
    return true;
  }
  [[nodiscard]] bool take_word(std::string_view text) {
    if (!is_word(text)) return false;
    advance();
    return true;
  }
  void need_symbol(std::string_view text) {
    if (!take_symbol(text)) throw NotPython{};
  }
  void need_word(std::string_view text) {
    if (!take_word(text)) throw NotPython{};
  }
  [[nodiscard]] std::string need_name() {
    if (!is(Kind::name) || is_keyword(here().text)) throw NotPython{};
    std::string name(here().text);
    advance();
    return name;
  }

  /// A node whose tokens go from that one to the last one that was read.
  [[nodiscard]] SyntaxNode node(NodeKind kind, std::size_t first, std::string_view text = {},
                                std::vector<SyntaxNode> children = {}) const {
    const PythonToken& begin = tokens_[first];
    const PythonToken& last = tokens_[std::max(at_, first + 1) - 1];
    SyntaxNode result;
    result.kind = kind;
    result.text = text;
    adopt(result, std::move(children));
    result.range = {.begin = begin.begin,
                    .end = last.end(),
                    .first_line = begin.line,
                    .last_line = last.last_line,
                    .first_column = begin.column};
    return result;
  }
  /// Gives a node its children. Throws where the tree would get so deep that those who walk it, or take it
  /// apart, might run out of stack. The depth of a node without children is 0, and kept where no other front
  /// end's nodes of this kind keep anything: Python is never printed from its tree.
  static void adopt(SyntaxNode& node, std::vector<SyntaxNode> children) {
    constexpr std::size_t max_depth = 1000;
    std::size_t depth = 0;
    for (const SyntaxNode& child : children) depth = std::max(depth, child.origin.header_end + 1);
    if (depth > max_depth) throw NotPython{};
    node.origin.header_end = depth;
    node.children = std::move(children);
  }
  /// Two children; an initializer list would copy them.
  [[nodiscard]] static std::vector<SyntaxNode> both(SyntaxNode left, SyntaxNode right) {
    std::vector<SyntaxNode> children;
    children.push_back(std::move(left));
    children.push_back(std::move(right));
    return children;
  }
  /// The source of a node.
  [[nodiscard]] std::string_view text_of(const SyntaxNode& node) const noexcept {
    return source_.substr(node.range.begin, node.range.end - node.range.begin);
  }
  /// The source from a token to the last one that was read.
  [[nodiscard]] std::string_view text_since(std::size_t first) const noexcept {
    const std::size_t end = tokens_[std::max(at_, first + 1) - 1].end();
    return source_.substr(tokens_[first].begin, end - tokens_[first].begin);
  }

  /// One or more expressions, starred ones too; several are a tuple without brackets. Also `yield`.
  [[nodiscard]] SyntaxNode expressions() {
    if (is_word("yield")) return yielded();
    return listed([this] { return starred_or_named(); });
  }
  /// What is assigned to: what a `for` binds, say, where `in` ends it.
  [[nodiscard]] SyntaxNode targets() {
    return listed([this] { return is_symbol("*") ? starred("*") : binary(bitwise_or); });
  }
  /// `a`, `a if b else c`, a lambda, but no tuple.
  [[nodiscard]] SyntaxNode expression() {
    const std::size_t first = at_;
    if (is_word("lambda")) return lambda();
    SyntaxNode value = binary(logical_or);
    if (!take_word("if")) return value;
    const PythonNesting nesting(depth_, max_nesting);
    SyntaxNode condition = binary(logical_or);
    need_word("else");
    SyntaxNode otherwise = expression();
    std::vector<SyntaxNode> parts = both(std::move(condition), std::move(value));
    parts.push_back(std::move(otherwise));
    return node(NodeKind::conditional, first, {}, std::move(parts));
  }
  /// The same, or `name := value`.
  [[nodiscard]] SyntaxNode named_expression() {
    const std::size_t first = at_;
    SyntaxNode value = expression();
    if (!is_symbol(":=") || value.kind != NodeKind::name) return value;
    advance();
    SyntaxNode assigned = expression();
    return node(NodeKind::assignment, first, ":=", both(std::move(value), std::move(assigned)));
  }

  /// Parameters up to what closes them, which stays; annotations only where there are brackets round them.
  [[nodiscard]] std::vector<SyntaxNode> parameters(std::string_view closing) {
    std::vector<SyntaxNode> all;
    while (!is_symbol(closing)) {
      const std::size_t first = at_;
      std::string name;
      for (const std::string_view stars : {"**", "*", "/"})
        if (name.empty() && take_symbol(stars)) name = stars;
      if (name != "/" && is(Kind::name)) name += need_name();
      if (name.empty()) throw NotPython{};
      std::string type;
      if (closing == ")" && take_symbol(":")) {
        type = text_of(starred_or_named());
      }
      std::vector<SyntaxNode> initializer;
      if (const std::size_t equals = at_; take_symbol("=")) {
        std::vector<SyntaxNode> value;
        value.push_back(expression());
        initializer.push_back(node(NodeKind::initializer, equals, "=", std::move(value)));
      }
      SyntaxNode parameter = node(NodeKind::parameter, first, name, std::move(initializer));
      parameter.type = std::move(type);
      all.push_back(std::move(parameter));
      if (!take_symbol(",")) break;
    }
    return all;
  }

  /// Whether a name is reserved.
  [[nodiscard]] static bool is_keyword(std::string_view text) noexcept {
    constexpr std::string_view words[] = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
    return std::find(std::begin(words), std::end(words), text) != std::end(words);
  }

private:
  static constexpr int max_nesting = 100;
  enum Level {
    logical_or,
    logical_and,
    logical_not,
    comparison,
    bitwise_or,
    bitwise_xor,
    bitwise_and,
    shift,
    sum,
    product,
    prefix
  };

  /// Expressions with commas between; one without a comma is itself.
  template <class Read> [[nodiscard]] SyntaxNode listed(Read read, bool slices = false) {
    const std::size_t first = at_;
    SyntaxNode one = read();
    if (!is_symbol(",")) return one;
    std::vector<SyntaxNode> all;
    all.push_back(std::move(one));
    while (take_symbol(","))
      if (begins_expression() || (slices && is_symbol(":"))) all.push_back(read());
    return node(NodeKind::initializer_list, first, {}, std::move(all));
  }
  [[nodiscard]] bool begins_expression() const noexcept {
    switch (here().kind) {
    case Kind::number:
    case Kind::string:
      return true;
    case Kind::name: {
      constexpr std::string_view first[] = {"False", "None", "True", "await", "lambda", "not", "yield"};
      return !is_keyword(here().text) ||
             std::find(std::begin(first), std::end(first), here().text) != std::end(first);
    }
    case Kind::symbol: {
      constexpr std::string_view first[] = {"(", "[", "{", "-", "+", "~", "*", "**", "..."};
      return std::find(std::begin(first), std::end(first), here().text) != std::end(first);
    }
    default:
      return false;
    }
  }
  /// Stars and what they spread: any expression in a call, elsewhere none that has a comparison or `or` in
  /// it.
  [[nodiscard]] SyntaxNode starred(std::string_view stars, bool in_call = false) {
    const std::size_t first = at_;
    need_symbol(stars);
    std::vector<SyntaxNode> value;
    value.push_back(in_call ? expression() : binary(bitwise_or));
    return node(NodeKind::unary, first, stars, std::move(value));
  }
  [[nodiscard]] SyntaxNode starred_or_named() { return is_symbol("*") ? starred("*") : named_expression(); }
  [[nodiscard]] SyntaxNode yielded() {
    const std::size_t first = at_;
    need_word("yield");
    std::vector<SyntaxNode> value;
    const bool from = take_word("from");
    if (from)
      value.push_back(expression());
    else if (begins_expression())
      value.push_back(expressions());
    return node(NodeKind::unary, first, from ? "yield from" : "yield", std::move(value));
  }
  [[nodiscard]] SyntaxNode lambda() {
    const PythonNesting nesting(depth_, max_nesting);
    const std::size_t first = at_;
    need_word("lambda");
    std::vector<SyntaxNode> parts = parameters(":");
    need_symbol(":");
    parts.push_back(expression());
    return node(NodeKind::lambda, first, {}, std::move(parts));
  }

  /// The operator of that level that stands here, or "".
  [[nodiscard]] std::string_view operator_of(Level level) const noexcept {
    const auto symbol = [this](std::initializer_list<std::string_view> all) -> std::string_view {
      if (!is(Kind::symbol)) return {};
      const auto found = std::find(all.begin(), all.end(), here().text);
      return found == all.end() ? std::string_view() : *found;
    };
    switch (level) {
    case logical_or:
      return is_word("or") ? "or" : "";
    case logical_and:
      return is_word("and") ? "and" : "";
    case comparison:
      if (is_word("in")) return "in";
      if (is_word("is")) return "is";
      if (is_word("not") && next().text == "in") return "not in";
      return symbol({"<", ">", "==", "!=", "<=", ">="});
    case bitwise_or:
      return symbol({"|"});
    case bitwise_xor:
      return symbol({"^"});
    case bitwise_and:
      return symbol({"&"});
    case shift:
      return symbol({"<<", ">>"});
    case sum:
      return symbol({"+", "-"});
    case product:
      return symbol({"*", "/", "//", "%", "@"});
    case logical_not:
    case prefix:
      break;
    }
    return {};
  }
  /// Operators of that level and those that bind closer.
  [[nodiscard]] SyntaxNode binary(Level level) {
    if (level == prefix) return signed_operand();
    if (level == logical_not) return negated();
    const auto closer = static_cast<Level>(level + 1);
    const std::size_t first = at_;
    SyntaxNode left = binary(closer);
    if (level == comparison) return compared(std::move(left), first);
    for (std::string_view sign = operator_of(level); !sign.empty(); sign = operator_of(level)) {
      advance();
      SyntaxNode right = binary(closer);
      left = node(NodeKind::binary, first, sign, both(std::move(left), std::move(right)));
    }
    return left;
  }
  /// `a < b` is a `binary`, `a < b < c` a `chain`.
  [[nodiscard]] SyntaxNode compared(SyntaxNode left, std::size_t first) {
    std::string signs;
    std::vector<SyntaxNode> operands;
    operands.push_back(std::move(left));
    for (std::string_view sign = operator_of(comparison); !sign.empty(); sign = operator_of(comparison)) {
      advance();
      if (sign == "not in") advance();
      if (sign == "is" && take_word("not")) sign = "is not";
      if (!signs.empty()) signs += ", ";
      signs += sign;
      operands.push_back(binary(bitwise_or));
    }
    if (signs.empty()) return std::move(operands.front());
    const NodeKind kind = operands.size() == 2 ? NodeKind::binary : NodeKind::chain;
    return node(kind, first, signs, std::move(operands));
  }
  [[nodiscard]] SyntaxNode prefixed(std::string_view sign, Level level) {
    const PythonNesting nesting(depth_, max_nesting);
    const std::size_t first = at_;
    advance();
    std::vector<SyntaxNode> operand;
    operand.push_back(binary(level));
    return node(NodeKind::unary, first, sign, std::move(operand));
  }
  [[nodiscard]] SyntaxNode negated() {
    return is_word("not") ? prefixed("not", logical_not) : binary(comparison);
  }
  [[nodiscard]] SyntaxNode signed_operand() {
    for (const std::string_view sign : {"-", "+", "~"})
      if (is_symbol(sign)) return prefixed(sign, prefix);
    const std::size_t first = at_;
    SyntaxNode base = awaited();
    if (!take_symbol("**")) return base;
    const PythonNesting nesting(depth_, max_nesting);
    SyntaxNode exponent = signed_operand();
    return node(NodeKind::binary, first, "**", both(std::move(base), std::move(exponent)));
  }
  [[nodiscard]] SyntaxNode awaited() {
    if (!is_word("await")) return primary();
    const std::size_t first = at_;
    advance();
    std::vector<SyntaxNode> value;
    value.push_back(primary());
    return node(NodeKind::unary, first, "await", std::move(value));
  }

  /// An atom with members, calls and subscripts behind it.
  [[nodiscard]] SyntaxNode primary() {
    const std::size_t first = at_;
    SyntaxNode value = atom();
    while (is(Kind::symbol)) {
      std::vector<SyntaxNode> parts;
      parts.push_back(std::move(value));
      if (take_symbol(".")) {
        const std::string name = need_name();
        value = node(NodeKind::member, first, "." + name, std::move(parts));
      } else if (is_symbol("(")) {
        add_arguments(parts);
        value = node(NodeKind::call, first, {}, std::move(parts));
      } else if (take_symbol("[")) {
        parts.push_back(index());
        need_symbol("]");
        value = node(NodeKind::subscript, first, {}, std::move(parts));
      } else {
        return std::move(parts.front());
      }
    }
    return value;
  }
  void add_arguments(std::vector<SyntaxNode>& parts) {
    const PythonNesting nesting(depth_, max_nesting);
    const std::size_t bracket = at_;
    need_symbol("(");
    while (!is_symbol(")")) {
      const std::size_t first = at_;
      if (is(Kind::name) && next().kind == Kind::symbol && next().text == "=") {
        const std::string name = need_name();
        advance();
        std::vector<SyntaxNode> value;
        value.push_back(expression());
        parts.push_back(node(NodeKind::keyword_argument, first, name, std::move(value)));
      } else if (is_symbol("**")) {
        parts.push_back(starred("**", true));
      } else {
        SyntaxNode value = is_symbol("*") ? starred("*", true) : named_expression();
        if (begins_clause()) {
          SyntaxNode generated = comprehended(std::move(value), "(", bracket);
          if (!is_symbol(")")) throw NotPython{};
          advance();
          const SyntaxNode with_brackets = node(NodeKind::comprehension, bracket);
          generated.range = with_brackets.range;
          parts.push_back(std::move(generated));
          return;
        }
        parts.push_back(std::move(value));
      }
      if (!take_symbol(",")) break;
    }
    need_symbol(")");
  }
  /// What stands in the brackets of a subscript; a starred one is a tuple.
  [[nodiscard]] SyntaxNode index() {
    const std::size_t first = at_;
    SyntaxNode value = listed([this] { return subscript(); }, true);
    if (value.kind != NodeKind::unary || value.text != "*") return value;
    std::vector<SyntaxNode> one;
    one.push_back(std::move(value));
    return node(NodeKind::initializer_list, first, {}, std::move(one));
  }
  /// An index, or a slice: children are its beginning, end and step, `empty` where they are left out.
  [[nodiscard]] SyntaxNode subscript() {
    const std::size_t first = at_;
    const auto part = [this] {
      return is_symbol(":") || is_symbol("]") || is_symbol(",") ? SyntaxNode{} : starred_or_named();
    };
    SyntaxNode begin = part();
    if (!is_symbol(":")) {
      if (begin.kind == NodeKind::empty) throw NotPython{};
      return begin;
    }
    std::vector<SyntaxNode> parts;
    parts.push_back(std::move(begin));
    for (int i = 0; i < 2; ++i) parts.push_back(take_symbol(":") ? part() : SyntaxNode{});
    return node(NodeKind::slice, first, {}, std::move(parts));
  }

  [[nodiscard]] SyntaxNode atom() {
    const PythonNesting nesting(depth_, max_nesting);
    const std::size_t first = at_;
    const PythonToken& token = here();
    if (token.kind == Kind::number || token.text == "...") {
      advance();
      return node(NodeKind::literal, first, token.text);
    }
    if (token.kind == Kind::string) {
      while (is(Kind::string)) advance(); // one literal, in pieces
      return node(NodeKind::literal, first, text_since(first));
    }
    if (token.kind == Kind::name) {
      const bool constant = token.text == "None" || token.text == "True" || token.text == "False";
      if (!constant && is_keyword(token.text)) throw NotPython{};
      advance();
      return node(constant ? NodeKind::literal : NodeKind::name, first, token.text);
    }
    if (take_symbol("(")) return in_parentheses(first);
    if (take_symbol("[")) return in_brackets(first);
    if (take_symbol("{")) return in_braces(first);
    throw NotPython{};
  }
  /// A tuple or a generator; an expression in parentheses is itself.
  [[nodiscard]] SyntaxNode in_parentheses(std::size_t first) {
    if (take_symbol(")")) return sequence("(", first, {});
    if (is_word("yield")) {
      SyntaxNode value = yielded();
      need_symbol(")");
      return value;
    }
    SyntaxNode one = starred_or_named();
    if (begins_clause()) return closed(comprehended(std::move(one), "(", first), ")", first);
    if (take_symbol(")")) return one;
    std::vector<SyntaxNode> all;
    all.push_back(std::move(one));
    while (take_symbol(","))
      if (!is_symbol(")")) all.push_back(starred_or_named());
    need_symbol(")");
    return sequence("(", first, std::move(all));
  }
  [[nodiscard]] SyntaxNode in_brackets(std::size_t first) {
    std::vector<SyntaxNode> all;
    while (!is_symbol("]")) {
      all.push_back(starred_or_named());
      if (all.size() == 1 && begins_clause())
        return closed(comprehended(std::move(all.front()), "[", first), "]", first);
      if (!take_symbol(",")) break;
    }
    need_symbol("]");
    return sequence("[", first, std::move(all));
  }
  /// A set or a dictionary; entries of the latter are `binary` with ":".
  [[nodiscard]] SyntaxNode in_braces(std::size_t first) {
    std::vector<SyntaxNode> all;
    while (!is_symbol("}")) {
      const std::size_t begin = at_;
      SyntaxNode one = is_symbol("**") ? starred("**") : starred_or_named();
      if (take_symbol(":")) {
        SyntaxNode value = expression();
        one = node(NodeKind::binary, begin, ":", both(std::move(one), std::move(value)));
      }
      all.push_back(std::move(one));
      if (all.size() == 1 && begins_clause())
        return closed(comprehended(std::move(all.front()), "{", first), "}", first);
      if (!take_symbol(",")) break;
    }
    need_symbol("}");
    return sequence("{", first, std::move(all));
  }
  [[nodiscard]] SyntaxNode sequence(std::string_view bracket, std::size_t first,
                                    std::vector<SyntaxNode> all) const {
    SyntaxNode result = node(NodeKind::initializer_list, first, {}, std::move(all));
    result.type = bracket;
    return result;
  }
  [[nodiscard]] SyntaxNode closed(SyntaxNode inside, std::string_view bracket, std::size_t first) {
    need_symbol(bracket);
    inside.range = node(NodeKind::empty, first).range;
    return inside;
  }

  [[nodiscard]] bool begins_clause() const noexcept {
    return is_word("for") || (is_word("async") && next().text == "for");
  }
  /// `element for target in iterable if condition ...`; clauses are children behind the element.
  [[nodiscard]] SyntaxNode comprehended(SyntaxNode element, std::string_view bracket, std::size_t first) {
    std::vector<SyntaxNode> parts;
    parts.push_back(std::move(element));
    while (begins_clause() || is_word("if")) {
      const std::size_t begin = at_;
      std::vector<SyntaxNode> clause;
      if (take_word("if")) {
        clause.push_back(condition_of_clause());
        parts.push_back(node(NodeKind::clause, begin, "if", std::move(clause)));
        continue;
      }
      const bool asynchronous = take_word("async");
      need_word("for");
      clause.push_back(targets());
      need_word("in");
      clause.push_back(binary(logical_or));
      // `for x in a if b else c` is not a clause in Python 3, so nothing of it is read here.
      parts.push_back(node(NodeKind::clause, begin, asynchronous ? "async for" : "for", std::move(clause)));
    }
    SyntaxNode result = node(NodeKind::comprehension, first, {}, std::move(parts));
    result.type = bracket;
    return result;
  }
  [[nodiscard]] SyntaxNode condition_of_clause() {
    const std::size_t first = at_;
    SyntaxNode value = is_word("lambda") ? lambda() : binary(logical_or);
    if (!is_symbol(":=") || value.kind != NodeKind::name) return value;
    advance();
    SyntaxNode assigned = binary(logical_or);
    return node(NodeKind::assignment, first, ":=", both(std::move(value), std::move(assigned)));
  }

  std::string_view source_;
  std::span<const PythonToken> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

} // namespace mtmc::detail
