#pragma once

#include <mtmc/analysis/syntax/expression_parser.hpp>
#include <mtmc/analysis/syntax/source_text.hpp>
#include <mtmc/analysis/syntax/statement_skipper.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/analysis/syntax/token_buffer.hpp>
#include <mtmc/analysis/syntax/trivia.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Statements and items of the C family.

namespace mtmc::inline MTMC_ABI::detail {

/// Statements and items on top of the expressions.
class StatementParser : public ExpressionParser {
public:
  using ExpressionParser::ExpressionParser;

  /// The whole text.
  [[nodiscard]] SyntaxNode translation_unit() {
    SyntaxNode root = begin_node(NodeKind::translation_unit);
    items(root, Level::file);
    const Token& end = tokens_.token(tokens_.size());
    root.range = {0, end.begin, 1, 1, 1};
    for (const char c : tokens_.source()) root.range.last_line += c == '\n' ? 1 : 0;
    root.origin.source = source_;
    return root;
  }

  /// The whole text as statements, as if inside a function.
  [[nodiscard]] std::vector<SyntaxNode> statement_list() {
    SyntaxNode block = begin_node(NodeKind::block);
    items(block, Level::function);
    return std::move(block.children);
  }

private:
  enum class Level { file, function };

  /// The blanks at the start of the token's line.
  [[nodiscard]] std::string_view indentation_of(std::size_t index) const {
    const Token& token = tokens_.token(index);
    return line_indentation(tokens_.source(), token.begin, token.column);
  }

  [[nodiscard]] TriviaSplit trivia_before(std::size_t index, bool keep_trailing, bool last) const {
    const bool needs_indentation = !last && tokens_.starts_line(index);
    const std::string_view indentation = needs_indentation ? indentation_of(index) : std::string_view{};
    return split_trivia(tokens_.gap(index), indentation, index > 0, keep_trailing, last);
  }

  /// Everything up to the limit as children of `parent`.
  void items(SyntaxNode& parent, Level level) {
    const bool in_file = parent.kind == NodeKind::translation_unit;
    std::vector<SyntaxNode>& list = parent.children;
    const auto keep_trailing = [&](std::string text) {
      if (text.empty()) return;
      if (!list.empty())
        list.back().trailing_trivia = std::move(text);
      else if (parent.kind == NodeKind::block)
        parent.text = std::move(text);
      else
        parent.suffix = std::move(text);
    };
    while (position_ < limit_) {
      TriviaSplit trivia = trivia_before(position_, !(in_file && list.empty()), false);
      keep_trailing(std::move(trivia.trailing));
      SyntaxNode node;
      statement(node, level);
      node.leading_trivia = std::move(trivia.leading);
      list.push_back(std::move(node));
    }
    TriviaSplit trivia = trivia_before(limit_, !(in_file && list.empty()), true);
    keep_trailing(std::move(trivia.trailing));
    if (!trim(trivia.leading).empty()) list.push_back(last_comment(trivia.leading));
  }

  /// The comment lines that no statement follows.
  [[nodiscard]] SyntaxNode last_comment(std::string_view lines) const {
    SyntaxNode node = begin_node(NodeKind::comment);
    while (!lines.empty() && lines.front() == '\n') {
      node.leading_trivia += '\n';
      lines.remove_prefix(1);
    }
    const std::size_t first_word = lines.find_first_not_of(" \t");
    const std::string_view indentation = lines.substr(0, first_word);
    std::string_view rest = trim_right(lines);
    while (!rest.empty()) {
      const std::size_t newline = rest.find('\n');
      node.text += dedent(rest.substr(0, newline), indentation);
      if (newline != std::string_view::npos) node.text += '\n';
      rest = newline == std::string_view::npos ? std::string_view{} : rest.substr(newline + 1);
    }
    return node;
  }

  /// One statement or item from the cursor on; always advances.
  void statement(SyntaxNode& out, Level level) {
    const Nesting nesting(*this);
    const std::size_t first = position_;
    out = {};
    if (nesting.too_deep() || wasted_ > 4 * tokens_.size() + 1024 || !understood(out, level)) {
      wasted_ += position_ - first;
      position_ = first;
      opaque(out, StatementSkipper(tokens_, limit_).end_of(first));
    }
    finish(out, first);
  }

  void opaque(SyntaxNode& out, std::size_t end) {
    const std::size_t first = position_;
    out = begin_node(NodeKind::opaque);
    position_ = end;
    out.text = slice(first, end);
    if (out.text.find('\n') != std::string::npos) out.text = reindent(out.text, indentation_of(first), "");
  }

