#pragma once

#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/legality/element_cover.hpp>
#include <mtmc/analysis/syntax/launch_text.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/threads/thread_grid.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Whether each element that the threads of a launch need, each its own, was stored just once by the launch
/// before, by whatever thread: looked at at every size of the task, and at one that no task has, where
/// numbers that are equal by chance are not.

namespace mtmc::inline MTMC_ABI::detail {

/// How the elements that a launch needs lie among those that the launch before stores.
enum class ElementMatch : std::uint8_t {
  none,  ///< it is not proved that they are among them
  among, ///< they are some of them, perhaps
  all    ///< they are all of them
};

/// A launch, its function, and all accesses to a buffer in it.
struct BufferAccesses {
  const FunctionAnalysis* function = nullptr; ///< of the launch
  const LaunchText* launch = nullptr;         ///< its line
  std::span<const Access* const> accesses{};  ///< in order
};

/// The task's sizes, and its main size with each symbol multiplied by a prime of its own: what divides it
/// still does. There are two of these, so that of any two symbols each is once multiplied by more.
[[nodiscard]] inline std::vector<Symbols> sizes_to_prove(const Task& task) {
  constexpr std::array<std::int64_t, 10> primes{3, 5, 7, 11, 13, 17, 19, 23, 29, 31};
  constexpr std::int64_t few_units = 7; // so that what they all do once is not everything
  std::vector<Symbols> all;
  for (const ProblemSize& size : task.sizes) all.push_back(size.symbols);
  for (const bool rising : {true, false})
    if (const ProblemSize* const main = task.main_size()) {
      all.push_back(main->symbols);
      std::size_t next = 0;
      for (auto& [name, value] : all.back()) {
        const std::size_t prime = std::min(next++, primes.size() - 1);
        value *= primes[rising ? prime : primes.size() - 1 - prime];
      }
    }
  for (Symbols& symbols : all) symbols.emplace("compute_units", few_units);
  return all;
}

/// The value of an expression of a launch line; nothing where it is not known.
[[nodiscard]] inline std::optional<std::int64_t> value_of_text(const Task& task, const std::string& text,
                                                               const Symbols& symbols) {
  const Argument* const scalar = task.find_argument(text);
  try {
    return evaluate_expression(scalar != nullptr && !scalar->value.empty() ? scalar->value : text, symbols);
  } catch (const std::exception&) { // what cannot be evaluated is not known
    return std::nullopt;
  }
}

/// The elements of an access of a launch at a size, with that many times as many blocks along each axis as
/// are launched.
[[nodiscard]] inline std::optional<ReachedElements>
elements_at(const BufferAccesses& at, const Task& task, const Symbols& symbols,
            const WorkConditions& conditions, const LoopInfo* loop, std::int64_t blocks = 1) {
  const auto value = [&](const std::string& text) { return value_of_text(task, text, symbols); };
  auto geometry = geometry_of(*at.launch, value);
  if (!geometry) return std::nullopt;
  for (std::size_t axis = 0; axis < at.launch->grid.size() && axis < 3; ++axis)
    geometry->grid[axis] *= blocks;
  Symbols values;
  const auto formal = parameters(*at.function->node);
  for (std::size_t i = 0; i < formal.size() && i < at.launch->arguments.size(); ++i)
    if (const auto number = value(at.launch->arguments[i])) values[formal[i].text] = *number;
  return ElementCover(*geometry, values).of(at.accesses.front()->subscripts.front(), conditions, loop);
}

/// All accesses are to one and the same element.
[[nodiscard]] inline bool are_to_one_element(std::span<const Access* const> accesses) {
  return !accesses.empty() && std::all_of(accesses.begin(), accesses.end(), [&](const Access* one) {
    return one->subscripts.size() == 1 && one->subscripts.front() == accesses.front()->subscripts.front();
  });
}

/// The one store among accesses (`a[i] = value;`, `a[i] += value;`) that is a statement; null if there are
/// others that write.
[[nodiscard]] inline const Access* only_store(std::span<const Access* const> accesses) {
  const Access* store = nullptr;
  for (const Access* access : accesses) {
    if (!access->write) continue;
    if (store != nullptr) return nullptr;
    store = access;
  }
  const bool plain = store != nullptr && store->statement != nullptr &&
                     store->statement->kind == NodeKind::expression_statement &&
                     operand(*store->statement).kind == NodeKind::assignment &&
                     &left_operand(operand(*store->statement)) == store->node;
  return plain ? store : nullptr;
}

/// What all work of a function's threads stands under, as far as it is comparisons of numbers: its early
/// returns, and the one branch that is all that follows declarations.
[[nodiscard]] inline WorkConditions conditions_of_work(const FunctionAnalysis& function) {
  std::set<const SyntaxNode*> branches;
  bool others = false;
  for (const SyntaxNode& statement : statements(function_body(*function.node))) {
    if (statement.kind == NodeKind::if_statement && else_branch(statement) == nullptr)
      branches.insert(&statement);
    else
      others = others || (statement.kind != NodeKind::declaration && statement.kind != NodeKind::comment);
  }
  std::size_t inside = 0;
  for (const SyntaxNode* branch : branches)
    inside += std::none_of(function.branch_comparisons.begin(), function.branch_comparisons.end(),
                           [&](const BranchComparison& one) { return one.branch == branch && one.behind; })
                  ? 1U
                  : 0U;
  WorkConditions conditions;
  for (const BranchComparison& one : function.branch_comparisons)
    if (one.number.defined() && branches.contains(one.branch) && (one.behind || (!others && inside == 1)))
      (one.equal ? conditions.zero : conditions.negative).push_back(one.number);
  return conditions;
}

/// The loop in steps of the grid that is all that the threads of a function do, declarations left out; null
/// if there is none.
[[nodiscard]] inline const LoopInfo* loop_of_grid(const FunctionAnalysis& function) {
  const auto body = statements(function_body(*function.node));
  if (body.empty()) return nullptr;
  const LoopInfo* const loop = function.find_loop(body.back());
  const bool alone = std::all_of(body.begin(), body.end() - 1, [](const SyntaxNode& statement) {
    return statement.kind == NodeKind::declaration || statement.kind == NodeKind::comment;
  });
  const auto names_block = [](const Symbol& symbol) { return symbol.name == block_index_names[0]; };
  if (loop != nullptr && !depends_on(loop->start, names_block)) return nullptr; // steps of a block
  const bool steps = loop != nullptr && (loop->stride.defined() || (loop->canonical && loop->step > 1));
  return steps && alone ? loop : nullptr;
}

/// The iterations of a loop in steps of the grid, all threads' together, write each element at most once, so
/// that they may be those of other threads.
[[nodiscard]] inline bool writes_each_once(const FunctionAnalysis& function, const LaunchText& launch,
                                           const LoopInfo& loop, const Task& task) {
  const auto sizes = sizes_to_prove(task);
  return std::all_of(function.accesses.begin(), function.accesses.end(), [&](const Access& access) {
    if (!access.write || access.array->place == ArrayPlace::own) return true;
    const Access* const one = &access;
    return access.subscripts.size() == 1 &&
           std::all_of(sizes.begin(), sizes.end(), [&](const Symbols& symbols) {
             return elements_at({&function, &launch, std::span(&one, 1)}, task, symbols, {}, &loop)
                 .has_value();
           });
  });
}

/// Whether a function is short enough for its branches, loops and accesses to be looked at again and again.
[[nodiscard]] inline bool is_short(const FunctionAnalysis& function) noexcept {
  constexpr std::size_t most = 500; // kernels have below 100 of each
  return function.branch_comparisons.size() < most && function.loops.size() < most &&
         function.accesses.size() < most;
}

/// Compares what one launch stores with what the next one needs, in threads that each need one element.
[[nodiscard]] inline ElementMatch match_elements(const BufferAccesses& made, const BufferAccesses& needed,
                                                 const Task& task) {
  if (!is_short(*made.function) || !is_short(*needed.function)) return ElementMatch::none;
  const Access* const store = only_store(made.accesses);
  if (store == nullptr || !are_to_one_element(made.accesses) || !are_to_one_element(needed.accesses))
    return ElementMatch::none;
  const auto conditions = work_conditions(*made.function, *store->statement);
  if (!conditions) return ElementMatch::none;
  const WorkConditions work = conditions_of_work(*needed.function);
  const LoopInfo* const loop = loop_of_grid(*needed.function);
  if (loop != nullptr && !writes_each_once(*needed.function, *needed.launch, *loop, task))
    return ElementMatch::none;
  ElementMatch match = ElementMatch::all;
  const auto sizes = sizes_to_prove(task);
  for (const Symbols& symbols : sizes) {
    const auto stored = elements_at(made, task, symbols, *conditions, store->loop);
    const auto wanted = elements_at(needed, task, symbols, work, loop);
    if (!stored || !wanted || !wanted->among(*stored)) return ElementMatch::none;
    if (*wanted == *stored) continue;
    // What is left out must be left out by conditions, which stay, and not for want of threads.
    const auto with_more = elements_at(needed, task, symbols, work, loop, 2);
    if (!with_more || !(*with_more == *wanted)) return ElementMatch::none;
    match = ElementMatch::among;
  }
  return sizes.empty() ? ElementMatch::none : match;
}

} // namespace mtmc::detail
