#pragma once

#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/analysis/syntax/token_buffer.hpp>
#include <mtmc/analysis/syntax/type_scanner.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Expressions of the C family, by precedence climbing. The statement parser (parser.hpp) builds on it.

namespace mtmc::inline MTMC_ABI::detail {

/// How deeply statements and expressions may nest before the parser keeps the rest as opaque text. Written
/// code stays below 30; the limit keeps the parser, and every later recursion over the tree, far from the end
/// of the stack.
inline constexpr int max_nesting = 120;

/// The tallest expression tree: a sum of this many terms is still modelled.
inline constexpr int max_expression_height = 400;

/// Binding strength of a binary operator, higher binds tighter; 0 if `symbol` is none. 1 comma, 2 assignment,
/// 3 conditional.
[[nodiscard]] inline int binary_precedence(std::string_view symbol) noexcept {
  const auto is_one_of = [symbol](auto... options) { return ((symbol == options) || ...); };
  if (symbol.empty()) return 0;
  if (symbol.size() == 1) {
    switch (symbol[0]) {
    case ',':
      return 1;
    case '=':
      return 2;
    case '?':
      return 3;
    case '|':
      return 6;
    case '^':
      return 7;
    case '&':
      return 8;
    case '<':
    case '>':
      return 10;
    case '+':
    case '-':
      return 13;
    case '*':
    case '/':
    case '%':
      return 14;
    default:
      return 0;
    }
  }
  if (symbol == "||") return 4;
  if (symbol == "&&") return 5;
  if (is_one_of("==", "!=")) return 9;
  if (is_one_of("<=", ">=")) return 10;
  if (symbol == "<=>") return 11;
  if (is_one_of("<<", ">>")) return 12;
  if (is_one_of("+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")) return 2;
  return 0;
}

/// A cursor over the tokens with the rules for expressions. A rule that does not apply returns
/// false and leaves the cursor anywhere; the caller sets it back.
class ExpressionParser : protected TypeScanner {
public:
  ExpressionParser(const TokenBuffer& tokens, std::shared_ptr<const std::string> source)
      : TypeScanner(tokens), source_(std::move(source)) {}

  /// One expression from the cursor on, of operators at least as strong as `minimum` (1: with commas, 2:
  /// without).
  [[nodiscard]] bool expression(SyntaxNode& out, int minimum) {
    const Nesting nesting(*this);
    if (nesting.too_deep()) return false;
    const std::size_t first = position_;
    if (!unary(out)) return false;
    int height = height_;
    while (position_ < limit_ && tokens_.kind(position_) == TokenKind::punctuator) {
      const std::string_view symbol = tokens_.text(position_);
      const int precedence = binary_precedence(symbol);
      if (precedence == 0 || precedence < minimum) break;
      ++position_;
      SyntaxNode node = begin_node(precedence == 2   ? NodeKind::assignment
                                   : precedence == 3 ? NodeKind::conditional
                                                     : NodeKind::binary);
      node.children.reserve(precedence == 3 ? 3 : 2);
      node.children.push_back(std::move(out));
      SyntaxNode right;
      if (precedence == 3) {
        if (!expression(right, 1)) return false;
        height = std::max(height, height_);
        node.children.push_back(std::move(right));
        right = {};
        if (!take(":") || !expression(right, 2)) return false;
      } else {
        node.text = symbol;
        const bool list = precedence == 2 && tokens_.is(position_, "{");
        if (list ? !initializer_list(right) : !expression(right, precedence == 2 ? 2 : precedence + 1))
          return false;
      }
      height = std::max(height, height_) + 1;
      if (height > max_expression_height) return false;
      node.children.push_back(std::move(right));
      finish(node, first);
      out = std::move(node);
    }
    height_ = height;
    return true;
  }

  /// `{a, b}` from the cursor on; what is not a plain list (designators, say) becomes an opaque expression.
  [[nodiscard]] bool initializer_list(SyntaxNode& out) {
    const Nesting nesting(*this);
    const std::size_t first = position_;
    const std::size_t close = tokens_.closing(first);
    if (nesting.too_deep() || close == TokenBuffer::none || close >= limit_) return false;
    out = begin_node(NodeKind::initializer_list);
    ++position_;
    if (!elements(out, close)) {
      out = begin_node(NodeKind::opaque);
      position_ = close + 1;
      out.text = slice(first, position_);
      height_ = 1;
    }
    finish(out, first);
    return true;
  }

