#pragma once
/// The statement half of the Python front end.

#include <mtmc/requirements.hpp>

#include <mtmc/analysis/python/python_expressions.hpp>
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

/// Reads statements; what it does not understand is `opaque`, with the block below it.
class PythonStatements {
public:
  using Kind = PythonToken::Kind;

  PythonStatements(std::string_view source, std::span<const PythonToken> tokens) : read_(source, tokens) {}

  [[nodiscard]] SyntaxNode file() {
    SyntaxNode root = read_.node(NodeKind::translation_unit, 0);
    while (!read_.is(Kind::end)) {
      // A file that begins indented, or what is left of a block that was given up.
      if (read_.is(Kind::newline) || read_.is(Kind::indent) || read_.is(Kind::dedent))
        read_.advance();
      else
        add_statements(root.children);
    }
    return root;
  }

private:
  /// Deeper blocks are opaque.
  static constexpr int max_blocks = 60;
  /// Of an `if` with all of its `elif`s, which stand within each other in the tree.
  static constexpr int max_branches = 400;

  /// Adds what one logical line begins: a compound statement, or simple ones with semicolons between.
  void add_statements(std::vector<SyntaxNode>& to) {
    const std::size_t first = read_.place();
    try {
      if (read_.is(Kind::marker)) {
        read_.advance();
        to.push_back(read_.node(NodeKind::launch_comment, first, read_.text_since(first)));
        return;
      }
      std::vector<SyntaxNode> line;
      if (!compound(line)) simple_line(line);
      std::move(line.begin(), line.end(), std::back_inserter(to));
    } catch (const NotPython&) {
      read_.go_back(first);
      to.push_back(skipped());
    }
  }
  /// A statement that is not understood: its logical line, and the block below it. Decorators go with what
  /// they do not decorate.
  [[nodiscard]] SyntaxNode skipped() {
    const std::size_t first = read_.place();
    const bool decorators = read_.is_symbol("@");
    std::size_t behind = 0;
    do {
      if (read_.is(Kind::newline)) read_.advance();
      while (!read_.is(Kind::newline) && !read_.is(Kind::end)) read_.advance();
      behind = read_.place();
    } while (decorators && read_.next().kind == Kind::symbol && read_.next().text == "@");
    if (read_.is(Kind::newline)) read_.advance();
    if (read_.is(Kind::indent)) {
      int depth = 0;
      do {
        if (read_.is(Kind::indent)) ++depth;
        if (read_.is(Kind::dedent)) --depth;
        if (!read_.here().text.empty()) behind = read_.place() + 1;
        read_.advance();
      } while (depth > 0 && !read_.is(Kind::end));
    }
    const std::size_t after = read_.place();
    read_.go_back(behind);
    SyntaxNode result = read_.node(NodeKind::opaque, first, read_.text_since(first));
    read_.go_back(after);
    return result;
  }

  // --- simple statements

  void simple_line(std::vector<SyntaxNode>& to) {
    to.push_back(simple());
    while (read_.take_symbol(";"))
      if (!read_.is(Kind::newline)) to.push_back(simple());
    end_line();
  }
  void end_line() {
    if (!read_.is(Kind::newline)) throw NotPython{};
    read_.advance();
  }
  [[nodiscard]] SyntaxNode simple() {
    const std::size_t first = read_.place();
    if (read_.take_word("pass")) return read_.node(NodeKind::empty, first, "pass");
    if (read_.take_word("break")) return read_.node(NodeKind::break_statement, first);
    if (read_.take_word("continue")) return read_.node(NodeKind::continue_statement, first);
    if (read_.take_word("return")) {
      std::vector<SyntaxNode> value;
      if (!ends_statement()) value.push_back(read_.expressions());
      return read_.node(NodeKind::return_statement, first, {}, std::move(value));
    }
    if (read_.is_word("import") || read_.is_word("from")) return imported();
    for (const std::string_view word : {"raise", "del", "assert", "global", "nonlocal"})
      if (read_.take_word(word)) return with_keyword(word, first);
    return expression_or_assignment();
  }
  [[nodiscard]] bool ends_statement() const noexcept {
    return read_.is(Kind::newline) || read_.is_symbol(";");
  }

