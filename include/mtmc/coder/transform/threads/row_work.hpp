#pragma once
/// What the threads of a row do together: the shared loops of a launch's function, and a faster way through
/// them beside the one that is there.

#include <mtmc/analysis/flow/call_effects.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/row_passes.hpp>
#include <mtmc/coder/transform/threads/shared_loops.hpp>
#include <mtmc/coder/transform/threads/uniformity.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The least first iteration of some loops.
[[nodiscard]] inline std::int64_t earliest_first(std::span<const SharedLoop> loops) {
  std::int64_t first = loops.front().first;
  for (const SharedLoop& shared : loops) first = std::min(first, shared.first);
  return first;
}
/// The largest first iteration of some loops.
[[nodiscard]] inline std::int64_t latest_first(std::span<const SharedLoop> loops) {
  std::int64_t first = 0;
  for (const SharedLoop& shared : loops) first = std::max(first, shared.first);
  return first;
}

/// The shared loops of a function that stand in one block.
class RowWork {
public:
  /// Throws `TransformDeclined` where the action's function has none.
  explicit RowWork(const TransformRequest& request)
      : launch_(thread_launch(request)), tree_(request.tree), effects_(request.tree) {
    const FunctionAnalysis& function = *launch_.function;
    if (!function.opaque.empty())
      throw TransformDeclined("line " + std::to_string(function.opaque.front().line) + " contains " +
                              function.opaque.front().reason);
    for (const LoopInfo& loop : function.loops) {
      if (!loop.innermost()) continue;
      try {
        loops_.push_back(checked(loop));
      } catch (const TransformDeclined& declined) {
        left_out_ = declined.what();
      }
    }
    if (loops_.empty())
      throw TransformDeclined(left_out_.empty() ? "the threads of " + launch_.line.entry + " share no loop"
                                                : left_out_);
    const SyntaxNode* const block = block_of(*loops_.front().loop);
    std::erase_if(loops_, [&](const SharedLoop& shared) { return block_of(*shared.loop) != block; });
  }

  [[nodiscard]] const FunctionAnalysis& function() const noexcept { return *launch_.function; }
  [[nodiscard]] const ThreadLaunch& launch() const noexcept { return launch_; }
  /// All shared loops of the block, in order.
  [[nodiscard]] std::span<const SharedLoop> loops() const noexcept { return loops_; }

  /// Why the last of the other loops is none of them; empty where there is no other.
  [[nodiscard]] const std::string& left_out() const noexcept { return left_out_; }

  /// Those of the loops that go through the same elements as most of them.
  [[nodiscard]] std::vector<SharedLoop> loops_alike() const {
    std::vector<SharedLoop> best;
    for (const SharedLoop& one : loops_) {
      std::vector<SharedLoop> alike;
      for (const SharedLoop& other : loops_)
        if (one.alike(other)) alike.push_back(other);
      if (alike.size() > best.size()) best = std::move(alike);
    }
    return best;
  }

  /// One loop whose iterations other threads may have. Throws `TransformDeclined` where they may not.
  [[nodiscard]] SharedLoop checked(const LoopInfo& loop) const {
    SharedLoop shared = shared_loop(launch_, loop);
    const FunctionAnalysis& function = *launch_.function;
    const bool block_waits =
        std::any_of(function.barriers.begin(), function.barriers.end(),
                    [](const Barrier& barrier) { return barrier.scope == Synchronization::block; });
    RowUniformity row(tree_, *function.node, effects_, shared.threads, false);
    require_returns_together(function, row);
    require_together(function, row, *loop.node);
    require_regroupable(loop, row);
    if (!RowUniformity(tree_, *function.node, effects_, shared.threads, block_waits)
             .holds(shared.bound, *loop.node))
      throw TransformDeclined("the threads of a block may have other bounds of " + loop_name(loop));
    if (block_of(loop) == nullptr) throw TransformDeclined(loop_name(loop) + " stands in no block");
    return shared;
  }