  /// An expression that ends where the tokens end.
  [[nodiscard]] bool whole_expression(SyntaxNode& out) {
    position_ = 0;
    return expression(out, 1) && position_ == limit_;
  }

protected:
  /// Counts how deep the recursion is.
  class Nesting {
  public:
    explicit Nesting(ExpressionParser& parser) : depth_(parser.depth_) { ++depth_; }
    ~Nesting() { --depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    [[nodiscard]] bool too_deep() const noexcept { return depth_ > max_nesting; }

  private:
    int& depth_;
  };

  [[nodiscard]] bool is(std::string_view expected) const {
    return position_ < limit_ && tokens_.is(position_, expected);
  }
  [[nodiscard]] bool take(std::string_view expected) {
    if (!is(expected)) return false;
    ++position_;
    return true;
  }

  /// The bytes of tokens [first, last) as written.
  [[nodiscard]] std::string slice(std::size_t first, std::size_t last) const {
    const std::size_t begin = tokens_.token(first).begin;
    return std::string(tokens_.source().substr(begin, tokens_.token(last - 1).end - begin));
  }

  [[nodiscard]] static SyntaxNode begin_node(NodeKind kind) {
    SyntaxNode node;
    node.kind = kind;
    return node;
  }

  /// Gives `node` the range from token `first` to the cursor.
  void finish(SyntaxNode& node, std::size_t first) const {
    if (position_ <= first) return;
    const Token& begin = tokens_.token(first);
    const Token& last = tokens_.token(position_ - 1);
    node.range = {begin.begin, last.end, begin.line, last.line, begin.column};
    if (last.kind == TokenKind::directive || last.kind == TokenKind::string ||
        last.kind == TokenKind::launch_comment) {
      for (const char c : last.text(tokens_.source())) node.range.last_line += c == '\n' ? 1 : 0;
    }
    node.origin.source = source_;
  }

  /// The expressions up to the closing bracket at `close`, each a child of `node`; ends after the bracket.
  [[nodiscard]] bool elements(SyntaxNode& node, std::size_t close) {
    int height = 0;
    while (position_ != close) {
      SyntaxNode element;
      if (is("{") ? !initializer_list(element) : !expression(element, 2)) return false;
      height = std::max(height, height_);
      node.children.push_back(std::move(element));
      if (position_ != close && !take(",")) return false;
    }
    ++position_;
    height_ = height + 1;
    return height_ <= max_expression_height;
  }

  std::shared_ptr<const std::string> source_;
  std::size_t position_ = 0;
  int depth_ = 0;
  int height_ = 0; ///< of the expression parsed last

private:
  [[nodiscard]] bool leaf(SyntaxNode& out, NodeKind kind, std::size_t end) {
    const std::size_t first = position_;
    out = begin_node(kind);
    out.text = end == first + 1 ? std::string(tokens_.text(first)) : join_tokens(tokens_, first, end);
    position_ = end;
    finish(out, first);
    height_ = 1;
    return true;
  }

  [[nodiscard]] bool unary(SyntaxNode& out) {
    const Nesting nesting(*this);
    if (nesting.too_deep() || position_ >= limit_) return false;
    const std::size_t first = position_;
    const std::string_view symbol = tokens_.text(first);
    if (tokens_.kind(first) == TokenKind::punctuator) {
      const auto is_one_of = [symbol](auto... options) { return ((symbol == options) || ...); };
      if (is_one_of("-", "+", "!", "~", "*", "&", "++", "--")) {
        ++position_;
        return wrap(out, begin_node(NodeKind::unary), symbol, first);
      }
      if (symbol == "(") {
        if (const std::size_t close = cast_end(first); close != TokenBuffer::none) {
          SyntaxNode node = begin_node(NodeKind::cast);
          node.type = join_tokens(tokens_, first + 1, close);
          position_ = close + 1;
          return wrap(out, std::move(node), "c_style", first);
        }
      }
    } else if (tokens_.word(first) == Word::size_operator && !tokens_.is(first + 1, "(")) {
      ++position_;
      return wrap(out, begin_node(NodeKind::unary), symbol, first);
    }
    return postfix(out);
  }

  /// A prefix node round the unary expression at the cursor.
  [[nodiscard]] bool wrap(SyntaxNode& out, SyntaxNode node, std::string_view text, std::size_t first) {
    SyntaxNode inner;
    if (!unary(inner)) return false;
    node.text = text;
    node.children.push_back(std::move(inner));
    finish(node, first);
    out = std::move(node);
    return ++height_ <= max_expression_height;
  }

