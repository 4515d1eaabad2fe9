#pragma once
/// Rows that a block or a warp goes through several times: what a thread has of them waits in its registers.

#include <mtmc/analysis/flow/call_effects.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/row_passes.hpp>
#include <mtmc/coder/transform/threads/row_streams.hpp>
#include <mtmc/coder/transform/threads/row_work.hpp>
#include <mtmc/coder/transform/threads/shared_loops.hpp>
#include <mtmc/coder/transform/threads/vector_types.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Decides what of a row's streams stays in registers, and what memory still gives and gets.
class RowKeeper {
public:
  RowKeeper(const FunctionAnalysis& function, std::span<const SharedLoop> loops,
            std::span<const RowStream> streams)
      : function_(function), loops_(loops), streams_(streams) {}

  /// The streams that the new loops move. With a width of 1 only those that are kept.
  [[nodiscard]] std::vector<MovedStream> moved(std::int64_t width) const {
    std::vector<MovedStream> result;
    for (const RowStream& stream : streams_) {
      MovedStream one{&stream, vector_type(stream.element, width), is_kept(stream)};
      if (width > 1 && (!one.vector || !divisible_parameters(function_, stream.start, width))) continue;
      if (width == 1 && !one.kept) continue;
      for (std::size_t i = 0; i < loops_.size(); ++i) {
        const StreamUse& use = stream.uses[i];
        if (use.read_first && (!one.kept || i == stream.first_loop())) one.loads.insert(i);
        if (use.writes && !(one.kept && is_stored_again(stream, i))) one.stores.insert(i);
      }
      result.push_back(std::move(one));
    }
    return result;
  }

  /// Values that a loop computes by a call from kept elements, and a later loop again.
  [[nodiscard]] std::vector<KeptValue> values(std::span<const MovedStream> moved, std::int64_t width) const {
    std::vector<KeptValue> result;
    for (std::size_t i = 0; i + 1 < loops_.size(); ++i)
      for (const SyntaxNode* call : calls_in(i)) {
        const bool known = std::any_of(result.begin(), result.end(), [&](const KeptValue& value) {
          const auto nodes = value.nodes.find(i);
          return nodes != value.nodes.end() &&
                 std::find(nodes->second.begin(), nodes->second.end(), call) != nodes->second.end();
        });
        if (known || !depends_on_kept(*call, i, moved)) continue;
        KeptValue value{call, i, "float", vector_type("float", width)};
        for (std::size_t later = i; later < loops_.size(); ++later) {
          if (!stays(*call, i, later, moved)) break;
          for (const SyntaxNode* other : calls_in(later))
            if (same_value(*call, i, *other, later)) value.nodes[later].push_back(other);
        }
        if (value.nodes.size() > 1) result.push_back(std::move(value));
      }
    return result;
  }

private:
  /// Some loop reads what an earlier one read or wrote, and in between only the loops write it.
  [[nodiscard]] bool is_kept(const RowStream& stream) const {
    const std::size_t first = stream.first_loop();
    const std::size_t last = stream.last_loop();
    if (first == last) return false;
    bool read_again = false;
    for (std::size_t i = first + 1; i <= last; ++i)
      read_again = read_again || (stream.uses[i].any() && stream.uses[i].read_first);
    return read_again &&
           std::all_of(function_.accesses.begin(), function_.accesses.end(), [&](const Access& access) {
             return access.array != stream.array || !access.write ||
                    access.order < loops_[first].loop->order.first ||
                    access.order >= loops_[last].loop->order.last || is_of(stream, access);
           });
  }
  [[nodiscard]] static bool is_of(const RowStream& stream, const Access& access) {
    return std::any_of(stream.uses.begin(), stream.uses.end(), [&](const StreamUse& use) {
      return std::find(use.nodes.begin(), use.nodes.end(), access.node) != use.nodes.end();
    });
  }
  /// A later loop stores all of it again, before anything else looks at the array.
  [[nodiscard]] bool is_stored_again(const RowStream& stream, std::size_t loop) const {
    for (std::size_t later = loop + 1; later < loops_.size(); ++later) {
      if (!stream.uses[later].writes) continue;
      return std::all_of(function_.accesses.begin(), function_.accesses.end(), [&](const Access& access) {
        return access.array != stream.array || access.order < loops_[loop].loop->order.first ||
               access.order >= loops_[later].loop->order.last || is_of(stream, access);
      });
    }
    return false;
  }