  [[nodiscard]] SyntaxNode imported() {
    const std::size_t first = read_.place();
    while (!ends_statement() && !read_.is(Kind::end)) read_.advance();
    SyntaxNode result = read_.node(NodeKind::import_statement, first);
    result.text = read_.text_since(first);
    return result;
  }
  [[nodiscard]] SyntaxNode with_keyword(std::string_view word, std::size_t first) {
    std::vector<SyntaxNode> parts;
    if (word == "global" || word == "nonlocal" || word == "del") {
      SyntaxNode all = read_.targets();
      if (word == "del" || all.kind != NodeKind::initializer_list || !all.type.empty())
        parts.push_back(std::move(all));
      else
        parts = std::move(all.children);
    } else if (!ends_statement()) {
      parts.push_back(read_.expression());
      if (word == "raise" ? read_.take_word("from") : read_.take_symbol(","))
        parts.push_back(read_.expression());
    }
    return read_.node(NodeKind::keyword_statement, first, word, std::move(parts));
  }
  [[nodiscard]] SyntaxNode expression_or_assignment() {
    const std::size_t first = read_.place();
    SyntaxNode value = read_.expressions();
    if (read_.take_symbol(":")) {
      std::string type(read_.text_of(read_.expression()));
      SyntaxNode assigned;
      if (read_.take_symbol("=")) assigned = read_.expressions();
      value = read_.node(NodeKind::assignment, first, "=",
                         PythonExpressions::both(std::move(value), std::move(assigned)));
      value.type = std::move(type);
    } else if (read_.is_symbol("=")) {
      value = assigned(std::move(value), first);
    } else if (read_.is(Kind::symbol) && read_.here().text.size() > 1 && read_.here().text.back() == '=') {
      constexpr std::string_view updates[] = {
          "+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", "<<=", ">>=", "**="};
      const std::string_view sign = read_.here().text;
      if (std::find(std::begin(updates), std::end(updates), sign) == std::end(updates)) throw NotPython{};
      read_.advance();
      SyntaxNode right = read_.expressions();
      value = read_.node(NodeKind::assignment, first, sign,
                         PythonExpressions::both(std::move(value), std::move(right)));
    }
    if (!ends_statement()) throw NotPython{};
    std::vector<SyntaxNode> child;
    child.push_back(std::move(value));
    return read_.node(NodeKind::expression_statement, first, {}, std::move(child));
  }
  /// `a = b = c`: an assignment whose value is an assignment.
  [[nodiscard]] SyntaxNode assigned(SyntaxNode target, std::size_t first) {
    std::vector<std::pair<std::size_t, SyntaxNode>> targets;
    targets.emplace_back(first, std::move(target));
    SyntaxNode value;
    while (read_.take_symbol("=")) {
      const std::size_t begin = read_.place();
      SyntaxNode one = read_.expressions();
      if (!read_.is_symbol("=")) {
        value = std::move(one);
        break;
      }
      targets.emplace_back(begin, std::move(one));
      if (targets.size() > 500) throw NotPython{};
    }
    for (auto one = targets.rbegin(); one != targets.rend(); ++one)
      value = read_.node(NodeKind::assignment, one->first, "=",
                         PythonExpressions::both(std::move(one->second), std::move(value)));
    return value;
  }

  // --- compound statements

  /// Reads one into `to` if one begins here.
  [[nodiscard]] bool compound(std::vector<SyntaxNode>& to) {
    const std::size_t first = read_.place();
    if (read_.is_symbol("@")) {
      to.push_back(decorated());
    } else if (read_.is_word("async") &&
               (read_.next().text == "def" || read_.next().text == "for" || read_.next().text == "with")) {
      read_.advance();
      if (read_.is_word("def"))
        to.push_back(function(first, "async def"));
      else
        to.push_back(read_.is_word("for") ? for_each(first, "async") : with(first, "async"));
    } else if (read_.is_word("def")) {
      to.push_back(function(first, "def"));
    } else if (read_.is_word("class")) {
      to.push_back(class_definition());
    } else if (read_.is_word("if")) {
      to.push_back(if_statement());
    } else if (read_.is_word("for")) {
      to.push_back(for_each(first, {}));
    } else if (read_.is_word("while")) {
      to.push_back(while_loop());
    } else if (read_.is_word("with")) {
      to.push_back(with(first, {}));
    } else if (read_.is_word("try")) {
      to.push_back(try_statement());
    } else {
      return false;
    }
    return true;
  }

