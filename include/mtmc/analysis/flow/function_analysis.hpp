#pragma once

#include <mtmc/analysis/flow/access.hpp>
#include <mtmc/analysis/flow/call_effects.hpp>
#include <mtmc/analysis/flow/loop_nest.hpp>
#include <mtmc/analysis/flow/polynomial.hpp>
#include <mtmc/analysis/flow/work_budget.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/core/structure.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// \file
/// The data flow of functions: everything the analyses know, computed in one pass over the syntax tree.
///
/// `KernelAnalysis` (kernel_analysis.hpp) makes it.

namespace mtmc::inline MTMC_ABI {

class KernelAnalysis;

/// Whether a value may differ between two executions: set of '<' (earlier iteration first), '=' and '>'.
enum class Directions : std::uint8_t { none = 0, less = 1, equal = 2, greater = 4, any = 7 };

/// A dependence between two array accesses: the sink must come after the source.
struct Dependence {
  /// Flow (write, read), anti (read, write) or output (write, write).
  DependenceKind kind = DependenceKind::flow;
  /// The access that comes first.
  const Access* source = nullptr;
  /// The access that must stay behind it.
  const Access* sink = nullptr;
  /// Loops around both, outermost first; one direction and one distance per loop. Directions relate the
  /// source's iteration to the sink's: `less` = the sink is in a later iteration.
  std::vector<const LoopInfo*> loops{};
  /// For each of `loops`, in which order the two iterations may stand.
  std::vector<Directions> directions{};
  /// Sink's minus source's iteration, counted in iterations, where it is one constant.
  std::vector<std::optional<std::int64_t>> distances{};
  /// Both ends belong to updates by the same operation (`a[i] += ...`): it may be broken by reordering, since
  /// only rounding changes.
  bool reduction = false;
};

/// Something a statement does that the analyses cannot see through.
struct OpaqueEffect {
  /// The statement or expression.
  const SyntaxNode* node = nullptr;
  /// The innermost loop around it, or null.
  const LoopInfo* loop = nullptr;
  /// 1-based line.
  int line = 0;
  /// "opaque text", "call of printf with unknown effects", ...
  std::string reason{};
};

/// A branch or a loop that decides whether what stands in it happens.
struct Guard {
  /// Index of the guard around it; 0 for the function itself, which is its own.
  std::size_t parent = 0;
  /// The loop whose body it is, or null for a branch (and for the function).
  const LoopInfo* loop = nullptr;
};

/// A place where the threads of a block wait for each other or exchange values: nothing moves across it.
struct Barrier {
  /// The statement.
  const SyntaxNode* node = nullptr;
  /// The innermost loop around it, or null.
  const LoopInfo* loop = nullptr;
  /// `warp` or `block`.
  Synchronization scope = Synchronization::block;
  /// As `Access::order`.
  std::size_t order = 0;
};

/// A comparison of a branch around work, or the opposite of one that returns early: `below < limit` wherever
/// something with an order in [first, last) happens.
struct GuardBound {
  Polynomial below{};    ///< the smaller side
  Polynomial limit{};    ///< the larger side, excluded
  std::size_t first = 0; ///< first position in the order for which it holds
  std::size_t last = 0;  ///< the position behind the last one
};

/// One of the comparisons that must all hold for what stands in a branch, or behind one that returns early,
/// to happen.
struct BranchComparison {
  const SyntaxNode* branch = nullptr; ///< the `if`
  bool behind = false; ///< the branch returns, and what must hold is the opposite of its condition
  bool equal = false;  ///< the number must be 0; else it must be below 0
  Polynomial number{}; ///< undefined for a condition of which nothing is known
};

/// A call in a function.
struct CallSite {
  std::string name{};               ///< of the function that is called
  const SyntaxNode* node = nullptr; ///< the call expression
  const LoopInfo* loop = nullptr;   ///< the innermost loop around it, or null
  bool transcendental = false;      ///< `exp`, `sin`, `pow`, ...: many operations for one call
};

/// What is known of one function. Its parts point at each other and into the syntax tree.
struct FunctionAnalysis {
  /// The function's definition.
  const SyntaxNode* node = nullptr;
  /// As the text names it.
  std::string name{};
  /// Stable path: its name, "f#2" for the second of that name.
  std::string path{};
  /// Parameters, locals and the globals it mentions.
  std::deque<Variable> variables{};
  /// Integers known by name.
  std::deque<Symbol> symbols{};
  /// What its accesses refer to.
  std::deque<Array> arrays{};
  /// All loops in the order of the text.
  std::deque<LoopInfo> loops{};
  /// The same by statement.
  std::unordered_map<const SyntaxNode*, const LoopInfo*> loop_of{};
  /// Accesses of arrays, in order.
  std::deque<Access> accesses{};
  /// Uses of scalars, in order.
  std::vector<ScalarUse> scalar_uses{};
  /// Branches and loops that decide whether something happens.
  std::vector<Guard> guards{};
  /// What the analyses cannot see through.
  std::vector<OpaqueEffect> opaque{};
  /// Calls, in order.
  std::vector<CallSite> calls{};
  /// In the order of the text.
  std::vector<Barrier> barriers{};
  /// Comparisons that guard the work of a thread.
  std::vector<GuardBound> guard_bounds{};
  /// All that branches compare, in the order of the text.
  std::vector<BranchComparison> branch_comparisons{};
  /// All dependences between array accesses, by the innermost loop around both: those of loop n before those
  /// of loop n + 1, those without a common loop first.
  std::vector<Dependence> dependences{};
  /// Polynomials over the function's parameters that are never negative, from the task's shapes (an extent
  /// is at least 1).
  std::vector<Polynomial> assumptions{};
  /// Floating-point operations outside all loops.
  double flops = 0;
  /// There is a branch outside all loops.
  bool branches = false;
  /// What proofs about the function may still cost; questions asked later (legality.hpp) spend it, too. All
  /// functions of a text share one.
  std::shared_ptr<WorkBudget> budget = std::make_shared<WorkBudget>();

  FunctionAnalysis() = default;
  FunctionAnalysis(const FunctionAnalysis&) = delete;
  FunctionAnalysis& operator=(const FunctionAnalysis&) = delete;

  /// The analysis of a loop statement, or null.
  [[nodiscard]] const LoopInfo* find_loop(const SyntaxNode& loop_node) const noexcept {
    const auto found = loop_of.find(&loop_node);
    return found == loop_of.end() ? nullptr : found->second;
  }
};

} // namespace mtmc