  [[nodiscard]] bool understood(SyntaxNode& out, Level level) {
    switch (tokens_.kind(position_)) {
    case TokenKind::directive:
      return directive(out);
    case TokenKind::launch_comment:
      return line(out, NodeKind::launch_comment);
    case TokenKind::invalid:
      return false;
    default:
      break;
    }
    if (is("{")) return block(out);
    if (take(";")) return true;
    if (level == Level::file && (scope(out) || function(out))) return true;
    switch (tokens_.word(position_)) {
    case Word::control:
      return control(out);
    case Word::unmodelled:
      return pragma_operator(out);
    default:
      break;
    }
    return simple(out);
  }

  /// True at `_Pragma("text")`, the pragma as an operator.
  [[nodiscard]] bool is_pragma_operator() const {
    return is("_Pragma") && tokens_.is(position_ + 1, "(") &&
           tokens_.kind(position_ + 2) == TokenKind::string && tokens_.is(position_ + 3, ")") &&
           position_ + 3 < limit_;
  }

  [[nodiscard]] bool pragma_operator(SyntaxNode& out) {
    if (!is_pragma_operator()) return false;
    std::string_view text = tokens_.text(position_ + 2);
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
    text = text.substr(1, text.size() - 2);
    out.kind = NodeKind::pragma;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      out.text += text[i];
    }
    position_ += 4;
    return true;
  }

  [[nodiscard]] bool line(SyntaxNode& out, NodeKind kind) {
    out.kind = kind;
    out.text = trim_right(tokens_.text(position_++));
    return true;
  }

  [[nodiscard]] bool directive(SyntaxNode& out) {
    std::string_view rest = trim(tokens_.text(position_).substr(1));
    constexpr std::string_view pragma = "pragma";
    if (rest.substr(0, pragma.size()) != pragma ||
        (rest.size() > pragma.size() && !is_blank(rest[pragma.size()])))
      return line(out, NodeKind::preprocessor);
    out.kind = NodeKind::pragma;
    out.text = trim(rest.substr(pragma.size()));
    ++position_;
    return true;
  }

  [[nodiscard]] bool block(SyntaxNode& out) {
    const std::size_t close = tokens_.closing(position_);
    if (close == TokenBuffer::none || close >= limit_) return false;
    out.kind = NodeKind::block;
    group(out, close, Level::function);
    return true;
  }

  /// The items between the brace at the cursor and `close`.
  void group(SyntaxNode& out, std::size_t close, Level level) {
    const std::size_t outer = std::exchange(limit_, close);
    ++position_;
    items(out, level);
    limit_ = outer;
    position_ = close + 1;
  }

  /// The body of a loop or a branch of an if. Directives before it make it a block with them.
  [[nodiscard]] bool body(SyntaxNode& out) {
    if (position_ >= limit_) return false;
    const auto is_line = [&] {
      const TokenKind kind = tokens_.kind(position_);
      return kind == TokenKind::directive || kind == TokenKind::launch_comment || is_pragma_operator();
    };
    const std::size_t first = position_;
    if (!is_line()) return statement_with_trivia(out), true;
    SyntaxNode wrapped = begin_node(NodeKind::block);
    for (bool more = true; more;) {
      if (position_ >= limit_) return false;
      more = is_line();
      SyntaxNode node;
      statement_with_trivia(node);
      wrapped.children.push_back(std::move(node));
    }
    finish(wrapped, first);
    wrapped.origin.source = nullptr; // its text has no braces: only whole parents may print it as it stood
    out = std::move(wrapped);
    return true;
  }

  void statement_with_trivia(SyntaxNode& out) {
    std::string leading = trivia_before(position_, false, false).leading;
    statement(out, Level::function);
    out.leading_trivia = std::move(leading);
  }

  [[nodiscard]] bool control(SyntaxNode& out) {
    const std::string_view word = tokens_.text(position_);
    if (word == "for") return for_loop(out);
    if (word == "while") return while_loop(out);
    if (word == "do") return do_loop(out);
    if (word == "if") return if_statement(out);
    ++position_;
    if (word == "break" || word == "continue") {
      out.kind = word == "break" ? NodeKind::break_statement : NodeKind::continue_statement;
      return take(";");
    }
    out.kind = NodeKind::return_statement;
    if (take(";")) return true;
    SyntaxNode value;
    if (is("{") ? !initializer_list(value) : !expression(value, 1)) return false;
    out.children.push_back(std::move(value));
    return take(";");
  }

