#pragma once
/// The functions of a kernel's text as they declare their parameters.

#include <mtmc/analysis/element_type.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/core/kernel.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc {

/// A parameter as its function declares it.
struct SignatureParameter {
  std::string name;
  /// The element type of a pointer or array, the type of a scalar; nothing if it is not one of the library's
  /// data types.
  std::optional<DataType> type;
  bool pointer = false;
  /// What it points to may not be written.
  bool points_to_const = false;
  /// The element type or type is `char`, whose sign the processor decides.
  bool plain_char = false;
  /// As written: "const long long* x".
  std::string declaration{};
  /// Where it is declared; 1-based.
  int line = 0;
  /// Line of a statement of the function that certainly writes what it points to; 0 = none was found.
  int written_line = 0;
};

/// A function a launch line may name.
struct Signature {
  std::string name;
  std::vector<SignatureParameter> parameters;
  int line = 0;
};

namespace detail {

/// Elements that a function's own statements write by their parameter's name: where each is written first.
/// Names that are declared once more in the body, and functions whose text depends on the preprocessor, are
/// left out.
class WrittenParameters {
public:
  explicit WrittenParameters(const SyntaxNode& body) { visit(body); }

  [[nodiscard]] int line_of(std::string_view name) const {
    const auto found = lines_.find(name);
    return found == lines_.end() || conditional_ || hidden_.contains(name) ? 0 : found->second;
  }

private:
  void visit(const SyntaxNode& node) {
    if (node.kind == NodeKind::preprocessor) conditional_ = true;
    if (node.kind == NodeKind::declarator) hidden_.insert(node.text);
    if (node.kind == NodeKind::assignment) note(left_operand(node), node);
    const bool steps = node.text == "++" || node.text == "--";
    if ((node.kind == NodeKind::unary || node.kind == NodeKind::postfix) && steps) note(operand(node), node);
    for (const auto& child : node.children) visit(child);
  }

  void note(const SyntaxNode& target, const SyntaxNode& where) {
    const SyntaxNode* base = &target;
    while (base->kind == NodeKind::subscript) base = &subscript_base(*base);
    if (base != &target && base->kind == NodeKind::name)
      lines_.try_emplace(base->text, where.range.first_line);
  }

  std::map<std::string, int, std::less<>> lines_;
  std::set<std::string, std::less<>> hidden_;
  bool conditional_ = false;
};

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

} // namespace detail

/// The functions defined in C-family text, in order. Other languages give none.
[[nodiscard]] inline std::vector<Signature> read_signatures(const Kernel& kernel) {
  std::vector<Signature> found;
  if (kernel.language.syntax != Syntax::c_family) return found;
  const auto tree = parse(kernel.source, {.cuda_launches = kernel.language == languages::cuda});
  detail::collect_signatures(tree, TypeNames(tree), found);
  return found;
}

/// The function of that name, or null.
[[nodiscard]] inline const Signature* find_signature(const std::vector<Signature>& signatures,
                                                     std::string_view name) noexcept {
  for (const auto& signature : signatures)
    if (signature.name == name) return &signature;
  return nullptr;
}

} // namespace mtmc
