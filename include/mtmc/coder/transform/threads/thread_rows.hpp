#pragma once
/// Launches whose threads are numbered along x and have a result or a row each, those beyond the last one
/// left out by a branch.

#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/launch_words.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The numbers of the threads, and what each of them does.
struct ThreadRows {
  ThreadIndex index{};
  std::string type{};                      ///< of the number, without `const`
  SyntaxNode limit{};                      ///< the number is below it; as many as the launch line has threads
  std::string launch_limit{};              ///< the same in the words of the launch line
  std::vector<const SyntaxNode*> before{}; ///< declarations in front of the branch, the number's left out
  std::vector<const SyntaxNode*> work{};   ///< statements of a thread
};

/// Reads them. Throws `TransformDeclined` unless one comparison, with what the launch line names, leaves out
/// threads beyond the last row: then there is a row, since a grid has a block.
[[nodiscard]] inline ThreadRows thread_rows(const TransformRequest& request, const ThreadLaunch& launch,
                                            const ThreadIndex& index) {
  const FunctionAnalysis& function = *launch.function;
  const auto body = statements(function_body(*function.node));
  const std::string beyond = "it is not one branch that leaves out threads beyond the last row";
  const GuardedBody guarded = guarded_body(launch, index);
  if (!guarded.guarded) throw TransformDeclined(beyond);
  const SyntaxNode& branch = body[guarded.nested ? guarded.first : guarded.first - 1];
  const SyntaxNode condition =
      guarded.nested ? if_condition(branch) : opposite_of(if_condition(branch), *function.node);
  if (condition.kind != NodeKind::binary || condition.text != "<" ||
      !is_name(left_operand(condition), index.name))
    throw TransformDeclined(beyond);
  ThreadRows rows{index, without_qualifiers(body[index.statement].type), right_operand(condition)};
  const auto limit = LaunchWords(request.task, launch).of(rows.limit);
  if (!limit || without_brackets(*limit) != without_brackets(launch.threads()))
    throw TransformDeclined(beyond);
  rows.launch_limit = *limit;
  for (const std::string& name : names_used(rows.limit)) // the limit is known in front of everything
    for (const SyntaxNode& statement : body)
      if (statement.kind == NodeKind::declaration && declares(statement, name))
        throw TransformDeclined(beyond);
  for (std::size_t i = 0; i < index.statement; ++i)
    if (body[i].kind != NodeKind::declaration)
      throw TransformDeclined("line " + std::to_string(body[i].range.first_line) +
                              " does something before threads have their numbers");
  for (std::size_t i = 0; i < guarded.first; ++i)
    if (i != index.statement && body[i].kind == NodeKind::declaration) rows.before.push_back(&body[i]);
  rows.work = pointers_to(guarded.statements);
  return rows;
}

} // namespace mtmc::detail
