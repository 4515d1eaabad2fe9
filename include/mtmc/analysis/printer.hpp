#pragma once

#include <mtmc/analysis/source_text.hpp>
#include <mtmc/analysis/syntax_fingerprint.hpp>
#include <mtmc/analysis/syntax_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Syntax tree to source text. What is as the parser read it prints as it stood, byte for byte; what was
/// changed or made prints in a clean style that follows the text round it (indentation, brace placement, line
/// ends).

namespace mtmc {

/// How new text is laid out where the tree itself gives no example.
struct PrintOptions {
  std::string indentation = "  "; ///< one level
  std::size_t line_length = 100;  ///< longer parameter lists are broken
};

namespace detail {

/// How tightly an expression binds, on the scale of C's operators: 1 comma ... 16 unary, 17 postfix, 18
/// primary.
[[nodiscard]] inline int binding_strength(const SyntaxNode& node) noexcept {
  switch (node.kind) {
  case NodeKind::binary: {
    const std::string_view symbol = node.text;
    if (symbol == ",") return 1;
    if (symbol == "||") return 4;
    if (symbol == "&&") return 5;
    if (symbol == "|") return 6;
    if (symbol == "^") return 7;
    if (symbol == "&") return 8;
    if (symbol == "==" || symbol == "!=") return 9;
    if (symbol == "<" || symbol == ">" || symbol == "<=" || symbol == ">=") return 10;
    if (symbol == "<=>") return 11;
    if (symbol == "<<" || symbol == ">>") return 12;
    return symbol == "+" || symbol == "-" ? 13 : 14;
  }
  case NodeKind::assignment:
    return 2;
  case NodeKind::conditional:
    return 3;
  case NodeKind::unary:
    return 16;
  case NodeKind::cast:
    return node.text == "c_style" ? 16 : 17;
  case NodeKind::literal:
    return !node.text.empty() && node.text.front() == '-' ? 16 : 18;
  case NodeKind::postfix:
  case NodeKind::call:
  case NodeKind::subscript:
  case NodeKind::member:
    return 17;
  case NodeKind::opaque: {
    // Its structure is unknown: safe without parentheses only if it is one word or one bracketed group (a
    // lambda, say).
    const std::string& text = node.text;
    const bool word = std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
             c == ':' || c == '.';
    });
    const bool group = !text.empty() && ((text.front() == '[' && text.back() == '}') || text.back() == '}');
    return word || group ? 18 : 0;
  }
  default:
    return 18;
  }
}

/// True where C needs no parentheses but readers (and -Wparentheses) do: `a && b` inside `||`, arithmetic
/// inside shifts, anything inside bit operations.
[[nodiscard]] inline bool clearer_in_parentheses(const SyntaxNode& parent, const SyntaxNode& child) noexcept {
  if (parent.kind != NodeKind::binary || child.kind != NodeKind::binary) return false;
  const int outer = binding_strength(parent);
  const int inner = binding_strength(child);
  if (outer == 4) return inner == 5;
  if (outer >= 6 && outer <= 8) return inner != outer;
  return outer == 12 && inner == 13;
}

/// Prints one tree.
class Printer {
public:
  explicit Printer(PrintOptions options)
      : unit_(std::move(options.indentation)), line_length_(options.line_length) {}

  [[nodiscard]] std::string run(const SyntaxNode& node) {
    find_changes(node);
    learn_style(node);
    if (node.kind == NodeKind::translation_unit) {
      if (stands(node)) return std::string(slice(node, node.range.begin, node.range.end));
      items(node.children, "");
      return std::move(out_);
    }
    if (is_expression(node.kind))
      expression(node, 0, "");
    else
      statement_text(node, "");
    return std::move(out_);
  }

private:
  // --- What stood where

