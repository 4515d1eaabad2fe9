#pragma once

#include <mtmc/analysis/syntax/source_text.hpp>
#include <mtmc/analysis/syntax/syntax_fingerprint.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Expressions to text: as they stood where they are unchanged, else with the parentheses that C's operators
/// need.

namespace mtmc::inline MTMC_ABI::detail {

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

/// Knows what in a tree still is as the parser read it, and prints expressions. The statement printer
/// (printer.hpp) builds on it.
class ExpressionPrinter {
protected:
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

  [[nodiscard]] static const SyntaxNode* first_parsed(const SyntaxNode& node) {
    if (node.origin.source != nullptr) return &node;
    for (const SyntaxNode& child : node.children)
      if (const SyntaxNode* const found = first_parsed(child); found != nullptr) return found;
    return nullptr;
  }

  template <class Action> [[nodiscard]] std::string captured(const Action& action) {
    std::string outer;
    outer.swap(out_);
    action();
    outer.swap(out_);
    return outer;
  }

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

private:
  std::vector<const SyntaxNode*> changed_;     ///< parsed nodes that changed, sorted
  std::vector<const SyntaxNode*> same_header_; ///< those of them whose part before the body did not, sorted
};

} // namespace mtmc::detail
