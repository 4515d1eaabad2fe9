#pragma once
/// Shared loops of a row by vectors: a thread loads and stores several neighbouring elements at once.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/row_passes.hpp>
#include <mtmc/coder/transform/threads/row_streams.hpp>
#include <mtmc/coder/transform/threads/row_work.hpp>
#include <mtmc/coder/transform/threads/shared_loops.hpp>
#include <mtmc/coder/transform/threads/vector_types.hpp>
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

/// Ways to go through a row by vectors, the one expected to be best first: as many in flight as a thread has
/// of the row, up to four.
[[nodiscard]] inline std::vector<GroupShape> vector_shapes(std::optional<std::int64_t> length,
                                                           std::int64_t threads) {
  constexpr std::int64_t usual = 2, most = 4;
  std::vector<GroupShape> shapes;
  for (const std::int64_t width : {4, 2}) {
    if (length && *length % width != 0) continue;
    const std::int64_t in_turn = width * threads;
    const std::int64_t groups = length ? std::max<std::int64_t>((*length + in_turn - 1) / in_turn, 1) : usual;
    for (const std::int64_t at_once : {most, std::int64_t{2}, std::int64_t{1}})
      if (at_once <= groups) shapes.push_back({width, at_once, true});
  }
  return shapes;
}

/// The streams of loops that can be moved by vectors of that width.
[[nodiscard]] inline std::vector<MovedStream>
vector_streams(const FunctionAnalysis& function, std::span<const RowStream> streams, std::int64_t width) {
  std::vector<MovedStream> result;
  for (const RowStream& stream : streams) {
    MovedStream one{&stream, vector_type(stream.element, width)};
    if (!one.vector || !divisible_parameters(function, stream.start, width)) continue;
    for (std::size_t i = 0; i < stream.uses.size(); ++i) {
      if (stream.uses[i].read_first) one.loads.insert(i);
      if (stream.uses[i].writes) one.stores.insert(i);
    }
    result.push_back(std::move(one));
  }
  return result;
}

/// Loops of a row, or one of them, move vectors where the row is made of whole ones.
[[nodiscard]] inline SyntaxNode vectorize_rows(const TransformRequest& request) {
  const RowWork work(request);
  std::vector<SharedLoop> loops(work.loops().begin(), work.loops().end());
  if (request.action.region.find("/threads:") == std::string::npos)
    loops = {work.checked(*find_loop(request).loop)};
  work.require_ownership(loops);

  struct Plan {
    GroupShape shape{};
    std::vector<MovedStream> moved{};
  };
  std::optional<std::int64_t> length = work.length(request, loops.front());
  for (const SharedLoop& shared : loops)
    if (work.length(request, shared) != length) length.reset();
  const auto streams = StreamFinder(work.function(), loops, 0).run();
  std::vector<Plan> plans;
  for (const GroupShape& shape : vector_shapes(length, loops.front().threads)) {
    if (latest_first(loops) >= shape.width) continue;
    Plan plan{shape, vector_streams(work.function(), streams, shape.width)};
    if (!plan.moved.empty()) plans.push_back(std::move(plan));
  }
  if (plans.empty())
    throw TransformDeclined("nothing that the threads of a row touch is made of whole vectors");
  const Plan plan = choose_variant(plans, request.variant);
  const RowPasses passes(request.tree, loops, plan.shape, plan.moved, {});
  return work.with_faster_way(request.tree, loops, passes, passes.conditions(work.function()),
                              std::string(plan.shape.width == 2 ? "Two" : "Four") +
                                  " neighbouring elements at once, where they are aligned.");
}

} // namespace mtmc::detail
