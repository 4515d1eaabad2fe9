#pragma once
/// Loops whose iterations the threads of a row take in turn, and when the threads may take other iterations.

#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
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

/// `for (j = first + lane; j < bound; j += threads)`, where the threads of a row have the numbers `lane` from
/// 0 to `threads - 1`.
struct SharedLoop {
  const LoopInfo* loop = nullptr;
  SyntaxNode lane{};        ///< a thread's number in its row, as the loop says it
  std::int64_t threads = 1; ///< of a row
  std::int64_t first = 0;   ///< iteration of the row
  SyntaxNode bound{};       ///< excluded
  std::string type{};       ///< of the variable

  /// Whether both have the same threads, and iterations up to the same bound.
  [[nodiscard]] bool alike(const SharedLoop& other) const {
    return threads == other.threads && structurally_equal(lane, other.lane) &&
           loop->limits.front() == other.loop->limits.front();
  }
};

/// Whether a polynomial is the number of a thread among `threads` neighbours along x.
[[nodiscard]] inline bool is_lane(const Polynomial& number, const ThreadLaunch& launch,
                                  std::int64_t threads) {
  const auto symbol_of = [](const Polynomial& one) -> const Symbol* {
    const auto symbols = one.symbols();
    return symbols.size() == 1 && one == Polynomial(symbols.front()) ? symbols.front() : nullptr;
  };
  const Symbol* const symbol = symbol_of(number);
  const auto block = integer_literal(launch.line.block.front());
  if (symbol == nullptr || !block) return false;
  if (symbol->name == thread_index_names[0]) return threads == *block;
  if (symbol->kind != Symbol::Kind::derived || symbol->operands.size() != 2) return false;
  const Symbol* const index = symbol_of(symbol->operands.front());
  if (index == nullptr || index->name != thread_index_names[0] || *block % threads != 0) return false;
  const auto count = symbol->operands.back().constant();
  return (symbol->operation == "%" && count == threads) || (symbol->operation == "&" && count == threads - 1);
}

/// The loop as the threads of a row share it. Throws `TransformDeclined` where it is another one.
[[nodiscard]] inline SharedLoop shared_loop(const ThreadLaunch& launch, const LoopInfo& loop) {
  if (!loop.canonical)
    throw TransformDeclined("the loop in line " + std::to_string(loop.first_line) +
                            " is not a counting loop");
  const CountingLoop head = head_of(loop);
  if (!loop.innermost()) throw TransformDeclined("another loop stands in " + loop_name(loop));
  if (!loop.understood) throw TransformDeclined(loop_name(loop) + " contains something not understood");
  if (loop.has_continue) throw TransformDeclined(loop_name(loop) + " continues early");
  SharedLoop shared{&loop, head.first, head.step, 0, head.bound, head.type};
  if (!loop.start.defined() || loop.limits.size() != 1)
    throw TransformDeclined("the bounds of " + loop_name(loop) + " are not understood");
  shared.first = loop.start.constant_term();
  if (shared.first < 0 || !is_lane(loop.start - Polynomial(shared.first), launch, shared.threads))
    throw TransformDeclined("neighbouring threads do not take neighbouring iterations of " + loop_name(loop));
  if (shared.first != 0) {
    if (head.first.kind != NodeKind::binary || head.first.text != "+")
      throw TransformDeclined("the first iteration of " + loop_name(loop) + " is not understood");
    const bool left = literal_value(left_operand(head.first)) == shared.first;
    if (!left && literal_value(right_operand(head.first)) != shared.first)
      throw TransformDeclined("the first iteration of " + loop_name(loop) + " is not understood");
    shared.lane = left ? right_operand(head.first) : left_operand(head.first);
  }
  return shared;
}