  /// Behind the colon: an indented block, or simple statements on the same line.
  [[nodiscard]] SyntaxNode block() {
    read_.need_symbol(":");
    const PythonNesting nesting(blocks_, max_blocks);
    SyntaxNode result;
    result.kind = NodeKind::block;
    if (!read_.is(Kind::newline)) {
      simple_line(result.children);
    } else {
      read_.advance();
      if (!read_.is(Kind::indent)) throw NotPython{};
      read_.advance();
      while (!read_.is(Kind::dedent) && !read_.is(Kind::end)) add_statements(result.children);
      if (read_.is(Kind::dedent)) read_.advance();
    }
    if (result.children.empty()) throw NotPython{};
    PythonExpressions::adopt(result, std::move(result.children));
    const SyntaxNode& begin = result.children.front();
    const SyntaxNode& end = result.children.back();
    result.range = {.begin = begin.range.begin,
                    .end = end.range.end,
                    .first_line = begin.range.first_line,
                    .last_line = end.range.last_line,
                    .first_column = begin.range.first_column};
    return result;
  }
  /// A compound statement, which ends where its last block does.
  [[nodiscard]] SyntaxNode ended(NodeKind kind, std::size_t first, std::string_view text,
                                 std::vector<SyntaxNode> parts) const {
    SyntaxNode result = read_.node(kind, first, text);
    const SourceRange& last = parts.back().range;
    result.range.end = last.end;
    result.range.last_line = last.last_line;
    PythonExpressions::adopt(result, std::move(parts));
    return result;
  }