  /// Calls of functions that are worth a register, each of them made for every element.
  [[nodiscard]] std::vector<const SyntaxNode*> calls_in(std::size_t loop) const {
    constexpr std::array<std::string_view, 18> dear{
        "expf", "exp2f", "exp10f", "expm1f", "logf",  "log2f",  "log10f", "log1pf", "tanhf",
        "erff", "powf",  "sinf",   "cosf",   "sqrtf", "__expf", "__logf", "cbrtf",  "rsqrtf"};
    std::vector<const SyntaxNode*> found;
    const auto visit = [&](const auto& self, const SyntaxNode& node) -> void {
      if (node.kind == NodeKind::if_statement || node.kind == NodeKind::conditional)
        return self(self, node.children.front());
      if (node.kind == NodeKind::binary && (node.text == "&&" || node.text == "||"))
        return self(self, left_operand(node));
      if (node.kind == NodeKind::call && callee(node).kind == NodeKind::name &&
          std::find(dear.begin(), dear.end(), callee(node).text) != dear.end()) {
        found.push_back(&node);
        return;
      }
      for (const SyntaxNode& child : node.children) self(self, child);
    };
    visit(visit, loop_body(*loops_[loop].loop->node));
    return found;
  }

  /// Of memory the call reads elements of kept streams alone, and at least one.
  [[nodiscard]] bool depends_on_kept(const SyntaxNode& call, std::size_t loop,
                                     std::span<const MovedStream> moved) const {
    std::size_t elements = 0, others = 0;
    walk(call, [&](const SyntaxNode& node) {
      for (const Access& access : function_.accesses) {
        if (access.node != &node) continue;
        const bool kept = std::any_of(moved.begin(), moved.end(), [&](const MovedStream& one) {
          const auto& nodes = one.stream->uses[loop].nodes;
          return one.kept && std::find(nodes.begin(), nodes.end(), &node) != nodes.end();
        });
        ++(kept && !access.write ? elements : others);
      }
      others +=
          node.kind == NodeKind::opaque || node.kind == NodeKind::assignment || node.kind == NodeKind::postfix
              ? 1
              : 0;
    });
    return elements > 0 && others == 0;
  }

  /// Nothing that the call depends on changes from the loop it stands in to the end of a later one.
  [[nodiscard]] bool stays(const SyntaxNode& call, std::size_t loop, std::size_t later,
                           std::span<const MovedStream> moved) const {
    const std::size_t from = loops_[loop].loop->order.first, to = loops_[later].loop->order.last;
    for (const std::string& name : names_used(call))
      for (const Variable& variable : function_.variables) {
        if (variable.name != name || &variable == loops_[loop].loop->control) continue;
        if (variable.loop != nullptr && variable.loop != loops_[loop].loop &&
            variable.loop != loops_[later].loop)
          continue; // a name of another loop's own
        if (variable.loop != nullptr) {
          if (&variable == loops_[later].loop->control) continue;
          return false;
        }
        if (variable.address_taken || variable.persistent) return false;
        for (const std::size_t at : variable.uses) {
          const ScalarUse& use = function_.scalar_uses[at];
          if (use.write && use.order >= from && use.order < to) return false;
        }
      }
    for (const MovedStream& one : moved) {
      const auto& nodes = one.stream->uses[loop].nodes;
      bool used = false;
      walk(call, [&](const SyntaxNode& node) {
        used = used || std::find(nodes.begin(), nodes.end(), &node) != nodes.end();
      });
      if (!used) continue;
      for (const Access& access : function_.accesses)
        if (access.array == one.stream->array && access.write && access.order >= from && access.order < to)
          return false;
    }
    return true;
  }

  /// Two calls have the same value for the same element.
  [[nodiscard]] bool same_value(const SyntaxNode& a, std::size_t in_a, const SyntaxNode& b,
                                std::size_t in_b) const {
    if (loops_[in_a].first > loops_[in_b].first) return false;
    SyntaxNode renamed = b;
    if (in_a != in_b)
      substitute(renamed, loops_[in_b].loop->variable, make_name(loops_[in_a].loop->variable));
    return structurally_equal(a, renamed);
  }

