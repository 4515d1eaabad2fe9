#pragma once
/// Definitions of analysis/signature.hpp.

#include <mtmc/analysis/element_type.hpp>
#include <mtmc/analysis/signature.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/kernel.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE int WrittenParameters::line_of(std::string_view name) const {
  const auto found = lines_.find(name);
  return found == lines_.end() || conditional_ || hidden_.contains(name) ? 0 : found->second;
}

MTMC_INLINE void WrittenParameters::visit(const SyntaxNode& node) {
  if (node.kind == NodeKind::preprocessor) conditional_ = true;
  if (node.kind == NodeKind::declarator) hidden_.insert(node.text);
  if (node.kind == NodeKind::assignment) note(left_operand(node), node);
  const bool steps = node.text == "++" || node.text == "--";
  if ((node.kind == NodeKind::unary || node.kind == NodeKind::postfix) && steps) note(operand(node), node);
  for (const auto& child : node.children) visit(child);
}

MTMC_INLINE void WrittenParameters::note(const SyntaxNode& target, const SyntaxNode& where) {
  const SyntaxNode* base = &target;
  while (base->kind == NodeKind::subscript) base = &subscript_base(*base);
  if (base != &target && base->kind == NodeKind::name) lines_.try_emplace(base->text, where.range.first_line);
}

[[nodiscard]] inline Signature read_signature(const SyntaxNode& function, const TypeNames& names) {
  Signature signature{function.text, {}, function.range.first_line};
  const WrittenParameters written(function_body(function));
  for (const auto& node : parameters(function)) {
    if (node.text.empty() && node.type == "void") continue; // `f(void)` takes nothing
    const auto declared = declared_type(node.type, !extents(node).empty(), names);
    SignatureParameter parameter{node.text, declared.type, declared.pointer, declared.points_to_const,
                                 declared.plain_char};
    parameter.declaration = node.type + ' ' + node.text;
    for (std::size_t i = 0; i < extents(node).size(); ++i) parameter.declaration += "[]";
    parameter.line = node.range.known() ? node.range.first_line : signature.line;
    parameter.written_line = declared.pointer ? written.line_of(node.text) : 0;
    signature.parameters.push_back(std::move(parameter));
  }
  return signature;
}

inline void collect_signatures(const SyntaxNode& node, const TypeNames& names,
                               std::vector<Signature>& found) {
  for (const auto& child : node.children) {
    if (child.kind == NodeKind::scope) collect_signatures(child, names, found);
    if (child.kind == NodeKind::function) found.push_back(read_signature(child, names));
  }
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::vector<Signature> read_signatures(const Kernel& kernel) {
  std::vector<Signature> found;
  if (kernel.language.syntax != Syntax::c_family) return found;
  const auto tree = parse(kernel.source, {.cuda_launches = kernel.language == languages::cuda});
  detail::collect_signatures(tree, TypeNames(tree), found);
  return found;
}

MTMC_INLINE const Signature* find_signature(const std::vector<Signature>& signatures,
                                            std::string_view name) noexcept {
  for (const auto& signature : signatures)
    if (signature.name == name) return &signature;
  return nullptr;
}

} // namespace mtmc