  /// Children: the decorators, then what they decorate.
  [[nodiscard]] SyntaxNode decorated() {
    const std::size_t first = read_.place();
    std::vector<SyntaxNode> parts;
    while (read_.take_symbol("@")) {
      parts.push_back(read_.named_expression());
      end_line();
    }
    if (!compound(parts)) throw NotPython{};
    return ended(NodeKind::decorated, first, {}, std::move(parts));
  }
  [[nodiscard]] SyntaxNode function(std::size_t first, std::string_view type) {
    read_.need_word("def");
    const std::string name = read_.need_name();
    skip_type_parameters();
    read_.need_symbol("(");
    std::vector<SyntaxNode> parts = read_.parameters(")");
    read_.need_symbol(")");
    std::string suffix;
    if (const std::size_t arrow = read_.place(); read_.take_symbol("->")) {
      (void)read_.expressions();
      suffix = read_.text_since(arrow);
    }
    parts.push_back(block());
    SyntaxNode result = ended(NodeKind::function, first, name, std::move(parts));
    result.type = type;
    result.suffix = std::move(suffix);
    return result;
  }
  /// `[T]` behind the name of a function or class.
  void skip_type_parameters() {
    if (!read_.take_symbol("[")) return;
    while (!read_.is_symbol("]")) {
      if (ends_statement() || read_.is(Kind::end)) throw NotPython{};
      read_.advance();
    }
    read_.advance();
  }
  [[nodiscard]] SyntaxNode class_definition() {
    const std::size_t first = read_.place();
    read_.need_word("class");
    const std::string name = read_.need_name();
    skip_type_parameters();
    std::string bases;
    if (const std::size_t bracket = read_.place(); read_.is_symbol("(")) {
      for (int depth = 0; depth > 0 || read_.place() == bracket; read_.advance()) {
        if (read_.is(Kind::newline) || read_.is(Kind::end)) throw NotPython{};
        if (read_.is_symbol("(") || read_.is_symbol("[") || read_.is_symbol("{")) ++depth;
        if (read_.is_symbol(")") || read_.is_symbol("]") || read_.is_symbol("}")) --depth;
      }
      bases = read_.text_since(bracket);
    }
    std::vector<SyntaxNode> parts;
    parts.push_back(block());
    SyntaxNode result = ended(NodeKind::class_definition, first, name, std::move(parts));
    result.type = std::move(bases);
    return result;
  }
  /// Also `elif`, whose word was not read.
  [[nodiscard]] SyntaxNode if_statement() {
    const std::size_t first = read_.place();
    read_.advance();
    std::vector<SyntaxNode> parts;
    parts.push_back(read_.named_expression());
    parts.push_back(block());
    if (read_.is_word("elif")) {
      const PythonNesting nesting(branches_, max_branches);
      parts.push_back(if_statement());
    } else {
      add_else(parts);
    }
    return ended(NodeKind::if_statement, first, {}, std::move(parts));
  }
  void add_else(std::vector<SyntaxNode>& parts) {
    if (read_.take_word("else")) parts.push_back(block());
  }
  [[nodiscard]] SyntaxNode for_each(std::size_t first, std::string_view text) {
    read_.need_word("for");
    std::vector<SyntaxNode> parts;
    parts.push_back(read_.targets());
    read_.need_word("in");
    parts.push_back(read_.expressions());
    parts.push_back(block());
    add_else(parts);
    return ended(NodeKind::for_each_loop, first, text, std::move(parts));
  }
  [[nodiscard]] SyntaxNode while_loop() {
    const std::size_t first = read_.place();
    read_.need_word("while");
    std::vector<SyntaxNode> parts;
    parts.push_back(read_.named_expression());
    parts.push_back(block());
    add_else(parts);
    return ended(NodeKind::while_loop, first, {}, std::move(parts));
  }
  [[nodiscard]] SyntaxNode with(std::size_t first, std::string_view text) {
    read_.need_word("with");
    std::vector<SyntaxNode> parts;
    const std::size_t items = read_.place();
    if (read_.take_symbol("(")) {
      try {
        add_items(parts, ")");
        read_.need_symbol(")");
        if (!read_.is_symbol(":")) throw NotPython{};
      } catch (const NotPython&) { // the bracket belonged to the first expression
        parts.clear();
        read_.go_back(items);
        add_items(parts, ":");
      }
    } else {
      add_items(parts, ":");
    }
    parts.push_back(block());
    return ended(NodeKind::with_statement, first, text, std::move(parts));
  }
  /// Contexts; one that is given a name is a `binary` with "as".
  void add_items(std::vector<SyntaxNode>& parts, std::string_view closing) {
    while (!read_.is_symbol(closing)) {
      const std::size_t first = read_.place();
      SyntaxNode item = read_.named_expression();
      if (read_.take_word("as")) {
        SyntaxNode name = read_.expression();
        item = read_.node(NodeKind::binary, first, "as",
                          PythonExpressions::both(std::move(item), std::move(name)));
      }
      parts.push_back(std::move(item));
      if (!read_.take_symbol(",")) break;
    }
    if (parts.empty()) throw NotPython{};
  }
  [[nodiscard]] SyntaxNode try_statement() {
    const std::size_t first = read_.place();
    read_.need_word("try");
    std::vector<SyntaxNode> parts;
    parts.push_back(block());
    while (read_.is_word("except") || read_.is_word("else") || read_.is_word("finally")) {
      const std::size_t begin = read_.place();
      std::string word(read_.here().text);
      read_.advance();
      std::string name;
      std::vector<SyntaxNode> clause;
      if (word == "except") {
        if (read_.take_symbol("*")) word += "*";
        if (!read_.is_symbol(":")) clause.push_back(read_.expressions());
        if (read_.take_word("as")) name = read_.need_name();
      }
      clause.push_back(block());
      parts.push_back(ended(NodeKind::clause, begin, word, std::move(clause)));
      parts.back().type = std::move(name);
    }
    if (parts.size() == 1) throw NotPython{};
    return ended(NodeKind::try_statement, first, {}, std::move(parts));
  }

  PythonExpressions read_;
  int blocks_ = 0;
  int branches_ = 0;
};

} // namespace mtmc::detail
