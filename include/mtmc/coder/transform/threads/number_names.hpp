#pragma once
/// The numbers of threads in one way of writing: a declaration each, without names for their parts.

#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/loop_variables.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether a value is `threadIdx.x`, `blockIdx.y`, `blockDim.z` or the like, as it is.
[[nodiscard]] inline bool is_part_of_number(const SyntaxNode& value) {
  const SyntaxNode& plain = value.kind == NodeKind::cast ? operand(value) : value;
  return plain.kind == NodeKind::member &&
         (is_name(operand(plain), "threadIdx") || is_name(operand(plain), "blockIdx") ||
          is_name(operand(plain), "blockDim"));
}

/// `int i = a, j = b;` becomes a declaration each where numbers of threads are among the values.
inline void declare_one_by_one(SyntaxNode& block) {
  for (std::size_t i = 0; i < block.children.size(); ++i) {
    SyntaxNode& statement = block.children[i];
    if (statement.kind != NodeKind::declaration || statement.children.size() < 2) continue;
    bool numbers = false;
    walk(statement, [&](const SyntaxNode& node) { numbers = numbers || is_launch_name(node); });
    if (!numbers) continue;
    std::vector<SyntaxNode> each;
    for (SyntaxNode& declarator : statement.children) {
      SyntaxNode one = make_declaration(statement.type, "");
      one.children = node_list(std::move(declarator));
      each.push_back(std::move(one));
    }
    replace_statement(block, i, std::move(each));
  }
}

/// Uses of a name below a node that stand in a declaration which adds a part of a block to a part of a
/// thread, and all others.
struct PartUses {
  std::size_t in_numbers = 0;
  std::size_t others = 0;
};
[[nodiscard]] inline PartUses uses_of_part(const SyntaxNode& block, const std::string& name) {
  PartUses uses;
  for (const SyntaxNode& statement : block.children) {
    std::size_t count = 0;
    walk(statement, [&](const SyntaxNode& node) { count += is_name(node, name) ? 1 : 0; });
    const bool number = statement.kind == NodeKind::declaration && statement.children.size() == 1 &&
                        initial_value(statement.children.front()) != nullptr &&
                        initial_value(statement.children.front())->kind == NodeKind::binary &&
                        initial_value(statement.children.front())->text == "+";
    (number ? uses.in_numbers : uses.others) += count;
  }
  return uses;
}

/// Puts `threadIdx.x` in the place of `tx` of `int tx = threadIdx.x;` where it serves to number threads
/// alone.
inline void write_out_parts(SyntaxNode& block, const SyntaxNode& function) {
  for (std::size_t i = 0; i < block.children.size(); ++i) {
    const SyntaxNode& statement = block.children[i];
    if (statement.kind != NodeKind::declaration || statement.children.size() != 1) continue;
    const std::string name = statement.children.front().text;
    const SyntaxNode* const value = initial_value(statement.children.front());
    if (value == nullptr || !is_part_of_number(*value) || count_declarations(function, name) != 1) continue;
    const PartUses uses = uses_of_part(block, name);
    if (uses.in_numbers == 0 || uses.others > 0) continue;
    const SyntaxNode part = value->kind == NodeKind::cast ? operand(*value) : *value;
    for (SyntaxNode& other : block.children) substitute(other, name, part);
    if (i + 1 < block.children.size())
      block.children[i + 1].leading_trivia.insert(0, block.children[i].leading_trivia);
    block.children.erase(block.children.begin() + static_cast<std::ptrdiff_t>(i));
    --i;
  }
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

/// Brings the numbers of threads in a kernel for a GPU into the way of writing that transformations know:
/// `int i = blockIdx.x * blockDim.x + threadIdx.x;`, one declaration each.
inline void declare_thread_numbers(SyntaxNode& tree) {
  for (SyntaxNode* function : functions(tree)) {
    if (function->type.find("__global__") == std::string::npos) continue;
    const SyntaxNode before = *function;
    SyntaxNode& body = function_body(*function);
    detail::declare_one_by_one(body);
    detail::write_out_parts(body, before);
  }
}

} // namespace mtmc
