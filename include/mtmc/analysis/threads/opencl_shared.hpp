#pragma once

#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/threads/opencl_types.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Shared memory of functions. CUDA declares it in the function; OpenCL C hands the function a pointer to an
/// array of the kernel. Between the two forms lies a convention of names: `parts` of `sum_of_block` is the
/// kernel's `sum_of_block_parts`.

namespace mtmc::inline MTMC_ABI::detail {

/// What the array of a kernel is called that a function uses under the name of a parameter.
[[nodiscard]] inline std::string shared_array_name(const SyntaxNode& function, const std::string& parameter) {
  return function.text + '_' + parameter;
}

/// Whether something launches the function, not another function.
[[nodiscard]] inline bool is_entry(const SyntaxNode& function) {
  return has_any_word(function.type, "__kernel", "kernel") ||
         has_any_word(function.type, "__global__", "__global__");
}

/// The calls of a function below a node.
template <AnySyntaxNode Node>
[[nodiscard]] std::vector<Node*> calls_of(Node& node, const std::string& function) {
  std::vector<Node*> found;
  walk(node, [&](Node& inner) {
    if (is_call_of(inner, function)) found.push_back(&inner);
  });
  return found;
}

/// Gives functions of OpenCL C their shared memory back, where it was handed to them by that convention.
class SharedParameters {
public:
  explicit SharedParameters(SyntaxNode& tree) : tree_(tree) {}

  /// Callers stand behind what they call: from the last function up.
  void declare_inside() {
    auto all = functions(tree_);
    for (auto function = all.rbegin(); function != all.rend(); ++function)
      while (!is_entry(**function) && declare_last(**function)) {
      }
  }

private:
  /// The last parameter becomes an array of the function.
  [[nodiscard]] bool declare_last(SyntaxNode& function) {
    const auto formal = parameters(function);
    if (formal.empty() || !has_any_word(formal.back().type, "__local", "local") ||
        !formal.back().children.empty() || formal.back().type.find("const") != std::string::npos)
      return false;
    const std::string name = formal.back().text;
    const std::string array = shared_array_name(function, name);
    std::optional<SyntaxNode> declaration;
    for (const SyntaxNode* caller : functions(std::as_const(tree_))) {
      if (calls_of(*caller, function.text).empty()) continue;
      const SyntaxNode* const found = declaration_of(*caller, array, function);
      if (found == nullptr || (declaration && !structurally_equal(*declaration, *found))) return false;
      declaration = *found;
    }
    if (!declaration) return false;
    for (SyntaxNode* caller : functions(tree_)) take_away(*caller, array, function.text);
    function.children.erase(function.children.end() - 2);
    const SyntaxNode& size = extents(declaration->children.front()).front().children.front();
    auto& body = function_body(function).children;
    body.insert(body.begin(), make_array_declaration("__shared__ " + value_type(declaration->type), name,
                                                     node_list(SyntaxNode(size))));
    return true;
  }

  /// The declaration of the array among the first ones of the caller, where it is for this function alone.
  [[nodiscard]] static const SyntaxNode* declaration_of(const SyntaxNode& caller, const std::string& array,
                                                        const SyntaxNode& function) {
    std::size_t handed = 0, named = 0;
    for (const SyntaxNode* call : calls_of(function_body(caller), function.text)) {
      if (arguments(*call).size() != parameters(function).size() || !is_name(arguments(*call).back(), array))
        return nullptr;
      ++handed;
    }
    walk(function_body(caller), [&](const SyntaxNode& node) {
      if (is_name(node, array) || (node.kind == NodeKind::opaque && uses_name(node, array))) ++named;
    });
    if (named != handed) return nullptr;
    for (const SyntaxNode& statement : function_body(caller).children) {
      const bool shared = statement.kind == NodeKind::declaration && address_space(statement.type) == "local";
      if (!shared) return nullptr;
      if (statement.children.size() == 1 && statement.children.front().text == array)
        return extents(statement.children.front()).size() == 1 && statement.leading_trivia.empty() &&
                       statement.trailing_trivia.empty()
                   ? &statement
                   : nullptr;
    }
    return nullptr;
  }

  static void take_away(SyntaxNode& caller, const std::string& array, const std::string& function) {
    const auto calls = calls_of(function_body(caller), function);
    for (SyntaxNode* call : calls) call->children.pop_back();
    if (!calls.empty())
      std::erase_if(function_body(caller).children, [&](const SyntaxNode& statement) {
        return statement.kind == NodeKind::declaration && statement.children.size() == 1 &&
               statement.children.front().text == array;
      });
  }

  SyntaxNode& tree_;
};

} // namespace mtmc::detail