  /// Throws `TransformDeclined` where memory does not allow that other threads have the loops' iterations.
  void require_ownership(std::span<const SharedLoop> loops) const {
    try {
      OwnershipChange(tree_, *launch_.function, loops).require_legal();
    } catch (const TransformDeclined&) {
      if (left_out_.empty() || loops.size() < loops_.size()) throw;
      throw TransformDeclined(left_out_); // with that loop they might be allowed
    }
  }

  /// Elements of a row at the task's main size, where they are known.
  [[nodiscard]] std::optional<std::int64_t> length(const TransformRequest& request,
                                                   const SharedLoop& shared) const {
    const ProblemSize* const size = request.task.main_size();
    if (size == nullptr) return std::nullopt;
    Symbols symbols = size->symbols;
    const auto formal = parameters(*launch_.function->node);
    for (std::size_t i = 0; i < formal.size() && i < launch_.line.arguments.size(); ++i)
      if (const auto value = value_at_main_size(request, launch_.line.arguments[i]))
        symbols[formal[i].text] = *value;
    return value_at(shared.loop->limits.front(), symbols);
  }

  /// The tree with `passes` in place of the loops where the conditions hold. All that follows the first loop
  /// in its block stands in both ways, or with one loop only that.
  [[nodiscard]] SyntaxNode with_faster_way(const SyntaxNode& tree, std::span<const SharedLoop> loops,
                                           const RowPasses& passes,
                                           const std::vector<std::string>& conditions,
                                           const std::string& comment) const {
    SyntaxNode result = tree;
    const SyntaxNode& block = *block_of(*loops.front().loop);
    const auto at = [&block](const SyntaxNode& statement) {
      return static_cast<std::size_t>(&statement - block.children.data());
    };
    std::size_t first = at(*loops.front().loop->node);
    const std::size_t last = loops.size() > 1 ? block.children.size() : first + 1;
    while (first > 0 && block.children[first - 1].kind == NodeKind::pragma) --first;
    std::vector<SyntaxNode> faster = passes.declarations();
    for (std::size_t i = first; i < last; ++i) {
      walk(block.children[i], [](const SyntaxNode& node) {
        if (node.kind == NodeKind::return_statement)
          throw TransformDeclined("line " + std::to_string(node.range.first_line) +
                                  " ends a thread between the loops of its row");
      });
      std::size_t number = 0;
      while (number < loops.size() && loops[number].loop->node != &block.children[i]) ++number;
      if (number == loops.size()) {
        faster.push_back(block.children[i]);
        continue;
      }
      while (!faster.empty() && faster.back().kind == NodeKind::pragma) faster.pop_back();
      for (SyntaxNode& statement : passes.write(number)) faster.push_back(std::move(statement));
    }
    add_faster_way(same_place(result, tree, block), first, last, conditions, std::move(faster), comment);
    return result;
  }

private:
  /// The block that a loop stands in; null where it is the only statement of a branch.
  [[nodiscard]] const SyntaxNode* block_of(const LoopInfo& loop) const {
    const auto around = nodes_around(*launch_.function->node, *loop.node);
    return !around.empty() && around.back()->kind == NodeKind::block ? around.back() : nullptr;
  }
  /// The node of a copy that stands where `node` stands in the original.
  [[nodiscard]] static SyntaxNode& same_place(SyntaxNode& copy, const SyntaxNode& original,
                                              const SyntaxNode& node) {
    auto path = nodes_around(original, node);
    path.push_back(&node);
    SyntaxNode* at = &copy;
    for (std::size_t i = 1; i < path.size(); ++i)
      at = &at->children[static_cast<std::size_t>(path[i] - path[i - 1]->children.data())];
    return *at;
  }

  ThreadLaunch launch_;
  const SyntaxNode& tree_;
  CallEffects effects_;
  std::vector<SharedLoop> loops_{};
  std::string left_out_{};
};

} // namespace mtmc::detail
