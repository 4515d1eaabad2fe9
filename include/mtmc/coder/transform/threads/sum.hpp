#pragma once
/// A function on a GPU's launch whose threads each add up one result: what stands before the sum, the sum,
/// and what is done with it.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The parts of such a function. Its body is declarations and a branch around the work, if not all threads
/// have work; the work is declarations, one loop (or nest) that adds up in one variable,
/// and statements without loops.
struct ThreadSum {
  ThreadLaunch launch;
  const FunctionAnalysis* function = nullptr;
  std::vector<ThreadIndex> indices{};         ///< numbers of the threads along axes
  std::vector<const SyntaxNode*> before{};    ///< declarations in front of the work that threads share
  std::vector<const SyntaxNode*> dependent{}; ///< those that depend on the number of a thread
  std::vector<SyntaxNode> conditions{};       ///< for the work, all of which must hold
  std::vector<const SyntaxNode*> prologue{};  ///< declarations in front of the loop, the sum's left out
  std::vector<const SyntaxNode*> epilogue{};  ///< statements behind the loop
  std::set<std::string> uniform{};            ///< names that are the same for all threads of a block
  const LoopInfo* loop = nullptr;             ///< the outermost one
  Reduction sum{};                            ///< what it adds up in
  std::string start{};                        ///< the number that parts of the sum start with
  std::string first{};                        ///< what else the sum starts with; empty: nothing
  const SyntaxNode* update = nullptr;         ///< the one statement that adds

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
  [[nodiscard]] const SyntaxNode& term() const noexcept { return term_; }
  /// The whole sum from the part that was added up.
  [[nodiscard]] std::string whole(const std::string& part) const {
    return first.empty() ? part : first + " + " + part;
  }

  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }

private:
  void read_branch() {
    const auto body = statements(function_body(*function->node));
    if (body.empty()) decline("the threads of " + launch.line.entry + " do nothing");
    for (const SyntaxNode& parameter : parameters(*function->node)) uniform.insert(parameter.text);
    const bool nested = body.back().kind == NodeKind::if_statement && else_branch(body.back()) == nullptr;
    std::size_t begin = nested ? body.size() - 1 : 0; // of the work
    if (!nested)
      while (begin < body.size() && !is_loop(body[begin].kind)) ++begin;
    for (std::size_t i = 0; i < begin; ++i) {
      if (body[i].kind == NodeKind::declaration)
        add_declaration(body[i], i);
      else if (body[i].kind != NodeKind::comment && body[i].kind != NodeKind::empty)
        decline("what the threads of " + launch.line.entry + " do is not one branch");
    }
    if (nested) take_conditions(if_condition(body.back()), conditions);
    work_ = nested ? statements(then_branch(body.back())) : body.subspan(begin);
  }
  [[nodiscard]] bool is_index(std::size_t statement) const {
    return std::any_of(indices.begin(), indices.end(),
                       [&](const ThreadIndex& index) { return index.statement == statement; });
  }
  void add_declaration(const SyntaxNode& declaration, std::size_t statement) {
    if (is_index(statement)) return;
    const auto names = names_used(declaration);
    const bool depends = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return !uniform.contains(name) && is_variable(name);
    });
    if (depends) {
      dependent.push_back(&declaration);
      return;
    }
    before.push_back(&declaration);
    for (const SyntaxNode& declarator : declarators(declaration)) uniform.insert(declarator.text);
  }
  [[nodiscard]] bool is_variable(const std::string& name) const {
    return std::any_of(function->variables.begin(), function->variables.end(), [&](const Variable& variable) {
      return variable.name == name && variable.kind == Variable::Kind::local;
    });
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
      if (const auto added = added_by(operand(node))) {
        update = &node;
        term_ = *added;
      }
    });
    if (updates != 1 || update == nullptr) decline("the body of " + loop_name(*loop) + " is not one sum");
    for (std::size_t i = 0; i < at; ++i) {
      if (work_[i].kind != NodeKind::declaration) decline("something happens before " + loop_name(*loop));
      const auto declared = declarators(work_[i]);
      if (declared.size() != 1 || declared.front().text != sum.scalar->name) {
        prologue.push_back(&work_[i]);
        continue;
      }
      read_start(declared.front());
    }
    if (start.empty()) take_start_from(before);
    if (start.empty()) decline(sum.scalar->name + " is not declared before " + loop_name(*loop));
    for (std::size_t i = at + 1; i < work_.size(); ++i) {
      walk(work_[i], [&](const SyntaxNode& node) {
        if (is_loop(node.kind) || node.kind == NodeKind::return_statement)
          decline("more than a result follows " + loop_name(*loop));
      });
      epilogue.push_back(&work_[i]);
    }
  }

  /// `term` of `sum += term`, `sum = sum + term` and `sum = fmaf(a, b, sum)`.
  [[nodiscard]] std::optional<SyntaxNode> added_by(const SyntaxNode& expression) const {
    const std::string& name = sum.scalar->name;
    if (expression.kind != NodeKind::assignment || !is_name(left_operand(expression), name))
      return std::nullopt;
    const SyntaxNode& value = right_operand(expression);
    std::optional<SyntaxNode> added;
    if (expression.text == "+=") {
      added = value;
    } else if (expression.text == "=" && value.kind == NodeKind::binary && value.text == "+") {
      if (is_name(left_operand(value), name)) added = right_operand(value);
      if (is_name(right_operand(value), name)) added = left_operand(value);
    } else if (expression.text == "=" && value.children.size() == 4 && is_name(value.children[3], name) &&
               is_multiply_add(value.children.front())) {
      added = make_binary("*", value.children[1], value.children[2]);
    }
    if (added && uses_name(*added, name)) return std::nullopt;
    return added;
  }
  void read_start(const SyntaxNode& declarator) {
    const SyntaxNode* const value = initial_value(declarator);
    if (value == nullptr) decline(sum.scalar->name + " does not start with a value");
    start = value->kind == NodeKind::literal ? print(*value) : "0";
    if (value->kind != NodeKind::literal) first = print(*value);
  }
  /// Where all threads have work, the sum is declared among what they share.
  void take_start_from(std::vector<const SyntaxNode*>& declarations) {
    for (auto at = declarations.begin(); at != declarations.end(); ++at) {
      const auto declared = declarators(**at);
      if (declared.size() != 1 || declared.front().text != sum.scalar->name) continue;
      read_start(declared.front());
      uniform.erase(sum.scalar->name);
      declarations.erase(at);
      return;
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

  SyntaxNode term_{};
  std::span<const SyntaxNode> work_{};
};

} // namespace mtmc::detail
