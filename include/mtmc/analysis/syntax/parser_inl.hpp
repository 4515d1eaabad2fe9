#pragma once
/// Definitions of analysis/syntax/parser.hpp.

#include <mtmc/analysis/syntax/expression_parser.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/source_text.hpp>
#include <mtmc/analysis/syntax/statement_parser.hpp>
#include <mtmc/analysis/syntax/syntax_fingerprint.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/analysis/syntax/token_buffer.hpp>
#include <mtmc/compiled.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

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

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE SyntaxNode parse(std::string_view source, const ParserOptions& options) {
  const detail::ParsedText text(source, options);
  SyntaxNode root = detail::StatementParser(text.tokens, text.source).translation_unit();
  detail::seal(root);
  return root;
}

MTMC_INLINE std::vector<SyntaxNode> parse_statements(std::string_view source, const ParserOptions& options) {
  const detail::ParsedText text(source, options);
  std::vector<SyntaxNode> statements = detail::StatementParser(text.tokens, text.source).statement_list();
  for (SyntaxNode& statement : statements) detail::forget_origin(statement);
  return statements;
}

MTMC_INLINE SyntaxNode parse_expression(std::string_view source, const ParserOptions& options) {
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