  /// The `)` of a C-style cast whose `(` is at `open`, or `none` if this is no cast.
  [[nodiscard]] std::size_t cast_end(std::size_t open) const {
    const std::size_t close = tokens_.closing(open);
    if (close == TokenBuffer::none || close + 1 >= limit_) return TokenBuffer::none;
    const TypeScan type = type_end(open + 1);
    if (type.end == TokenBuffer::none) return TokenBuffer::none;
    const bool has_pointer = pointer_end(type.end) != type.end;
    if (pointer_end(type.end) != close) return TokenBuffer::none;
    const TokenKind next = tokens_.kind(close + 1);
    const bool operand_follows = next == TokenKind::number || next == TokenKind::string ||
                                 next == TokenKind::character ||
                                 (next == TokenKind::identifier && tokens_.word(close + 1) != Word::control);
    if (operand_follows) return close;
    const std::string_view text = tokens_.text(close + 1);
    const bool prefix_operator = text == "-" || text == "+" || text == "!" || text == "~" || text == "*" ||
                                 text == "&" || text == "++" || text == "--" || text == "(" || text == "{";
    if (!prefix_operator) return TokenBuffer::none;
    const std::string_view last = tokens_.text(type.end - 1);
    const bool looks_like_type = last.size() > 2 && last.substr(last.size() - 2) == "_t";
    return type.certain || has_pointer || looks_like_type ? close : TokenBuffer::none;
  }

  [[nodiscard]] bool postfix(SyntaxNode& out) {
    const std::size_t first = position_;
    if (!primary(out)) return false;
    int height = height_;
    while (position_ < limit_ && tokens_.kind(position_) == TokenKind::punctuator) {
      const std::string_view symbol = tokens_.text(position_);
      SyntaxNode node;
      if (symbol == "(" || symbol == "[") {
        const std::size_t close = tokens_.closing(position_);
        if (close == TokenBuffer::none || close >= limit_) return false;
        node = begin_node(symbol == "(" ? NodeKind::call : NodeKind::subscript);
        node.children.push_back(std::move(out));
        ++position_;
        if (symbol == "(") {
          if (!elements(node, close)) return false;
        } else {
          SyntaxNode index;
          if (!expression(index, 1) || position_ != close) return false;
          node.children.push_back(std::move(index));
          ++position_;
        }
      } else if (symbol == "." || symbol == "->") {
        std::size_t end = position_ + 1;
        if (!tokens_.is_plain_name(end) || end >= limit_) return false;
        bool has_arguments = false;
        end = qualified_name_end(end, true, has_arguments);
        if (end == TokenBuffer::none) return false;
        node = begin_node(NodeKind::member);
        node.text = symbol;
        node.text += join_tokens(tokens_, position_ + 1, end);
        node.children.push_back(std::move(out));
        position_ = end;
        height_ = 0;
      } else if (symbol == "++" || symbol == "--") {
        node = begin_node(NodeKind::postfix);
        node.text = symbol;
        node.children.push_back(std::move(out));
        ++position_;
        height_ = 0;
      } else {
        break;
      }
      height = std::max(height, height_) + 1;
      if (height > max_expression_height) return false;
      finish(node, first);
      out = std::move(node);
    }
    height_ = height;
    return true;
  }

  [[nodiscard]] bool primary(SyntaxNode& out) {
    if (position_ >= limit_) return false;
    switch (tokens_.kind(position_)) {
    case TokenKind::number:
    case TokenKind::character:
      return leaf(out, NodeKind::literal, position_ + 1);
    case TokenKind::string: {
      std::size_t end = position_ + 1;
      while (end < limit_ && tokens_.kind(end) == TokenKind::string) ++end;
      return leaf(out, NodeKind::literal, end);
    }
    case TokenKind::identifier:
      return primary_word(out);
    case TokenKind::punctuator:
      if (is("(")) return parenthesised(out);
      if (is("[")) return lambda(out);
      if (is("::")) return name(out);
      return false;
    default:
      return false;
    }
  }

  [[nodiscard]] bool parenthesised(SyntaxNode& out) {
    const std::size_t close = tokens_.closing(position_);
    if (close == TokenBuffer::none || close >= limit_) return false;
    ++position_;
    if (!expression(out, 1) || position_ != close) return false;
    ++position_;
    return true;
  }