  const FunctionAnalysis& function_;
  std::span<const SharedLoop> loops_;
  std::span<const RowStream> streams_;
};

/// A way to keep a row.
struct RetentionShape {
  GroupShape groups{};
  bool values = true; ///< keep also what is computed of the elements
};

/// Ways to keep rows, the one expected to be best first: by vectors, and with what is dear to compute. A
/// thread has at most 32 elements.
[[nodiscard]] inline std::vector<RetentionShape> retention_shapes(std::optional<std::int64_t> length,
                                                                  std::int64_t threads) {
  constexpr std::int64_t most = 32, usual = 8;
  std::vector<RetentionShape> shapes;
  const auto add = [&](std::int64_t width, bool values) {
    const std::int64_t in_turn = width * threads;
    const std::int64_t groups =
        length ? std::max<std::int64_t>((*length + in_turn - 1) / in_turn, 1) : usual / width;
    if (groups * width <= most) shapes.push_back({{width, groups, false}, values});
  };
  const std::int64_t divisible = length.value_or(4);
  const std::int64_t widest = divisible % 4 == 0 ? 4 : divisible % 2 == 0 ? 2 : 1;
  add(widest, true);
  add(widest, false);
  if (widest > 1) add(1, true);
  if (widest > 2) add(2, true);
  return shapes;
}

/// What a thread reads of its row in one loop it keeps for the next ones, where the row is short enough.
[[nodiscard]] inline SyntaxNode retain_rows(const TransformRequest& request) {
  const RowWork work(request);
  const std::vector<SharedLoop> loops = work.loops_alike();
  work.require_ownership(loops);
  const auto length = work.length(request, loops.front());

  struct Plan {
    RetentionShape shape;
    std::vector<MovedStream> moved;
    std::vector<KeptValue> values;
  };
  std::vector<std::vector<RowStream>> streams;
  std::vector<Plan> plans;
  bool again = false;
  const auto shapes = retention_shapes(length, loops.front().threads);
  streams.reserve(shapes.size());
  for (const RetentionShape& shape : shapes) {
    const std::int64_t width = shape.groups.width;
    if (width > 1 && latest_first(loops) >= width) continue;
    streams.push_back(StreamFinder(work.function(), loops, width > 1 ? 0 : earliest_first(loops)).run());
    const RowKeeper keeper(work.function(), loops, streams.back());
    Plan plan{shape, keeper.moved(width), {}};
    const auto kept = static_cast<std::int64_t>(
        std::count_if(plan.moved.begin(), plan.moved.end(), [](const MovedStream& one) { return one.kept; }));
    if (kept == 0) continue;
    again = true;
    constexpr std::int64_t registers = 64; // of the 255 that a thread may have
    if (kept * shape.groups.each() > registers) continue;
    if (shape.values) plan.values = keeper.values(plan.moved, width);
    if (shape.values || !keeper.values(plan.moved, width).empty()) plans.push_back(std::move(plan));
  }
  if (shapes.empty() || (again && plans.empty()))
    throw TransformDeclined("a row of " + std::to_string(length.value_or(0)) + " elements is too long for " +
                            std::to_string(loops.front().threads) + " threads to keep");
  if (plans.empty())
    throw TransformDeclined(work.left_out().empty() ? "no loop of a row reads what an earlier one had"
                                                    : work.left_out());
  const Plan plan = choose_variant(plans, request.variant);

  const std::int64_t fits = plan.shape.groups.each() * loops.front().threads;
  const RowPasses passes(request.tree, loops, plan.shape.groups, plan.moved, plan.values);
  const std::int64_t before_first = plan.shape.groups.width > 1 ? 0 : earliest_first(loops);
  std::vector<std::string> conditions{print(loops.front().bound) +
                                      " <= " + std::to_string(fits + before_first)};
  for (std::string& condition : passes.conditions(work.function()))
    conditions.push_back(std::move(condition));
  return work.with_faster_way(request.tree, loops, passes, conditions,
                              "Rows of up to " + std::to_string(fits) + " elements wait in registers.");
}

} // namespace mtmc::detail
