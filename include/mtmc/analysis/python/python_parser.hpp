#pragma once
/// The Python front end: text of Python to the syntax tree.

#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// The syntax tree of a Python file: a `translation_unit`. Never fails, never throws on any text: what it
/// does not understand (`match`, broken lines, what is nested too deep) becomes a node of kind `opaque`, with
/// the block below it, and parsing goes on behind it. So does what an f-string makes of Python 3.12's freedom
/// to use its own quotes within. Ranges are those of Python's own `ast`, of a decorated function without its
/// decorators. The work is linear in the text. Comments are not kept, but for lines that begin with `#@`:
/// `launch_comment`s.
[[nodiscard]] SyntaxNode parse_python(std::string_view source);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/python/python_parser_inl.hpp>
#endif
