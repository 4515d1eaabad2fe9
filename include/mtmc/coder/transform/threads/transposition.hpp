#pragma once
/// Transposition through shared memory: where reading and writing want different neighbours, a block reads a
/// tile in the one order and writes it in the other.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/covering_guard.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether an access moves by one element from thread to thread along an axis.
[[nodiscard]] inline bool is_neighbour_along(const Access& access, const ThreadIndex& index) {
  if (access.subscripts.size() != 1 || !access.subscripts.front().defined()) return false;
  for (const auto& term : access.subscripts.front().terms())
    if (term.degree == 1 && term.coefficient == 1 &&
        (term.factors[0]->name == index.name || term.factors[0]->name == thread_index_names[index.axis]))
      return true;
  return false;
}

/// Writes a function whose threads each compute and store one element so that a block computes a tile of
/// elements in the order of the axis that reads want, and stores it in the order of the other one.
[[nodiscard]] inline SyntaxNode transpose_threads(const TransformRequest& request) {
  ThreadLaunch launch = thread_launch(request);
  const FunctionAnalysis& function = *launch.function;
  if (launch.line.block.size() != 2)
    throw TransformDeclined("the blocks of " + launch.line.entry + " have not two axes");
  if (!function.opaque.empty() || !function.barriers.empty() || !function.loops.empty())
    throw TransformDeclined("the threads do more than compute one element");
  require_covering(request, launch);
  ThreadIndex x, y;
  for (const ThreadIndex& index : thread_indices(launch)) (index.axis == 0 ? x : y) = index;
  if (x.name.empty() || y.name.empty() || y.axis != 1)
    throw TransformDeclined("no variables number the threads of " + launch.line.entry + " along both axes");

  const auto body = statements(function_body(*function.node));
  const SyntaxNode& branch = body.back();
  if (branch.kind != NodeKind::if_statement || else_branch(branch) != nullptr)
    throw TransformDeclined("what the threads of " + launch.line.entry + " do is not one branch");
  std::string uniform;
  for (std::size_t i = 0; i + 1 < body.size(); ++i) {
    if (body[i].kind != NodeKind::declaration)
      throw TransformDeclined("what the threads of " + launch.line.entry + " do is not one branch");
    if (i == x.statement || i == y.statement) continue;
    if (uses_name(body[i], x.name) || uses_name(body[i], y.name))
      throw TransformDeclined("a variable outside of the branch depends on the number of a thread");
    uniform += print(body[i]) + '\n';
  }
  const auto work = statements(then_branch(branch));
  std::string before;
  for (std::size_t i = 0; i + 1 < work.size(); ++i) {
    if (work[i].kind != NodeKind::declaration)
      throw TransformDeclined("the threads do more than compute one element");
    before += print(work[i]) + '\n';
  }
  const SyntaxNode& store = work.back();
  const Access* written = nullptr;
  bool reads_along_x = false, reads_along_y = false;
  for (const Access& access : function.accesses) {
    if (!access.write) {
      reads_along_x = reads_along_x || is_neighbour_along(access, x);
      reads_along_y = reads_along_y || is_neighbour_along(access, y);
      continue;
    }
    if (written != nullptr) throw TransformDeclined("the threads store several elements");
    written = &access;
  }
  if (written == nullptr || store.kind != NodeKind::expression_statement ||
      operand(store).kind != NodeKind::assignment || operand(store).text != "=" ||
      left_operand(operand(store)).kind != NodeKind::subscript)
    throw TransformDeclined("the threads do not end with storing one element");
  for (const Access& access : function.accesses)
    if (&access != written && access.array == written->array)
      throw TransformDeclined(written->array->name + " is read and written");
  const bool stores_along_y = is_neighbour_along(*written, y);
  if (!(stores_along_y && reads_along_x) && !(is_neighbour_along(*written, x) && reads_along_y))
    throw TransformDeclined("reading and writing want the same neighbours");

  static const std::vector<std::int64_t> block_sizes{256, 512, 128, 1024};
  const std::string threads = std::to_string(choose_variant(block_sizes, request.variant));
  SyntaxNode tree = request.tree;
  const std::string tile = fresh_name(tree, written->array->name + "_tile"), at = fresh_name(tree, "at");
  const std::string first_x = fresh_name(tree, "first_" + x.name),
                    first_y = fresh_name(tree, "first_" + y.name);
  const std::string condition = print(if_condition(branch));
  const std::string type = pointed_type(written->array->variable->type);
  const auto pass = [&](bool x_is_fast, const std::string& statement) {
    const std::string fast = at + " % 32", slow = at + " / 32";
    return "for (int " + at + " = threadIdx.x; " + at + " < 1024; " + at + " += " + threads +
           ") {\nconst int " + y.name + " = " + first_y + " + " + (x_is_fast ? slow : fast) +
           ";\nconst int " + x.name + " = " + first_x + " + " + (x_is_fast ? fast : slow) + ";\nif (" +
           condition + ") {\n" + before + statement + "\n}\n}\n";
  };
  const std::string by_x = tile + '[' + at + " / 32][" + at + " % 32]";
  const std::string by_y = tile + '[' + at + " % 32][" + at + " / 32]";
  std::string code = "__shared__ " + type + ' ' + tile + "[32][33];\nconst int " + first_y +
                     " = blockIdx.y * 32;\nconst int " + first_x + " = blockIdx.x * 32;\n" + uniform;
  code += pass(stores_along_y,
               (stores_along_y ? by_x : by_y) + " = " + print(right_operand(operand(store))) + ';');
  code += "__syncthreads();\n";
  code += pass(!stores_along_y,
               print(left_operand(operand(store))) + " = " + (stores_along_y ? by_y : by_x) + ';');
  launch.body_in(tree).children = parse_statements(code);
  std::vector<std::string> grid{launch.threads_divided_by(32, 0), launch.threads_divided_by(32, 1)};
  if (launch.line.grid.size() > 2) grid.push_back(launch.line.grid[2]);
  launch.set_grid(tree, std::move(grid), threads);
  return tree;
}

} // namespace mtmc::detail
