#pragma once

#include <mtmc/analysis/syntax/source_text.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// The C-family front end: text of C, C++, OpenCL C or CUDA C++ to the syntax tree. It never fails: what it
/// does not understand becomes a node of kind `opaque`, and parsing goes on behind it. The work is linear in
/// the text.

namespace mtmc::inline MTMC_ABI {

/// How to read the text.
struct ParserOptions {
  bool cuda_launches = false; ///< read `<<<` and `>>>` as launch brackets
};

/// The syntax tree of a whole file: a `translation_unit`. Never fails, never throws on any text.
[[nodiscard]] SyntaxNode parse(std::string_view source, const ParserOptions& options = {});

/// The statements of a text such as `"float sum = 0.0f;\nfor (...) {...}"`, as a transformation writes
/// templates. The nodes have no range and print canonically. What is not understood is `opaque`.
[[nodiscard]] std::vector<SyntaxNode> parse_statements(std::string_view source,
                                                       const ParserOptions& options = {});

/// The expression `source`; an `opaque` node with its text if it is not one. The nodes have no range.
[[nodiscard]] SyntaxNode parse_expression(std::string_view source, const ParserOptions& options = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/syntax/parser_inl.hpp>
#endif