  /// Notes every parsed node that no longer is what the parser read.
  void find_changes(const SyntaxNode& root) {
    (void)fingerprint_tree(root, [this](const SyntaxNode& node, const Fingerprints& now) {
      if (node.origin.source == nullptr || now.whole == node.origin.fingerprint) return;
      changed_.push_back(&node);
      if (node.origin.header_end > 0 && now.header == node.origin.header_fingerprint)
        same_header_.push_back(&node);
    });
    std::ranges::sort(changed_, std::less<>{});
    std::ranges::sort(same_header_, std::less<>{});
  }

  /// True if the node is as the parser read it.
  [[nodiscard]] bool stands(const SyntaxNode& node) const {
    return node.origin.source != nullptr && !std::ranges::binary_search(changed_, &node, std::less<>{});
  }
  [[nodiscard]] bool header_stands(const SyntaxNode& node) const {
    return std::ranges::binary_search(same_header_, &node, std::less<>{});
  }

  [[nodiscard]] static std::string_view slice(const SyntaxNode& node, std::size_t begin, std::size_t end) {
    return std::string_view(*node.origin.source).substr(begin, end - begin);
  }

  /// The blanks at the start of the line the node stood on.
  [[nodiscard]] static std::string_view indentation_of(const SyntaxNode& node) {
    return line_indentation(*node.origin.source, node.range.begin, node.range.first_column);
  }

  /// Part of the node's source, moved to the indentation `indent`.
  [[nodiscard]] static std::string moved(const SyntaxNode& node, std::size_t begin, std::size_t end,
                                         std::string_view indent) {
    const std::string_view text = slice(node, begin, end);
    return text.find('\n') == std::string_view::npos ? std::string(text)
                                                     : reindent(text, indentation_of(node), indent);
  }

  /// Takes indentation unit, brace placement and line ends from the text of the first parsed node: from its
  /// first line that ends with an opening brace and has an indented line after it.
  void learn_style(const SyntaxNode& root) {
    const SyntaxNode* const parsed = first_parsed(root);
    if (parsed == nullptr) return;
    const std::string_view source = *parsed->origin.source;
    const std::size_t newline = source.find('\n');
    newline_ =
        newline != std::string_view::npos && newline > 0 && source[newline - 1] == '\r' ? "\r\n" : "\n";
    const auto indentation = [](std::string_view line) {
      return line.substr(0, line.find_first_not_of(" \t"));
    };
    std::string_view opening; // the last line with text, if it ends with a brace
    for (std::size_t begin = 0; begin < source.size();) {
      const std::size_t end = std::min(source.find('\n', begin), source.size());
      const std::string_view line = trim_right(source.substr(begin, end - begin));
      begin = end + 1;
      if (line.empty() || line.front() == '#') continue;
      const std::string_view outer = indentation(opening);
      const std::string_view inner = indentation(line);
      if (!opening.empty() && inner.size() > outer.size() && inner.substr(0, outer.size()) == outer) {
        unit_ = inner.substr(outer.size());
        brace_on_own_line_ = trim(opening) == "{";
        return;
      }
      opening = line.back() == '{' ? line : std::string_view{};
    }
  }

  [[nodiscard]] static const SyntaxNode* first_parsed(const SyntaxNode& node) {
    if (node.origin.source != nullptr) return &node;
    for (const SyntaxNode& child : node.children)
      if (const SyntaxNode* const found = first_parsed(child); found != nullptr) return found;
    return nullptr;
  }

  // --- Lines

  void end_line() { out_ += newline_; }

  /// Whole lines of text without indentation, put at `indent`.
  void lines(std::string_view text, std::string_view indent) {
    while (!text.empty()) {
      const std::size_t newline = text.find('\n');
      const std::string_view line = text.substr(0, newline);
      if (!line.empty()) {
        out_ += indent;
        out_ += line;
      }
      end_line();
      text = newline == std::string_view::npos ? std::string_view{} : text.substr(newline + 1);
    }
  }

