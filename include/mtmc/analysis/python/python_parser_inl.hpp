#pragma once
/// Definitions of analysis/python/python_parser.hpp.

#include <mtmc/analysis/python/python_lexer.hpp>
#include <mtmc/analysis/python/python_parser.hpp>
#include <mtmc/analysis/python/python_statements.hpp>
#include <mtmc/compiled.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE SyntaxNode parse_python(std::string_view source) {
  const auto tokens = detail::PythonLexer(source).tokens();
  return detail::PythonStatements(source, tokens).file();
}

} // namespace mtmc
