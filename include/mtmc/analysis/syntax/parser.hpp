#pragma once

#include <mtmc/analysis/syntax/expression_parser.hpp>
#include <mtmc/analysis/syntax/source_text.hpp>
#include <mtmc/analysis/syntax/statement_parser.hpp>
#include <mtmc/analysis/syntax/syntax_fingerprint.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/analysis/syntax/token_buffer.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// The C-family front end: text of C, C++, OpenCL C or CUDA C++ to the syntax tree. It never fails: what it
/// does not understand becomes a node of kind `opaque`, and parsing goes on behind it. The work is linear in
/// the text.

namespace mtmc {

/// How to read the text.
struct ParserOptions {
  bool cuda_launches = false; ///< read `<<<` and `>>>` as launch brackets
};

namespace detail {

/// The parser's view of a text it owns.
struct ParsedText {
  std::shared_ptr<const std::string> source;
  TokenBuffer tokens;

  ParsedText(std::string_view text, const ParserOptions& options)
      : source(std::make_shared<const std::string>(text)),
        tokens(*source, LexerOptions{.cuda_launches = options.cuda_launches}) {}
};

/// Makes a parsed node one that was never in a file: no range, always printed canonically.
inline void forget_origin(SyntaxNode& node) {
  node.range = {};
  node.origin = {};
  for (SyntaxNode& child : node.children) forget_origin(child);
}

} // namespace detail

/// The syntax tree of a whole file: a `translation_unit`. Never fails, never throws on any text.
[[nodiscard]] inline SyntaxNode parse(std::string_view source, const ParserOptions& options = {}) {
  const detail::ParsedText text(source, options);
  SyntaxNode root = detail::StatementParser(text.tokens, text.source).translation_unit();
  detail::seal(root);
  return root;
}

/// The statements of a text such as `"float sum = 0.0f;\nfor (...) {...}"`, as a transformation writes
/// templates. The nodes have no range and print canonically. What is not understood is `opaque`.
[[nodiscard]] inline std::vector<SyntaxNode> parse_statements(std::string_view source,
                                                              const ParserOptions& options = {}) {
  const detail::ParsedText text(source, options);
  std::vector<SyntaxNode> statements = detail::StatementParser(text.tokens, text.source).statement_list();
  for (SyntaxNode& statement : statements) detail::forget_origin(statement);
  return statements;
}

/// The expression `source`; an `opaque` node with its text if it is not one. The nodes have no range.
[[nodiscard]] inline SyntaxNode parse_expression(std::string_view source, const ParserOptions& options = {}) {
  const detail::ParsedText text(source, options);
  SyntaxNode node;
  if (!detail::ExpressionParser(text.tokens, text.source).whole_expression(node)) {
    node = {};
    node.kind = NodeKind::opaque;
    node.text = detail::trim(source);
  }
  detail::forget_origin(node);
  return node;
}

} // namespace mtmc