  /// Items or statements, each on lines of its own.
  void items(const std::vector<SyntaxNode>& list, const std::string& indent) {
    const SyntaxNode* before = nullptr;
    for (const SyntaxNode& node : list) {
      const bool apart = before != nullptr && node.origin.source == nullptr &&
                         node.kind != NodeKind::comment && !before_is_attached(*before) &&
                         (node.kind == NodeKind::function || before->kind == NodeKind::function) &&
                         node.leading_trivia.substr(0, 1) != "\n";
      if (apart) end_line();
      statement(node, indent);
      before = &node;
    }
  }

  /// True for lines that belong to the function after them.
  [[nodiscard]] static bool before_is_attached(const SyntaxNode& node) {
    return node.kind == NodeKind::pragma || node.kind == NodeKind::comment ||
           node.kind == NodeKind::launch_comment;
  }

  /// One statement with its comments, whole lines.
  void statement(const SyntaxNode& node, const std::string& indent) {
    lines(node.leading_trivia, indent);
    const bool parsed = node.origin.source != nullptr;
    const bool at_left_edge =
        (node.kind == NodeKind::preprocessor && (!parsed || indentation_of(node).empty())) ||
        (node.kind == NodeKind::pragma && parsed && indentation_of(node).empty());
    if (!at_left_edge) out_ += indent;
    statement_text(node, indent);
    if (!node.trailing_trivia.empty()) side_comment(node, node.range.end, node.trailing_trivia);
    end_line();
  }

  /// A comment that goes on the line; if it stood after `offset` in the source, as far away as it did.
  void side_comment(const SyntaxNode& node, std::size_t offset, std::string_view comment) {
    std::string_view blanks = " ";
    if (node.origin.source != nullptr) {
      const std::string_view rest = std::string_view(*node.origin.source).substr(offset);
      const std::size_t begin = rest.find_first_not_of(" \t");
      if (begin != std::string_view::npos && rest.substr(begin, comment.size()) == comment)
        blanks = rest.substr(0, begin);
    }
    out_ += blanks;
    out_ += comment;
  }

  /// The body of a loop, a branch or a function, after its header. Returns true if it ended with a closing
  /// brace.
  bool body(const SyntaxNode& node, const SyntaxNode& owner, const std::string& indent) {
    if (node.kind == NodeKind::block) {
      const bool commented = node.leading_trivia.find('/') != std::string::npos;
      if (header_stands(owner) && follows_header(node, owner)) {
        out_ += moved(owner, owner.origin.header_end, node.range.begin, indent);
      } else if (commented || opens_on_own_line(node, owner)) {
        end_line();
        if (commented) lines(node.leading_trivia, indent);
        out_ += indent;
      } else {
        out_ += ' ';
      }
      block(node, indent);
      return true;
    }
    if (node.kind == NodeKind::empty) {
      out_ += ';';
      return false;
    }
    end_line();
    statement(node, indent + unit_);
    out_.erase(out_.size() - newline_.size());
    return false;
  }

  /// True if the block stood right behind its owner's header, perhaps with comments between.
  [[nodiscard]] static bool follows_header(const SyntaxNode& block, const SyntaxNode& owner) {
    if (block.origin.source == nullptr || block.origin.source != owner.origin.source) return false;
    if (owner.origin.header_end == 0 || owner.origin.header_end > block.range.begin) return false;
    const std::string_view gap = slice(owner, owner.origin.header_end, block.range.begin);
    const std::size_t text = gap.find_first_not_of(" \t\r\n");
    return text == std::string_view::npos ||
           (gap[text] == '/' && gap.find_first_of(";{}") == std::string_view::npos);
  }

  /// Where a block's brace goes: where it stood after its owner's header, else as elsewhere in the tree.
  [[nodiscard]] bool opens_on_own_line(const SyntaxNode& block, const SyntaxNode& owner) const {
    if (!follows_header(block, owner)) return brace_on_own_line_;
    return slice(owner, owner.origin.header_end, block.range.begin).find('\n') != std::string_view::npos;
  }

