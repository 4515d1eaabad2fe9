#pragma once

#include <mtmc/analysis/syntax/expression_printer.hpp>
#include <mtmc/analysis/syntax/source_style.hpp>
#include <mtmc/analysis/syntax/source_text.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Syntax tree to source text. What is as the parser read it prints as it stood, byte for byte; what was
/// changed or made prints in a clean style that follows the text round it (indentation, brace placement, line
/// ends).

namespace mtmc::inline MTMC_ABI {

/// How new text is laid out where the tree itself gives no example.
struct PrintOptions {
  std::string indentation = "  "; ///< one level
  std::size_t line_length = 100;  ///< longer parameter lists are broken
};

namespace detail {

/// Prints one tree.
class Printer : ExpressionPrinter {
public:
  explicit Printer(PrintOptions options);

  [[nodiscard]] std::string run(const SyntaxNode& node);

private:
  // --- Lines

  void end_line() { out_ += style_.newline; }

  /// Whole lines of text without indentation, put at `indent`.
  void lines(std::string_view text, std::string_view indent);

  /// Items or statements, each on lines of its own.
  void items(const std::vector<SyntaxNode>& list, const std::string& indent);

  /// True for lines that belong to the function after them.
  [[nodiscard]] static bool before_is_attached(const SyntaxNode& node);

  /// One statement with its comments, whole lines.
  void statement(const SyntaxNode& node, const std::string& indent);

  /// A comment that goes on the line; if it stood after `offset` in the source, as far away as it did.
  void side_comment(const SyntaxNode& node, std::size_t offset, std::string_view comment);

  /// The body of a loop, a branch or a function, after its header. Returns true if it ended with a closing
  /// brace.
  bool body(const SyntaxNode& node, const SyntaxNode& owner, const std::string& indent);

  /// True if the block stood right behind its owner's header, perhaps with comments between.
  [[nodiscard]] static bool follows_header(const SyntaxNode& block, const SyntaxNode& owner);

  /// Where a block's brace goes: where it stood after its owner's header, else as elsewhere in the tree.
  [[nodiscard]] bool opens_on_own_line(const SyntaxNode& block, const SyntaxNode& owner) const;

  void block(const SyntaxNode& node, const std::string& indent);

  /// The closing brace on a line of its own, after a blank line if there was one.
  void close_brace(const SyntaxNode& node, const std::string& indent);

  // --- Statements

  /// A statement or item from its first token to its last; the cursor stands at `indent` already.
  void statement_text(const SyntaxNode& node, const std::string& indent);

  void scope(const SyntaxNode& node, const std::string& indent);

  /// The part before the body as it stood, if it is unchanged.
  [[nodiscard]] bool header_as_it_stood(const SyntaxNode& node, std::string_view indent);

  void function(const SyntaxNode& node, const std::string& indent);

  /// Parameters, broken before the line gets too long and then aligned at `column`.
  void parameter_list(const SyntaxNode& node, const std::string& indent, std::size_t column);

  void parameter(const SyntaxNode& node, const std::string& indent);

  /// A declaration without its semicolon.
  void declaration(const SyntaxNode& node, const std::string& indent);

  /// A declarator; a single one keeps its `*` with the type (`float* p`), else with the name (`float *p,
  /// *q`).
  void declarator(const SyntaxNode& node, const std::string& indent, bool single = false);

  void declarator_parts(const SyntaxNode& node, const std::string& indent);

  /// `[size]`, ` = value`, `(value)` or `{value}`.
  void declarator_part(const SyntaxNode& node, const std::string& indent);

  void for_loop(const SyntaxNode& node, const std::string& indent);

  void while_loop(const SyntaxNode& node, const std::string& indent);

  void do_loop(const SyntaxNode& node, const std::string& indent);

  void if_statement(const SyntaxNode& node, const std::string& indent);

  /// True if a following `else` would belong to an if inside the statement.
  [[nodiscard]] static bool ends_with_open_if(const SyntaxNode& node);

  SourceStyle style_;
  std::size_t line_length_;
};

} // namespace detail

/// The source text of a tree. For a `translation_unit` that was not changed since it was parsed, the parsed
/// text byte for byte. Otherwise unchanged parts stand as they stood (comments included), at the indentation
/// of where they now are, and the rest is laid out in the style of the text round it. Any other node prints
/// from its first token to its last, at no indentation, without the comments before and after it.
[[nodiscard]] std::string print(const SyntaxNode& node, const PrintOptions& options = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/syntax/printer_inl.hpp>
#endif