  /// The index of the `)` of the `(` at the cursor, which it passes; `none` if there is none.
  [[nodiscard]] std::size_t open_parenthesis() {
    if (!is("(")) return TokenBuffer::none;
    const std::size_t close = tokens_.closing(position_);
    ++position_;
    return close < limit_ ? close : TokenBuffer::none;
  }

  [[nodiscard]] bool for_loop(SyntaxNode& out) {
    ++position_;
    const std::size_t close = open_parenthesis();
    if (close == TokenBuffer::none) return false;
    out.kind = NodeKind::for_loop;
    out.children.resize(4);
    if (!is(";")) {
      const std::size_t first = position_;
      const bool declares = looks_like_declaration(first);
      if (declares ? !declaration(out.children[0]) : !expression(out.children[0], 1)) return false;
      if (declares) finish(out.children[0], first);
    }
    if (!take(";") || (!is(";") && !expression(out.children[1], 1)) || !take(";")) return false;
    if (position_ != close && !expression(out.children[2], 1)) return false;
    return header_closed(out, close) && body(out.children[3]);
  }

  [[nodiscard]] bool header_closed(SyntaxNode& out, std::size_t close) {
    if (position_ != close) return false;
    out.origin.header_end = tokens_.token(close).end;
    ++position_;
    return true;
  }

  [[nodiscard]] bool while_loop(SyntaxNode& out) {
    ++position_;
    const std::size_t close = open_parenthesis();
    out.kind = NodeKind::while_loop;
    out.children.resize(2);
    return close != TokenBuffer::none && expression(out.children[0], 1) && header_closed(out, close) &&
           body(out.children[1]);
  }

  [[nodiscard]] bool do_loop(SyntaxNode& out) {
    ++position_;
    out.kind = NodeKind::do_loop;
    out.children.resize(2);
    if (!body(out.children[0]) || !take("while")) return false;
    const std::size_t close = open_parenthesis();
    return close != TokenBuffer::none && expression(out.children[1], 1) && position_++ == close && take(";");
  }

  [[nodiscard]] bool if_statement(SyntaxNode& out) {
    ++position_;
    out.kind = NodeKind::if_statement;
    if (take("constexpr")) out.text = "constexpr";
    const std::size_t close = open_parenthesis();
    out.children.resize(2);
    if (close == TokenBuffer::none || !expression(out.children[0], 1) || !header_closed(out, close) ||
        !body(out.children[1]))
      return false;
    if (!take("else")) return true;
    out.children.emplace_back();
    return body(out.children[2]);
  }

  /// A declaration or an expression statement, with its semicolon.
  [[nodiscard]] bool simple(SyntaxNode& out) {
    const std::size_t first = position_;
    if (looks_like_declaration(first)) {
      if (declaration(out) && take(";")) return true;
      position_ = first;
      out = {};
    }
    const TypeScan type = type_end(first);
    if (type.certain && type.end != TokenBuffer::none && tokens_.is(type.end, "(") &&
        tokens_.is(type.end + 1, "*"))
      return false; // a declarator in parentheses, not a cast
    if (tokens_.is_plain_name(first) && tokens_.is(first + 1, ":")) {
      opaque(out, first + 2); // a label
      return true;
    }
    SyntaxNode value;
    if (!expression(value, 1)) return false;
    if (take(";")) {
      out.kind = NodeKind::expression_statement;
      out.children.push_back(std::move(value));
      return true;
    }
    const bool macro = (value.kind == NodeKind::call && value.children.front().kind == NodeKind::name) ||
                       value.kind == NodeKind::name;
    if (!macro || !tokens_.starts_line(position_)) return false;
    const std::size_t end = std::exchange(position_, first);
    opaque(out, end);
    return true;
  }

  /// A type, then perhaps pointers, then a name and something that may follow a declared name.
  [[nodiscard]] bool looks_like_declaration(std::size_t index) const {
    const TypeScan type = type_end(index);
    if (type.end == TokenBuffer::none) return false;
    const std::size_t name = pointer_end(type.end);
    if (name >= limit_ || !tokens_.is_plain_name(name)) return false;
    if (!type.certain && name > type.end && tokens_.is(type.end, "&&")) return false;
    const std::string_view next = tokens_.text(name + 1);
    return next == "=" || next == ";" || next == "," || next == "(" || next == "[" || next == "{" ||
           tokens_.word(name + 1) == Word::argued_qualifier;
  }