  void block(const SyntaxNode& node, const std::string& indent) {
    if (stands(node)) {
      out_ += moved(node, node.range.begin, node.range.end, indent);
      return;
    }
    out_ += '{';
    if (node.children.empty() && node.text.empty()) {
      out_ += '}';
      return;
    }
    if (!node.text.empty()) side_comment(node, node.range.begin + 1, node.text);
    end_line();
    items(node.children, indent + unit_);
    close_brace(node, indent);
  }

  /// The closing brace on a line of its own, after a blank line if there was one.
  void close_brace(const SyntaxNode& node, const std::string& indent) {
    if (node.origin.source != nullptr) {
      const std::string_view inside = slice(node, node.range.begin, node.range.end - 1);
      const std::string_view gap = inside.substr(trim_right(inside).size());
      if (std::ranges::count(gap, '\n') > 1) end_line();
    }
    out_ += indent;
    out_ += '}';
  }

  // --- Statements

  /// A statement or item from its first token to its last; the cursor stands at `indent` already.
  void statement_text(const SyntaxNode& node, const std::string& indent) {
    if (stands(node)) {
      out_ += moved(node, node.range.begin, node.range.end, indent);
      const bool lacks_semicolon = (node.kind == NodeKind::declaration && out_.back() != ';');
      if (lacks_semicolon) out_ += ';';
      return;
    }
    switch (node.kind) {
    case NodeKind::translation_unit:
      items(node.children, indent);
      break;
    case NodeKind::scope:
      scope(node, indent);
      break;
    case NodeKind::function:
      function(node, indent);
      break;
    case NodeKind::block:
      block(node, indent);
      break;
    case NodeKind::declaration:
      declaration(node, indent);
      out_ += ';';
      break;
    case NodeKind::expression_statement:
      if (!node.children.empty()) expression(node.children[0], 0, indent);
      out_ += ';';
      break;
    case NodeKind::for_loop:
      for_loop(node, indent);
      break;
    case NodeKind::while_loop:
      while_loop(node, indent);
      break;
    case NodeKind::do_loop:
      do_loop(node, indent);
      break;
    case NodeKind::if_statement:
      if_statement(node, indent);
      break;
    case NodeKind::return_statement:
      out_ += "return";
      if (!node.children.empty()) {
        out_ += ' ';
        expression(node.children[0], 0, indent);
      }
      out_ += ';';
      break;
    case NodeKind::break_statement:
      out_ += "break;";
      break;
    case NodeKind::continue_statement:
      out_ += "continue;";
      break;
    case NodeKind::pragma:
      out_ += "#pragma ";
      out_ += node.text;
      break;
    case NodeKind::empty:
      out_ += ';';
      break;
    case NodeKind::comment:
      out_ += reindent(node.text, "", indent);
      break;
    case NodeKind::preprocessor:
    case NodeKind::launch_comment:
      out_ += node.text;
      break;
    case NodeKind::opaque:
      out_ += reindent(node.text, "", indent);
      break;
    case NodeKind::parameter:
      parameter(node, indent);
      break;
    case NodeKind::declarator:
      declarator(node, indent);
      break;
    case NodeKind::extent:
    case NodeKind::initializer:
      declarator_part(node, indent);
      break;
    default: // an expression where a statement should be
      expression(node, 0, indent);
      out_ += ';';
    }
  }

  void scope(const SyntaxNode& node, const std::string& indent) {
    out_ += node.text;
    out_ += " {";
    if (!node.suffix.empty()) {
      out_ += ' ';
      out_ += node.suffix;
    }
    end_line();
    std::string inner = indent;
    for (const SyntaxNode& child : node.children) {
      if (child.origin.source == nullptr || node.origin.source == nullptr) continue;
      const std::string_view outer = indentation_of(node);
      const std::string_view stood = indentation_of(child);
      if (stood.size() > outer.size() && child.kind != NodeKind::preprocessor)
        inner += stood.substr(outer.size());
      break;
    }
    items(node.children, inner);
    close_brace(node, indent);
  }