/// Throws `TransformDeclined` unless the iterations of a shared loop may be given to other threads, as far as
/// variables are concerned.
inline void require_regroupable(const LoopInfo& loop, RowUniformity& uniform) {
  const Legality parallel = loop_is_parallel(loop);
  const Legality reduction = parallel ? Legality{} : loop_is_reduction(loop);
  if (!parallel && !reduction) throw TransformDeclined(reduction.reason);
  if (!parallel)
    for (const Reduction& one : reductions_of(loop))
      if (one.scalar == nullptr)
        throw TransformDeclined(loop_name(loop) + " accumulates into elements of " + one.array->name);
  for (const ScalarFacts& scalar : classify_scalars(loop))
    if (scalar.role == ScalarRole::privatizable && scalar.live_out)
      throw TransformDeclined("the last value of " + scalar.variable->name + " in " + loop_name(loop) +
                              " is used after it");
  std::vector<std::string> accumulators;
  if (!parallel)
    for (const Reduction& one : reductions_of(loop)) accumulators.push_back(one.scalar->name);
  if (const SyntaxNode* const found = uniform.thread_dependence(*loop.node, loop.variable, accumulators))
    throw TransformDeclined("in " + loop_name(loop) + " the value of " + print(*found) +
                            " depends on the thread that has the iteration");
}

/// The nodes around a node, outermost first, from `root` on; empty where it is not below.
[[nodiscard]] inline std::vector<const SyntaxNode*> nodes_around(const SyntaxNode& root,
                                                                 const SyntaxNode& node) {
  std::vector<const SyntaxNode*> path;
  const auto search = [&](const auto& self, const SyntaxNode& at) -> bool {
    if (&at == &node) return true;
    path.push_back(&at);
    for (const SyntaxNode& child : at.children)
      if (self(self, child)) return true;
    path.pop_back();
    return false;
  };
  if (!search(search, root)) path.clear();
  return path;
}

/// Throws `TransformDeclined` unless all threads of a row come to a statement together, and once.
inline void require_together(const FunctionAnalysis& function, const RowUniformity& uniform,
                             const SyntaxNode& statement) {
  const auto around = nodes_around(function_body(*function.node), statement);
  for (std::size_t i = 0; i < around.size(); ++i) {
    const SyntaxNode& node = *around[i];
    if (node.kind == NodeKind::block) continue;
    const std::string line = "line " + std::to_string(node.range.first_line);
    if (node.kind != NodeKind::if_statement) throw TransformDeclined(line + " is a loop around a row's work");
    const SyntaxNode* const inner = i + 1 < around.size() ? around[i + 1] : &statement;
    if (inner == else_branch(node))
      throw TransformDeclined(line + " has a faster way already, of which this is the other one");
    if (!uniform.holds(if_condition(node), node))
      throw TransformDeclined("not all threads of a row may come to line " +
                              std::to_string(statement.range.first_line));
  }
}

/// Throws `TransformDeclined` unless threads that end early do so with all of their row.
inline void require_returns_together(const FunctionAnalysis& function, const RowUniformity& uniform) {
  walk(function_body(*function.node), [&](const SyntaxNode& node) {
    if (node.kind == NodeKind::return_statement) require_together(function, uniform, node);
  });
}

/// Whether a call lets the threads of a row see what all of them wrote before.
[[nodiscard]] inline bool makes_writes_seen(const SyntaxNode& tree, const SyntaxNode& call, bool warp) {
  if (is_call_of(call, "__syncthreads") || (warp && is_call_of(call, "__syncwarp"))) return true;
  if (call.kind != NodeKind::call || callee(call).kind != NodeKind::name) return false;
  const SyntaxNode* const called = find_function(tree, callee(call).text);
  if (called == nullptr) return false;
  const auto body = statements(function_body(*called));
  return std::any_of(body.begin(), body.end(), is_block_barrier);
}

/// Whether other threads may take the iterations of some loops, as far as memory is concerned: what one
/// thread writes and another touches then has a barrier between them.
class OwnershipChange {
public:
  /// Iteration j of all `loops` goes to one thread before and after, but another one.
  OwnershipChange(const SyntaxNode& tree, const FunctionAnalysis& function, std::span<const SharedLoop> loops)
      : tree_(tree), function_(function), loops_(loops) {}

