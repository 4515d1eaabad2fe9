#pragma once
/// A function on a GPU's launch whose threads each add up one result: what stands before the sum, the sum,
/// and what is done with it.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The parts of such a function. Its body is declarations and a branch around the work; the work is
/// declarations, one loop (or nest) that adds up in one variable, and statements without loops.
struct ThreadSum {
  ThreadLaunch launch;
  const FunctionAnalysis* function = nullptr;
  std::vector<ThreadIndex> indices{};      ///< numbers of the threads along axes
  std::vector<const SyntaxNode*> before{}; ///< declarations in front of the branch, those numbers left out
  std::vector<const SyntaxNode*> conditions{}; ///< of the branch, all of which must hold
  std::vector<const SyntaxNode*> prologue{};   ///< declarations in front of the loop, the sum's left out
  std::vector<const SyntaxNode*> epilogue{};   ///< statements behind the loop
  std::set<std::string> uniform{};             ///< names that are the same for all threads of a block
  const LoopInfo* loop = nullptr;              ///< the outermost one
  Reduction sum{};                             ///< what it adds up in
  std::string start{};                         ///< the sum's first value, a number
  const SyntaxNode* update = nullptr;          ///< the one statement that adds

  /// Throws `TransformDeclined` with the reason where the function is another one.
  explicit ThreadSum(const TransformRequest& request)
      : launch(thread_launch(request)), function(launch.function) {
    if (!function->opaque.empty())
      decline("line " + std::to_string(function->opaque.front().line) + " contains " +
              function->opaque.front().reason);
    if (!function->barriers.empty()) decline("the threads wait for each other already");
    for (const Array& array : function->arrays)
      if (array.unknown || array.place != ArrayPlace::common)
        decline("the function has memory of its own, " + array.name);
    indices = thread_indices(launch);
    read_branch();
    read_work(request);
    require_results_apart();
  }

  /// The number along an axis; with an empty name where there is none.
  [[nodiscard]] ThreadIndex index_along(std::size_t axis) const {
    for (const ThreadIndex& index : indices)
      if (index.axis == axis) return index;
    return {};
  }
  /// What the threads add.
  [[nodiscard]] const SyntaxNode& term() const { return right_operand(operand(*update)); }

  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }

private:
  void read_branch() {
    const auto body = statements(function_body(*function->node));
    if (body.empty()) decline("the threads of " + launch.line.entry + " do nothing");
    const auto numbers = [&](std::size_t statement) {
      return std::any_of(indices.begin(), indices.end(),
                         [&](const ThreadIndex& index) { return index.statement == statement; });
    };
    for (const SyntaxNode& parameter : parameters(*function->node)) uniform.insert(parameter.text);
    for (std::size_t i = 0; i + 1 < body.size(); ++i) {
      if (body[i].kind != NodeKind::declaration)
        decline("what the threads of " + launch.line.entry + " do is not one branch");
      if (numbers(i)) continue;
      before.push_back(&body[i]);
      for (const ThreadIndex& index : indices)
        if (uses_name(body[i], index.name))
          decline("line " + std::to_string(body[i].range.first_line) + " depends on the number of a thread");
      for (const SyntaxNode& declarator : declarators(body[i])) uniform.insert(declarator.text);
    }
    const SyntaxNode& branch = body.back();
    if (branch.kind != NodeKind::if_statement || else_branch(branch) != nullptr)
      decline("what the threads of " + launch.line.entry + " do is not one branch");
    take_conditions(if_condition(branch));
    work_ = statements(then_branch(branch));
  }
  void take_conditions(const SyntaxNode& condition) {
    if (condition.kind == NodeKind::binary && condition.text == "&&") {
      take_conditions(left_operand(condition));
      take_conditions(right_operand(condition));
    } else {
      conditions.push_back(&condition);
    }
  }

  void read_work(const TransformRequest& request) {
    std::size_t at = work_.size();
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (!is_loop(work_[i].kind)) continue;
      if (at != work_.size()) decline("a thread goes through several loops");
      at = i;
    }
    if (at == work_.size()) decline("a thread goes through no loop");
    loop = request.analysis.find_loop(work_[at]);
    if (loop == nullptr) decline("the loop was not analysed");
    const Legality legality = loop_is_reduction(*loop);
    if (!legality) decline(legality.reason);
    const auto reductions = reductions_of(*loop);
    if (reductions.size() != 1 || reductions.front().scalar == nullptr ||
        reductions.front().operation != ReductionOperation::sum)
      decline(loop_name(*loop) + " does not add up in one variable");
    sum = reductions.front();
    int updates = 0;
    walk(*loop->node, [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::expression_statement || !uses_name(node, sum.scalar->name)) return;
      ++updates;
      const SyntaxNode& added = operand(node);
      if (added.kind == NodeKind::assignment && added.text == "+=" &&
          is_name(left_operand(added), sum.scalar->name))
        update = &node;
    });
    if (updates != 1 || update == nullptr) decline("the body of " + loop_name(*loop) + " is not one sum");
    for (std::size_t i = 0; i < at; ++i) {
      if (work_[i].kind != NodeKind::declaration) decline("something happens before " + loop_name(*loop));
      const auto declared = declarators(work_[i]);
      if (declared.size() != 1 || declared.front().text != sum.scalar->name) {
        prologue.push_back(&work_[i]);
        continue;
      }
      const SyntaxNode* const value = initial_value(declared.front());
      if (value == nullptr || value->kind != NodeKind::literal)
        decline(sum.scalar->name + " does not start with a number");
      start = print(*value);
    }
    if (start.empty()) decline(sum.scalar->name + " is not declared before " + loop_name(*loop));
    for (std::size_t i = at + 1; i < work_.size(); ++i) {
      walk(work_[i], [&](const SyntaxNode& node) {
        if (is_loop(node.kind) || node.kind == NodeKind::return_statement)
          decline("more than a result follows " + loop_name(*loop));
      });
      epilogue.push_back(&work_[i]);
    }
  }

  /// Results are stored behind the loop, and of what is stored a thread reads its own element at most.
  void require_results_apart() const {
    std::vector<const Access*> writes;
    for (const Access& access : function->accesses) {
      if (!access.write) continue;
      writes.push_back(&access);
      if (access.loop != nullptr) decline(access.array->name + " is written in " + loop_name(*loop));
    }
    for (const Access& access : function->accesses)
      for (const Access* write : writes) {
        const bool own = access.loop == nullptr && structurally_equal(*access.node, *write->node);
        if (!access.write && access.array == write->array && !own)
          decline(access.array->name + " is read and written");
      }
  }

  std::span<const SyntaxNode> work_{};
};

} // namespace mtmc::detail