  /// The part before the body as it stood, if it is unchanged.
  [[nodiscard]] bool header_as_it_stood(const SyntaxNode& node, std::string_view indent) {
    if (!header_stands(node)) return false;
    out_ += moved(node, node.range.begin, node.origin.header_end, indent);
    return true;
  }

  void function(const SyntaxNode& node, const std::string& indent) {
    if (!header_as_it_stood(node, indent)) {
      const std::size_t line = out_.size();
      out_ += reindent(node.type, "", indent);
      if (!node.type.empty() && node.type.back() != ':') out_ += ' ';
      out_ += node.text;
      out_ += '(';
      const std::size_t line_begin = std::max(line, out_.rfind('\n') + 1);
      parameter_list(node, indent, out_.size() - line_begin + (line_begin == line ? indent.size() : 0));
      out_ += ')';
      if (!node.suffix.empty()) {
        out_ += ' ';
        out_ += node.suffix;
      }
    }
    if (!node.children.empty()) body(node.children.back(), node, indent);
  }

  /// Parameters, broken before the line gets too long and then aligned at `column`.
  void parameter_list(const SyntaxNode& node, const std::string& indent, std::size_t column) {
    std::size_t used = column;
    for (std::size_t i = 0; i + 1 < node.children.size(); ++i) {
      const std::string text = captured([&] { parameter(node.children[i], indent); });
      const bool too_long = used + text.size() + 3 > line_length_;
      if (i > 0) {
        out_ += ',';
        if (too_long) {
          end_line();
          out_.append(column, ' ');
          used = column;
        } else {
          out_ += ' ';
          ++used;
        }
      }
      out_ += text;
      used += text.size() + 1;
    }
  }

  template <class Action> [[nodiscard]] std::string captured(const Action& action) {
    std::string outer;
    outer.swap(out_);
    action();
    outer.swap(out_);
    return outer;
  }

  void parameter(const SyntaxNode& node, const std::string& indent) {
    if (stands(node)) {
      out_ += moved(node, node.range.begin, node.range.end, indent);
      return;
    }
    out_ += node.type;
    if (!node.text.empty() && !node.type.empty()) out_ += ' ';
    out_ += node.text;
    declarator_parts(node, indent);
  }

