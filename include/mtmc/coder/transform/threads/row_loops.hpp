#pragma once
/// Which loops of a thread's row its threads share, and the heads of loops that are shared.

#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/coder/transform/unrolling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// A loop whose iterations are shared: one of a thread's loops, or the one in it.
struct LoopToShare {
  const LoopInfo* loop = nullptr;
  CarriedScalars carried{}; ///< by the outer one of them
};

/// Chooses the loops that are shared.
class RowLoops {
public:
  /// Of a launch: the task's main size tells which loop of a nest is longer.
  RowLoops(const TransformRequest& request, const ThreadLaunch& launch) {
    const ProblemSize* const size = request.task.main_size();
    if (size == nullptr) return;
    values_ = size->symbols;
    const auto formal = parameters(*launch.function->node);
    for (std::size_t i = 0; i < formal.size() && i < launch.line.arguments.size(); ++i)
      if (formal[i].type.find('*') == std::string::npos)
        if (const auto value = value_at_main_size(request, launch.line.arguments[i]))
          values_[formal[i].text] = *value;
  }

  /// Iterations of a loop at the main size, where they are known.
  [[nodiscard]] std::optional<std::int64_t> trips(const LoopInfo& loop) const {
    return trip_count(loop, values_);
  }

  /// The loop itself, or, where all iterations of both are independent, the one in it, if that is longer.
  [[nodiscard]] LoopToShare of(const LoopInfo& loop) const {
    LoopToShare shared{&loop, carried_scalars(loop)};
    if (!shared.carried.legality) return shared;
    const LoopNest nest = nest_of(loop);
    for (std::size_t level = 1; level < nest.size(); ++level) {
      const LoopInfo& inner = nest.loop(level);
      if (!could_share(nest.levels[level - 1], inner, shared.carried)) break;
      const auto own = trips(*shared.loop), within = trips(inner);
      constexpr std::int64_t warp = 32;
      if (own && (within ? *within > *own : *own < warp)) shared.loop = &inner;
    }
    return shared;
  }
  /// Iterations of the longest loop that is shared, at the main size.
  [[nodiscard]] std::optional<std::int64_t> longest(const FunctionAnalysis& function) const {
    std::optional<std::int64_t> result;
    for (const LoopInfo& loop : function.loops) {
      if (loop.parent != nullptr || !loop.canonical) continue;
      if (const auto count = trips(*of(loop).loop)) result = std::max(result.value_or(0), *count);
    }
    return result;
  }

private:
  /// All that an outer iteration does stands in the inner loop, whose iterations are as independent as its
  /// own.
  [[nodiscard]] static bool could_share(const NestLevel& around, const LoopInfo& inner,
                                        const CarriedScalars& carried) {
    if (inner.variable_type.empty()) return false;
    const CarriedScalars own = carried_scalars(inner);
    if (!own.legality || own.single.size() != carried.single.size() ||
        own.joint.size() != carried.joint.size())
      return false;
    for (const JointReduction& joint : carried.joint)
      if (joint.kind == JointKind::place || joint.counted != nullptr || // the order of both loops counts
          std::none_of(own.joint.begin(), own.joint.end(), [&](const JointReduction& other) {
            return other.kind == joint.kind && other.leader == joint.leader;
          }))
        return false;
    for (const Reduction& reduction : carried.single)
      if (std::none_of(own.single.begin(), own.single.end(), [&](const Reduction& other) {
            return other.scalar == reduction.scalar && other.operation == reduction.operation;
          }))
        return false;
    const auto is_declaration = [](const SyntaxNode& statement) {
      return statement.kind == NodeKind::declaration || statement.kind == NodeKind::comment;
    };
    if (!around.after.empty() || !std::all_of(around.before.begin(), around.before.end(), is_declaration))
      return false;
    const auto is_used = [&](const Variable* scalar) {
      return std::any_of(around.before.begin(), around.before.end(),
                         [&](const SyntaxNode& statement) { return uses_name(statement, scalar->name); });
    };
    return std::none_of(own.single.begin(), own.single.end(),
                        [&](const Reduction& reduction) { return is_used(reduction.scalar); }) &&
           std::none_of(own.joint.begin(), own.joint.end(),
                        [&](const JointReduction& joint) { return is_used(joint.leader); });
  }

  Symbols values_{};
};

/// `for (j = first + lane; j < bound; j += threads)`, or the same downwards.
inline void share_head(const LoopInfo& loop, SyntaxNode& statement, const std::string& lane,
                       std::int64_t threads) {
  const std::int64_t distance = loop.step > 0 ? loop.step : -loop.step;
  SyntaxNode offset =
      distance == 1 ? make_name(lane) : make_binary("*", make_integer(distance), make_name(lane));
  SyntaxNode made;
  if (loop.step > 0) {
    const CountingLoop head = head_of(loop);
    SyntaxNode first =
        literal_value(head.first) == 0 ? std::move(offset) : make_binary("+", head.first, std::move(offset));
    made = make_counting_loop(head.type, head.variable, std::move(first), head.bound,
                              make_integer(distance * threads), loop_body(statement));
  } else {
    if (loop.variable_type.empty())
      throw TransformDeclined("the variable of " + loop_name(loop) +
                              " is declared outside: its value may be used after the loop");
    if (is_unsigned_type(loop.variable_type) || loop.comparison.empty())
      throw TransformDeclined(loop_name(loop) + " does not count down with a sign to a bound");
    const std::string comparison = loop.comparison == ">=" ? ">=" : ">";
    made =
        make_for(make_declaration(loop.variable_type, loop.variable,
                                  make_binary("-", *loop.start_expression, std::move(offset))),
                 make_binary(comparison, make_name(loop.variable), *loop.bound_expression),
                 make_assignment_expression(make_name(loop.variable), "-=", make_integer(distance * threads)),
                 loop_body(statement));
  }
  made.leading_trivia = statement.leading_trivia;
  made.trailing_trivia = statement.trailing_trivia;
  statement = std::move(made);
}

} // namespace mtmc::detail
