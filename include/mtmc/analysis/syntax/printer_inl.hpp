#pragma once
/// Definitions of analysis/syntax/printer.hpp.

#include <mtmc/analysis/syntax/expression_printer.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/source_style.hpp>
#include <mtmc/analysis/syntax/source_text.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE Printer::Printer(PrintOptions options) : line_length_(options.line_length) {
  style_.indentation = std::move(options.indentation);
}

MTMC_INLINE std::string Printer::run(const SyntaxNode& node) {
  find_changes(node);
  if (const SyntaxNode* const parsed = first_parsed(node); parsed != nullptr)
    style_ = style_of(*parsed->origin.source, std::move(style_));
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

MTMC_INLINE void Printer::lines(std::string_view text, std::string_view indent) {
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

MTMC_INLINE void Printer::items(const std::vector<SyntaxNode>& list, const std::string& indent) {
  const SyntaxNode* before = nullptr;
  for (const SyntaxNode& node : list) {
    const bool apart = before != nullptr && node.origin.source == nullptr && node.kind != NodeKind::comment &&
                       !before_is_attached(*before) &&
                       (node.kind == NodeKind::function || before->kind == NodeKind::function) &&
                       node.leading_trivia.substr(0, 1) != "\n";
    if (apart) end_line();
    statement(node, indent);
    before = &node;
  }
}

MTMC_INLINE bool Printer::before_is_attached(const SyntaxNode& node) {
  return node.kind == NodeKind::pragma || node.kind == NodeKind::comment ||
         node.kind == NodeKind::launch_comment;
}

MTMC_INLINE void Printer::statement(const SyntaxNode& node, const std::string& indent) {
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

MTMC_INLINE void Printer::side_comment(const SyntaxNode& node, std::size_t offset, std::string_view comment) {
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

MTMC_INLINE bool Printer::body(const SyntaxNode& node, const SyntaxNode& owner, const std::string& indent) {
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
  statement(node, indent + style_.indentation);
  out_.erase(out_.size() - style_.newline.size());
  return false;
}

MTMC_INLINE bool Printer::follows_header(const SyntaxNode& block, const SyntaxNode& owner) {
  if (block.origin.source == nullptr || block.origin.source != owner.origin.source) return false;
  if (owner.origin.header_end == 0 || owner.origin.header_end > block.range.begin) return false;
  const std::string_view gap = slice(owner, owner.origin.header_end, block.range.begin);
  const std::size_t text = gap.find_first_not_of(" \t\r\n");
  return text == std::string_view::npos ||
         (gap[text] == '/' && gap.find_first_of(";{}") == std::string_view::npos);
}

MTMC_INLINE bool Printer::opens_on_own_line(const SyntaxNode& block, const SyntaxNode& owner) const {
  if (!follows_header(block, owner)) return style_.brace_on_own_line;
  return slice(owner, owner.origin.header_end, block.range.begin).find('\n') != std::string_view::npos;
}

MTMC_INLINE void Printer::block(const SyntaxNode& node, const std::string& indent) {
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
  items(node.children, indent + style_.indentation);
  close_brace(node, indent);
}

MTMC_INLINE void Printer::close_brace(const SyntaxNode& node, const std::string& indent) {
  if (node.origin.source != nullptr) {
    const std::string_view inside = slice(node, node.range.begin, node.range.end - 1);
    const std::string_view gap = inside.substr(trim_right(inside).size());
    if (std::ranges::count(gap, '\n') > 1) end_line();
  }
  out_ += indent;
  out_ += '}';
}

MTMC_INLINE void Printer::statement_text(const SyntaxNode& node, const std::string& indent) {
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

MTMC_INLINE void Printer::scope(const SyntaxNode& node, const std::string& indent) {
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

MTMC_INLINE bool Printer::header_as_it_stood(const SyntaxNode& node, std::string_view indent) {
  if (!header_stands(node)) return false;
  out_ += moved(node, node.range.begin, node.origin.header_end, indent);
  return true;
}

MTMC_INLINE void Printer::function(const SyntaxNode& node, const std::string& indent) {
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

MTMC_INLINE void Printer::parameter_list(const SyntaxNode& node, const std::string& indent,
                                         std::size_t column) {
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

MTMC_INLINE void Printer::parameter(const SyntaxNode& node, const std::string& indent) {
  if (stands(node)) {
    out_ += moved(node, node.range.begin, node.range.end, indent);
    return;
  }
  out_ += node.type;
  if (!node.text.empty() && !node.type.empty()) out_ += ' ';
  out_ += node.text;
  declarator_parts(node, indent);
}

MTMC_INLINE void Printer::declaration(const SyntaxNode& node, const std::string& indent) {
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

MTMC_INLINE void Printer::declarator(const SyntaxNode& node, const std::string& indent, bool single) {
  out_ += node.type;
  const char last = node.type.empty() ? ' ' : node.type.back();
  const bool ends_with_symbol = last == '*' || last == '&';
  if (!node.type.empty() && (single || !ends_with_symbol)) out_ += ' ';
  out_ += node.text;
  declarator_parts(node, indent);
}

MTMC_INLINE void Printer::declarator_parts(const SyntaxNode& node, const std::string& indent) {
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

MTMC_INLINE void Printer::declarator_part(const SyntaxNode& node, const std::string& indent) {
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

MTMC_INLINE void Printer::for_loop(const SyntaxNode& node, const std::string& indent) {
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

MTMC_INLINE void Printer::while_loop(const SyntaxNode& node, const std::string& indent) {
  if (!header_as_it_stood(node, indent)) {
    out_ += "while (";
    expression(node.children[0], 0, indent);
    out_ += ')';
  }
  body(node.children[1], node, indent);
}

MTMC_INLINE void Printer::do_loop(const SyntaxNode& node, const std::string& indent) {
  out_ += "do";
  if (body(node.children[0], node, indent) && !style_.brace_on_own_line) {
    out_ += ' ';
  } else {
    end_line();
    out_ += indent;
  }
  out_ += "while (";
  expression(node.children[1], 0, indent);
  out_ += ");";
}

MTMC_INLINE void Printer::if_statement(const SyntaxNode& node, const std::string& indent) {
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
    statement(then_statement, indent + style_.indentation);
    out_ += indent;
    out_ += '}';
    closed_brace = true;
  } else {
    closed_brace = body(then_statement, node, indent);
  }
  if (!has_else) return;
  if (closed_brace && !style_.brace_on_own_line && then_statement.trailing_trivia.empty()) {
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

MTMC_INLINE bool Printer::ends_with_open_if(const SyntaxNode& node) {
  if (node.kind == NodeKind::if_statement)
    return node.children.size() < 3 || ends_with_open_if(node.children[2]);
  if (node.kind == NodeKind::for_loop || node.kind == NodeKind::while_loop)
    return ends_with_open_if(node.children.back());
  return node.kind == NodeKind::opaque;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string print(const SyntaxNode& node, const PrintOptions& options) {
  return detail::Printer(options).run(node);
}

} // namespace mtmc