  /// A declaration without its semicolon.
  void declaration(const SyntaxNode& node, const std::string& indent) {
    if (stands(node)) {
      std::string text = moved(node, node.range.begin, node.range.end, indent);
      while (!text.empty() && (text.back() == ';' || text.back() == ' ')) text.pop_back();
      out_ += text;
      return;
    }
    out_ += node.type;
    const bool single = node.children.size() == 1;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const SyntaxNode& child = node.children[i];
      if (i > 0) out_ += ',';
      if (!single || child.type.empty()) out_ += ' ';
      if (stands(child) && (!single || child.type.empty()))
        out_ += moved(child, child.range.begin, child.range.end, indent);
      else
        declarator(child, indent, single);
    }
  }

  /// A declarator; a single one keeps its `*` with the type (`float* p`), else with the name (`float *p,
  /// *q`).
  void declarator(const SyntaxNode& node, const std::string& indent, bool single = false) {
    out_ += node.type;
    const char last = node.type.empty() ? ' ' : node.type.back();
    const bool ends_with_symbol = last == '*' || last == '&';
    if (!node.type.empty() && (single || !ends_with_symbol)) out_ += ' ';
    out_ += node.text;
    declarator_parts(node, indent);
  }

  void declarator_parts(const SyntaxNode& node, const std::string& indent) {
    bool suffix_printed = node.suffix.empty();
    const auto print_suffix = [&] {
      if (!suffix_printed) out_ += ' ' + node.suffix;
      suffix_printed = true;
    };
    for (const SyntaxNode& child : node.children) {
      if (child.kind != NodeKind::extent) print_suffix();
      declarator_part(child, indent);
    }
    print_suffix();
  }

  /// `[size]`, ` = value`, `(value)` or `{value}`.
  void declarator_part(const SyntaxNode& node, const std::string& indent) {
    if (node.kind == NodeKind::extent) {
      out_ += '[';
      if (!node.children.empty() && node.children[0].kind != NodeKind::empty)
        expression(node.children[0], 2, indent);
      out_ += ']';
    } else if (node.text == "=") {
      out_ += " = ";
      if (!node.children.empty()) expression(node.children[0], 2, indent);
    } else {
      out_ += node.text == "{}" ? '{' : '(';
      list(node.children, 0, indent);
      out_ += node.text == "{}" ? '}' : ')';
    }
  }

  void for_loop(const SyntaxNode& node, const std::string& indent) {
    if (!header_as_it_stood(node, indent)) {
      out_ += "for (";
      if (node.children[0].kind == NodeKind::declaration)
        declaration(node.children[0], indent);
      else
        expression(node.children[0], 0, indent);
      out_ += ';';
      if (node.children[1].kind != NodeKind::empty) out_ += ' ';
      expression(node.children[1], 0, indent);
      out_ += ';';
      if (node.children[2].kind != NodeKind::empty) out_ += ' ';
      expression(node.children[2], 0, indent);
      out_ += ')';
    }
    body(node.children[3], node, indent);
  }

  void while_loop(const SyntaxNode& node, const std::string& indent) {
    if (!header_as_it_stood(node, indent)) {
      out_ += "while (";
      expression(node.children[0], 0, indent);
      out_ += ')';
    }
    body(node.children[1], node, indent);
  }

  void do_loop(const SyntaxNode& node, const std::string& indent) {
    out_ += "do";
    if (body(node.children[0], node, indent) && !brace_on_own_line_) {
      out_ += ' ';
    } else {
      end_line();
      out_ += indent;
    }
    out_ += "while (";
    expression(node.children[1], 0, indent);
    out_ += ");";
  }

  void if_statement(const SyntaxNode& node, const std::string& indent) {
    if (!header_as_it_stood(node, indent)) {
      out_ += node.text.empty() ? "if (" : "if " + node.text + " (";
      expression(node.children[0], 0, indent);
      out_ += ')';
    }
    const bool has_else = node.children.size() > 2;
    const SyntaxNode& then_statement = node.children[1];
    bool closed_brace = false;
    if (has_else && then_statement.kind != NodeKind::block && ends_with_open_if(then_statement)) {
      // Without braces the else would go to the inner if.
      out_ += " {";
      end_line();
      statement(then_statement, indent + unit_);
      out_ += indent;
      out_ += '}';
      closed_brace = true;
    } else {
      closed_brace = body(then_statement, node, indent);
    }
    if (!has_else) return;
    if (closed_brace && !brace_on_own_line_ && then_statement.trailing_trivia.empty()) {
      out_ += ' ';
    } else {
      end_line();
      out_ += indent;
    }
    out_ += "else";
    const SyntaxNode& else_statement = node.children[2];
    if (else_statement.kind == NodeKind::if_statement && else_statement.leading_trivia.empty()) {
      out_ += ' ';
      statement_text(else_statement, indent);
    } else {
      body(else_statement, node, indent);
    }
  }

  /// True if a following `else` would belong to an if inside the statement.
  [[nodiscard]] static bool ends_with_open_if(const SyntaxNode& node) {
    if (node.kind == NodeKind::if_statement)
      return node.children.size() < 3 || ends_with_open_if(node.children[2]);
    if (node.kind == NodeKind::for_loop || node.kind == NodeKind::while_loop)
      return ends_with_open_if(node.children.back());
    return node.kind == NodeKind::opaque;
  }

  // --- Expressions

  /// An expression, in parentheses if it binds less tightly than `minimum`.
  void expression(const SyntaxNode& node, int minimum, std::string_view indent, bool parentheses = false) {
    if (node.kind == NodeKind::empty) return;
    parentheses = parentheses || binding_strength(node) < minimum;
    if (parentheses) out_ += '(';
    if (stands(node))
      out_ += moved(node, node.range.begin, node.range.end, indent);
    else
      canonical_expression(node, indent);
    if (parentheses) out_ += ')';
  }

  void list(const std::vector<SyntaxNode>& nodes, std::size_t first, std::string_view indent) {
    for (std::size_t i = first; i < nodes.size(); ++i) {
      if (i > first) out_ += ", ";
      expression(nodes[i], 2, indent);
    }
  }

  void canonical_expression(const SyntaxNode& node, std::string_view indent) {
    const std::vector<SyntaxNode>& parts = node.children;
    switch (node.kind) {
    case NodeKind::unary:
      unary(node, indent);
      break;
    case NodeKind::postfix:
    case NodeKind::member:
      expression(parts[0], 17, indent);
      out_ += node.text;
      break;
    case NodeKind::binary: {
      const int strength = binding_strength(node);
      expression(parts[0], strength, indent, clearer_in_parentheses(node, parts[0]));
      if (node.text != ",") out_ += ' ';
      out_ += node.text;
      out_ += ' ';
      expression(parts[1], strength + 1, indent, clearer_in_parentheses(node, parts[1]));
      break;
    }
    case NodeKind::assignment:
      expression(parts[0], 16, indent);
      out_ += ' ';
      out_ += node.text;
      out_ += ' ';
      expression(parts[1], 2, indent);
      break;
    case NodeKind::conditional:
      expression(parts[0], 4, indent);
      out_ += " ? ";
      expression(parts[1], 2, indent);
      out_ += " : ";
      expression(parts[2], 3, indent);
      break;
    case NodeKind::call:
      expression(parts[0], 17, indent);
      out_ += '(';
      list(parts, 1, indent);
      out_ += ')';
      break;
    case NodeKind::subscript:
      expression(parts[0], 17, indent);
      out_ += '[';
      expression(parts[1], 1, indent);
      out_ += ']';
      break;
    case NodeKind::cast:
      if (node.text == "c_style") {
        out_ += '(' + node.type + ')';
        expression(parts[0], 16, indent);
        break;
      }
      if (node.text != "functional")
        out_ += node.text + '<' + node.type + '>';
      else
        out_ += node.type;
      out_ += '(';
      expression(parts[0], 2, indent);
      out_ += ')';
      break;
    case NodeKind::initializer_list:
      out_ += node.type;
      out_ += '{';
      list(parts, 0, indent);
      out_ += '}';
      break;
    default:
      out_ += node.text;
    }
  }

  void unary(const SyntaxNode& node, std::string_view indent) {
    out_ += node.text;
    const char symbol = node.text.empty() ? ' ' : node.text.back();
    const bool word = (symbol >= 'a' && symbol <= 'z') || symbol == '_';
    if (word) out_ += ' ';
    const std::string inner = captured([&] { expression(node.children[0], 16, indent); });
    const bool would_merge =
        !inner.empty() && inner.front() == symbol && (symbol == '-' || symbol == '+' || symbol == '&');
    out_ += would_merge ? '(' + inner + ')' : inner;
  }

  std::string out_;
  std::string unit_;
  std::string newline_ = "\n";
  std::size_t line_length_;
  bool brace_on_own_line_ = false;
  std::vector<const SyntaxNode*> changed_;     ///< parsed nodes that changed, sorted
  std::vector<const SyntaxNode*> same_header_; ///< those of them whose part before the body did not, sorted
};

} // namespace detail

/// The source text of a tree. For a `translation_unit` that was not changed since it was parsed, the parsed
/// text byte for byte. Otherwise unchanged parts stand as they stood (comments included), at the indentation
/// of where they now are, and the rest is laid out in the style of the text round it. Any other node prints
/// from its first token to its last, at no indentation, without the comments before and after it.
[[nodiscard]] inline std::string print(const SyntaxNode& node, const PrintOptions& options = {}) {
  return detail::Printer(options).run(node);
}

} // namespace mtmc