  /// A declaration without its semicolon.
  [[nodiscard]] bool declaration(SyntaxNode& out) {
    out.kind = NodeKind::declaration;
    const TypeScan type = type_end(position_);
    out.type = join_tokens(tokens_, position_, type.end);
    position_ = type.end;
    do {
      SyntaxNode node = begin_node(NodeKind::declarator);
      const std::size_t first = position_;
      position_ = pointer_end(position_);
      node.type = join_tokens(tokens_, first, position_);
      if (position_ >= limit_ || !tokens_.is_plain_name(position_)) return false;
      node.text = tokens_.text(position_++);
      if (!declarator_rest(node, true)) return false;
      finish(node, first);
      out.children.push_back(std::move(node));
    } while (take(","));
    return true;
  }

  /// What follows a declared name: extents, attributes, an initialiser.
  [[nodiscard]] bool declarator_rest(SyntaxNode& node, bool allow_parentheses) {
    while (is("[")) {
      const std::size_t first = position_;
      const std::size_t close = tokens_.closing(first);
      if (close == TokenBuffer::none || close >= limit_) return false;
      SyntaxNode extent = begin_node(NodeKind::extent);
      extent.children.resize(1);
      ++position_;
      if (position_ != close && (!expression(extent.children[0], 2) || position_ != close)) return false;
      ++position_;
      finish(extent, first);
      node.children.push_back(std::move(extent));
    }
    const std::size_t attributes = position_;
    while (position_ < limit_ && tokens_.word(position_) == Word::argued_qualifier)
      position_ = after_group(position_ + 1);
    if (position_ > attributes) node.suffix = join_tokens(tokens_, attributes, position_);
    const std::size_t first = position_;
    SyntaxNode start = begin_node(NodeKind::initializer);
    if (take("=")) {
      start.text = "=";
      SyntaxNode value;
      if (is("{") ? !initializer_list(value) : !expression(value, 2)) return false;
      start.children.push_back(std::move(value));
    } else if ((allow_parentheses && is("(")) || is("{")) {
      const std::size_t close = tokens_.closing(first);
      if (close == TokenBuffer::none || close >= limit_) return false;
      start.text = is("(") ? "()" : "{}";
      ++position_;
      if (!elements(start, close)) return false;
    } else {
      return true;
    }
    finish(start, first);
    node.children.push_back(std::move(start));
    return true;
  }

  /// `namespace a {` or `extern "C" {`
  [[nodiscard]] bool scope(SyntaxNode& out) {
    const std::size_t first = position_;
    std::size_t index = first + (is("inline") ? 1 : 0);
    if (tokens_.is(index, "namespace")) {
      do ++index;
      while (index < limit_ &&
             (tokens_.is_plain_name(index) || tokens_.is(index, "::") || tokens_.is(index, "inline")));
    } else if (is("extern") && tokens_.kind(first + 1) == TokenKind::string) {
      index = first + 2;
    } else {
      return false;
    }
    const std::size_t close = tokens_.closing(index);
    const Nesting nesting(*this);
    if (!tokens_.is(index, "{") || close == TokenBuffer::none || close >= limit_ || nesting.too_deep())
      return false;
    out.kind = NodeKind::scope;
    out.text = join_tokens(tokens_, first, index);
    out.origin.header_end = tokens_.token(index - 1).end;
    position_ = index;
    group(out, close, Level::file);
    return true;
  }

  /// The `(` of the parameter list of the function definition at `index`, or `none` if there is none.
  [[nodiscard]] std::size_t parameter_list(std::size_t index) const {
    constexpr std::size_t lookahead = 256; // bounded, so that a text full of macro calls stays linear
    for (std::size_t steps = 0; index < limit_ && steps < lookahead; ++steps) {
      const TokenKind kind = tokens_.kind(index);
      if (kind == TokenKind::directive || kind == TokenKind::launch_comment || kind == TokenKind::invalid ||
          tokens_.word(index) == Word::control)
        return TokenBuffer::none;
      if (kind != TokenKind::punctuator) {
        const bool may_have_arguments = tokens_.is(index + 1, "<");
        const std::size_t end = may_have_arguments ? template_arguments_end(index + 1) : TokenBuffer::none;
        index = end == TokenBuffer::none ? index + 1 : end;
        continue;
      }
      const std::string_view text = tokens_.text(index);
      if (text == "(" || text == "[") {
        const std::size_t close = tokens_.closing(index);
        if (close == TokenBuffer::none) return TokenBuffer::none;
        const bool named = text == "(" && index > position_ && tokens_.is_plain_name(index - 1);
        if (named && function_body_start(close + 1) != TokenBuffer::none) return index;
        index = close + 1;
      } else if (text == "*" || text == "&" || text == "::" || text == "&&") {
        ++index;
      } else {
        return TokenBuffer::none;
      }
    }
    return TokenBuffer::none;
  }

