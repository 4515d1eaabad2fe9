#pragma once
/// What the names of a function in OpenCL C stand for: types of values, address spaces of pointers.

#include <mtmc/analysis/flow/updates.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/analysis/threads/opencl_types.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Of the names that a function declares. A name that is declared twice with different types has none.
class OpenClNames {
public:
  /// Notes what a name is.
  void declare(const std::string& name, const std::string& type, const std::string& space) {
    const auto [entry, fresh] = names_.emplace(name, Meaning{type, space});
    if (fresh) return;
    if (entry->second.type != type) entry->second.type.clear();
    if (entry->second.space != space) entry->second.space = std::nullopt;
  }

  /// The type of a value or element; nothing where it is not certain.
  [[nodiscard]] std::optional<std::string> type_of(const SyntaxNode& node) const {
    switch (node.kind) {
    case NodeKind::literal:
      if (integer_literal(node.text) && node.text.find_first_of("uUlL") == std::string::npos) return "int";
      return node.text.ends_with('f') ? std::optional<std::string>("float") : std::nullopt;
    case NodeKind::name: {
      const auto found = names_.find(node.text);
      if (found == names_.end() || found->second.type.empty()) return std::nullopt;
      return found->second.type;
    }
    case NodeKind::subscript:
      return type_of(subscript_base(node));
    case NodeKind::cast:
      return value_type(node.type);
    case NodeKind::unary:
      return node.text == "-" || node.text == "+" || node.text == "*" ? type_of(operand(node)) : std::nullopt;
    case NodeKind::binary: {
      const auto left = type_of(left_operand(node)), right = type_of(right_operand(node));
      const bool arithmetic = node.text.size() == 1 && node.text.find_first_of("+-*/%") == 0;
      return arithmetic && left == right ? left : std::nullopt;
    }
    default:
      return std::nullopt;
    }
  }

  /// What memory a pointer points into: "global", ...; empty for a thread's own, nothing where it is not
  /// known.
  [[nodiscard]] std::optional<std::string> space_of(const SyntaxNode& pointer) const {
    switch (pointer.kind) {
    case NodeKind::name: {
      const auto found = names_.find(pointer.text);
      return found == names_.end() ? std::nullopt : found->second.space;
    }
    case NodeKind::subscript:
    case NodeKind::member:
    case NodeKind::unary:
    case NodeKind::cast:
    case NodeKind::binary:
    case NodeKind::postfix:
    case NodeKind::assignment:
      return pointer.children.empty() ? std::nullopt : space_of(pointer.children.front());
    default:
      return std::nullopt;
    }
  }

private:
  struct Meaning {
    std::string type{};
    std::optional<std::string> space{};
  };
  std::map<std::string, Meaning> names_{};
};

} // namespace mtmc::detail