  /// Throws `TransformDeclined` with the reason where they may not.
  void require_legal() const {
    for (const Access& access : function_.accesses) {
      const SharedLoop* const inside = loop_around(access);
      if (inside == nullptr) continue;
      if (access.array->unknown)
        throw TransformDeclined("it is not known what " + access.array->name + " points to");
      if (access.array->place == ArrayPlace::own &&
          (access.array->variable == nullptr || access.array->variable->loop == nullptr))
        throw TransformDeclined("each thread has an array of its own, " + access.array->name);
      for (const Access& other : function_.accesses)
        if (other.array == access.array && (other.write || access.write) && conflict(access, *inside, other))
          throw TransformDeclined("other threads touch the elements of " + access.array->name +
                                  " that a thread has in " + loop_name(*inside->loop) +
                                  ", with no barrier between");
    }
  }

private:
  [[nodiscard]] const SharedLoop* loop_around(const Access& access) const {
    for (const SharedLoop& shared : loops_)
      if (access.loop != nullptr && access.loop->inside(shared.loop)) return &shared;
    return nullptr;
  }
  [[nodiscard]] bool conflict(const Access& access, const SharedLoop& inside, const Access& other) const {
    const SharedLoop* const around = loop_around(other);
    if (around == &inside) return false; // the iterations of one loop are independent
    // What every iteration reads all threads read before, too.
    if (!access.write && !moves(access, inside)) return false;
    if (around != nullptr && !other.write && !moves(other, *around)) return false;
    if (around != nullptr && around->alike(inside) && same_element(access, inside, other, *around))
      return false;
    const auto span = [](const Access& one) {
      const LoopInfo* loop = one.loop;
      while (loop != nullptr && loop->parent != nullptr) loop = loop->parent;
      return loop == nullptr ? LoopInfo::Span{one.order, one.order} : loop->order;
    };
    const LoopInfo::Span a = span(access), b = span(other);
    const bool before = a.first < b.first;
    const std::size_t from = before ? a.last : b.last, to = before ? b.first : a.first;
    return std::none_of(function_.barriers.begin(), function_.barriers.end(), [&](const Barrier& barrier) {
      return barrier.loop == nullptr && barrier.order >= from && barrier.order <= to &&
             makes_writes_seen(tree_, *barrier.node, inside.threads == 32) && certainly_reached(barrier);
    });
  }
  /// No branch but those around the rows' work stands around it.
  [[nodiscard]] bool certainly_reached(const Barrier& barrier) const {
    const auto& body = function_body(*function_.node);
    const auto around = nodes_around(body, *barrier.node);
    const auto work = nodes_around(body, *loops_.front().loop->node);
    return std::all_of(around.begin(), around.end(), [&](const SyntaxNode* node) {
      const bool decides = node->kind == NodeKind::if_statement || node->kind == NodeKind::conditional ||
                           (node->kind == NodeKind::binary && (node->text == "&&" || node->text == "||"));
      return !decides || std::find(work.begin(), work.end(), node) != work.end();
    });
  }
  /// The access is not certainly to the same element in all iterations.
  [[nodiscard]] static bool moves(const Access& access, const SharedLoop& shared) {
    return access.subscripts.empty() ||
           std::any_of(access.subscripts.begin(), access.subscripts.end(), [&](const Polynomial& subscript) {
             if (!subscript.defined()) return true;
             const auto symbols = expanded(subscript).symbols();
             return std::any_of(symbols.begin(), symbols.end(), [&](const Symbol* symbol) {
               return symbol->loop != nullptr && symbol->loop->inside(shared.loop);
             });
           });
  }
  /// Both touch the element of their iteration.
  [[nodiscard]] static bool same_element(const Access& a, const SharedLoop& first, const Access& b,
                                         const SharedLoop& second) {
    if (a.subscripts.size() != b.subscripts.size()) return false;
    bool moves = false;
    for (std::size_t i = 0; i < a.subscripts.size(); ++i) {
      if (!a.subscripts[i].defined() || !b.subscripts[i].defined()) return false;
      const Polynomial renamed =
          b.subscripts[i].substitute(second.loop->symbol, Polynomial(first.loop->symbol));
      if (!(expanded(renamed) == expanded(a.subscripts[i]))) return false;
      moves = moves || a.subscripts[i].degree_in(first.loop->symbol) == 1;
    }
    return moves;
  }

  const SyntaxNode& tree_;
  const FunctionAnalysis& function_;
  std::span<const SharedLoop> loops_;
};

} // namespace mtmc::detail