  /// The `{` of the body if what stands at `index` may follow a parameter list, else `none`.
  [[nodiscard]] std::size_t function_body_start(std::size_t index) const {
    const bool may_follow = tokens_.is(index, "{") || tokens_.is(index, "const") ||
                            tokens_.is(index, "noexcept") || tokens_.is(index, "->") ||
                            tokens_.is(index, "requires") || tokens_.word(index) == Word::argued_qualifier;
    if (!may_follow) return TokenBuffer::none;
    constexpr std::size_t lookahead = 64;
    for (std::size_t steps = 0; index < limit_ && !tokens_.is(index, "{"); ++steps) {
      const TokenKind kind = tokens_.kind(index);
      const bool allowed = kind == TokenKind::identifier || tokens_.is(index, "(") ||
                           tokens_.is(index, "->") || tokens_.is(index, "::") || tokens_.is(index, "<") ||
                           tokens_.is(index, ">") || tokens_.is(index, "*") || tokens_.is(index, "&") ||
                           tokens_.is(index, ",") || tokens_.is(index, "&&") || tokens_.is(index, "||");
      if (!allowed || steps == lookahead) return TokenBuffer::none;
      index = tokens_.is(index, "(") && after_group(index) != index ? after_group(index) : index + 1;
    }
    return index < limit_ && tokens_.closing(index) < limit_ ? index : TokenBuffer::none;
  }

  [[nodiscard]] bool function(SyntaxNode& out) {
    const std::size_t first = position_;
    const std::size_t open = parameter_list(first);
    if (open == TokenBuffer::none) return false;
    const std::size_t close = tokens_.closing(open);
    const std::size_t brace = function_body_start(close + 1);
    std::size_t name = open - 1;
    while (name >= first + 2 && tokens_.is(name - 1, "::") && tokens_.is_plain_name(name - 2)) name -= 2;
    out.kind = NodeKind::function;
    out.text = join_tokens(tokens_, name, open);
    out.type = join_tokens(tokens_, first, name, true);
    out.suffix = join_tokens(tokens_, close + 1, brace);
    out.origin.header_end = tokens_.token(brace - 1).end;
    position_ = open + 1;
    while (position_ < close) {
      out.children.push_back(parameter(close));
      if (position_ < close) ++position_; // the comma
    }
    position_ = brace;
    SyntaxNode body;
    (void)block(body);
    finish(body, brace);
    out.children.push_back(std::move(body));
    return true;
  }

  /// The parameter at the cursor; ends at its comma or at `close`.
  [[nodiscard]] SyntaxNode parameter(std::size_t close) {
    const std::size_t first = position_;
    const std::size_t outer = std::exchange(limit_, close);
    SyntaxNode node = begin_node(NodeKind::parameter);
    bool understood = false;
    if (const TypeScan type = type_end(first); type.end != TokenBuffer::none) {
      position_ = pointer_end(type.end);
      node.type = join_tokens(tokens_, first, position_);
      if (position_ < limit_ && tokens_.is_plain_name(position_)) node.text = tokens_.text(position_++);
      understood = declarator_rest(node, false) && (position_ == close || is(","));
    }
    if (!understood) {
      for (position_ = first; position_ < close && !is(",");) {
        const std::size_t arguments = is("<") ? template_arguments_end(position_) : TokenBuffer::none;
        const std::size_t end = arguments == TokenBuffer::none ? after_group(position_) : arguments;
        position_ = end == position_ ? position_ + 1 : end;
      }
      node = begin_node(NodeKind::parameter);
      node.type = position_ > first ? slice(first, position_) : std::string();
    }
    finish(node, first);
    limit_ = outer;
    return node;
  }

  /// Tokens that were read in vain so far. Past a multiple of the text, the rest is not tried any more: this
  /// bounds the work on hostile text.
  std::size_t wasted_ = 0;
};

} // namespace mtmc::detail