  /// A lambda, kept as text: captures, whatever stands before its body, the body.
  [[nodiscard]] bool lambda(SyntaxNode& out) {
    const std::size_t captures = after_group(position_);
    if (captures == position_) return false;
    std::size_t index = captures;
    while (index < limit_ && !tokens_.is(index, "{")) {
      const bool may_precede_body = tokens_.kind(index) == TokenKind::identifier || tokens_.is(index, "(") ||
                                    tokens_.is(index, "->") || tokens_.is(index, "::") ||
                                    tokens_.is(index, "<") || tokens_.is(index, ">") ||
                                    tokens_.is(index, "*") || tokens_.is(index, "&");
      if (!may_precede_body || index > captures + 64) return false;
      index = tokens_.is(index, "(") ? after_group(index) + (after_group(index) == index ? 1 : 0) : index + 1;
    }
    const std::size_t end = after_group(index);
    if (end == index) return false;
    const std::size_t first = position_;
    out = begin_node(NodeKind::opaque);
    out.text = slice(first, end);
    position_ = end;
    finish(out, first);
    height_ = 1;
    return true;
  }

  [[nodiscard]] bool primary_word(SyntaxNode& out) {
    switch (tokens_.word(position_)) {
    case Word::constant:
      return leaf(out, NodeKind::literal, position_ + 1);
    case Word::named_cast:
      return named_cast(out);
    case Word::size_operator:
      return size_of(out);
    case Word::type:
      if (tokens_.is(position_ + 1, "::")) return name(out);
      if (tokens_.is(position_ + 1, "(")) return functional_cast(out);
      return tokens_.is(position_ + 1, "{") && typed_list(out, position_ + 1);
    case Word::plain:
    case Word::soft_qualifier:
      return name(out);
    default:
      return false;
    }
  }

  [[nodiscard]] bool name(SyntaxNode& out) {
    bool has_arguments = false;
    const std::size_t end = qualified_name_end(position_, true, has_arguments);
    if (end == TokenBuffer::none || end > limit_) return false;
    if (end < limit_ && tokens_.is(end, "{")) return typed_list(out, end);
    return leaf(out, NodeKind::name, end);
  }

  /// `float4{a, b}`: the type ends at `brace`.
  [[nodiscard]] bool typed_list(SyntaxNode& out, std::size_t brace) {
    const std::size_t first = position_;
    position_ = brace;
    if (!initializer_list(out)) return false;
    if (out.kind == NodeKind::opaque)
      out.text = slice(first, position_);
    else
      out.type = join_tokens(tokens_, first, brace);
    finish(out, first);
    return true;
  }

  /// `float(x)`
  [[nodiscard]] bool functional_cast(SyntaxNode& out) {
    const std::size_t first = position_;
    const std::size_t close = tokens_.closing(first + 1);
    if (close == TokenBuffer::none || close >= limit_) return false;
    out = begin_node(NodeKind::cast);
    out.type = tokens_.text(first);
    out.text = "functional";
    position_ = first + 2;
    if (!elements(out, close) || out.children.size() != 1) return false;
    finish(out, first);
    return true;
  }

  /// `static_cast<float>(x)`
  [[nodiscard]] bool named_cast(SyntaxNode& out) {
    const std::size_t first = position_;
    const std::size_t end =
        tokens_.is(first + 1, "<") ? template_arguments_end(first + 1) : TokenBuffer::none;
    if (end == TokenBuffer::none || end >= limit_ || !tokens_.is(end, "(")) return false;
    const std::size_t close = tokens_.closing(end);
    if (close == TokenBuffer::none || close >= limit_) return false;
    out = begin_node(NodeKind::cast);
    out.text = tokens_.text(first);
    out.type = join_tokens(tokens_, first + 2, end - 1);
    position_ = end + 1;
    if (!elements(out, close) || out.children.size() != 1) return false;
    finish(out, first);
    return true;
  }

  /// `sizeof(x)` or `sizeof(type)`: a call whose argument is an expression or the type's text as a name.
  [[nodiscard]] bool size_of(SyntaxNode& out) {
    const std::size_t first = position_;
    const std::size_t close = tokens_.closing(first + 1);
    if (close == TokenBuffer::none || close >= limit_) return false;
    SyntaxNode word;
    if (!leaf(word, NodeKind::name, first + 1)) return false;
    out = begin_node(NodeKind::call);
    out.children.push_back(std::move(word));
    position_ = first + 2;
    const TypeScan type = type_end(position_);
    SyntaxNode argument;
    if (type.end != TokenBuffer::none && pointer_end(type.end) == close) {
      if (!leaf(argument, NodeKind::name, close)) return false;
    } else if (!expression(argument, 1) || position_ != close) {
      return false;
    }
    out.children.push_back(std::move(argument));
    position_ = close + 1;
    finish(out, first);
    return ++height_ <= max_expression_height;
  }
};

} // namespace mtmc::detail
