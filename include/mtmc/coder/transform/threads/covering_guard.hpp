#pragma once
/// Guards of a launched function and the number of threads that are launched.

#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/grid_fusion.hpp>
#include <mtmc/analysis/threads/thread_grid.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// The guard that lets through as many numbers along an axis as the launch line has threads for (`i < M` of
/// `ceil_div(M, 128)` blocks of 128), proved for all sizes; null where there is none.
[[nodiscard]] inline const GuardBound* guard_of(const TransformRequest& request, const ThreadLaunch& launch,
                                                const ThreadIndex& index) {
  const auto lines = request.analysis.launches_of(launch.line.entry);
  TaskSizes sizes(&request.task);
  const Polynomial threads = sizes.read(launch.threads(index.axis));
  for (const GuardBound& bound : launch.function->guard_bounds) {
    const auto& terms = bound.below.terms();
    const bool about = bound.below.defined() && terms.size() == 1 && terms.front().degree == 1 &&
                       terms.front().coefficient == 1 && terms.front().factors[0]->name == index.name;
    if (about && sizes.translate(bound.limit, *launch.function, lines.front()) == threads) return &bound;
  }
  return nullptr;
}

/// Whether at every size of the task at least as many threads are launched along an axis as a number of the
/// function says.
[[nodiscard]] inline bool covers_all_sizes(const TransformRequest& request, const ThreadLaunch& launch,
                                           std::size_t axis, const Polynomial& limit) {
  return std::all_of(request.task.sizes.begin(), request.task.sizes.end(), [&](const ProblemSize& size) {
    const auto needed = limit.evaluate_at(parameter_values(request, launch, size));
    const auto launched = value_at_size(request, size, launch.launched(axis));
    return needed && launched && *launched >= *needed;
  });
}

/// What guards say of the threads along an axis of a launch.
struct GuardCover {
  bool guarded = false; ///< some guard is about their number
  bool exact = false;   ///< one lets through as many as the launch line has threads for
  bool covered = false; ///< one lets through no more than are launched
};
[[nodiscard]] inline GuardCover guard_cover(const TransformRequest& request, const ThreadLaunch& launch,
                                            std::size_t axis) {
  GuardCover cover;
  const auto lines = request.analysis.launches_of(launch.line.entry);
  const auto geometry =
      geometry_of(lines.front(), [&](const std::string& text) { return value_at_main_size(request, text); });
  if (!geometry) return cover;
  const LaunchGeometry shape = for_all_sizes(lines.front(), *geometry);
  TaskSizes sizes(&request.task);
  const Polynomial threads = sizes.read(launch.threads(axis));
  for (const GuardBound& bound : launch.function->guard_bounds) {
    if (!is_global_index(bound.below, axis, shape)) continue;
    const Polynomial limit = sizes.translate(bound.limit, *launch.function, lines.front());
    cover.guarded = true;
    cover.exact = cover.exact || (limit.defined() && limit == threads);
    cover.covered = cover.covered || cover.exact ||
                    (bound.limit.defined() && covers_all_sizes(request, launch, axis, bound.limit));
  }
  return cover;
}

/// Throws `TransformDeclined` where a guard lets through more numbers along an axis than threads are launched
/// (`i < M` of half as many threads): what is launched for all that it lets through would do more.
inline void require_covering(const TransformRequest& request, const ThreadLaunch& launch) {
  for (std::size_t axis = 0; axis < launch.line.grid.size(); ++axis)
    if (const GuardCover cover = guard_cover(request, launch, axis); cover.guarded && !cover.covered)
      throw TransformDeclined("it is not proved that " + launch.line.entry +
                              " has as many threads as its guards let through");
}

/// How many threads along an axis have work, in the words of the launch line: all that are launched, unless a
/// guard leaves out those beyond the number that the line was written for.
[[nodiscard]] inline std::string threads_with_work(const TransformRequest& request,
                                                   const ThreadLaunch& launch, std::size_t axis = 0) {
  return guard_cover(request, launch, axis).exact ? launch.threads(axis) : launch.launched(axis);
}

} // namespace mtmc::detail
