#pragma once
/// How the threads of a warp make the accesses of a launched function at the task's main size.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/threads/thread_grid.hpp>
#include <mtmc/analysis/threads/warp_access.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/support/expression.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// The lanes of the accesses of one launch.
class WarpLanes {
public:
  WarpLanes(const TransformRequest& request, const ThreadLaunch& launch) {
    const auto launches = request.analysis.launches_of(launch.function->name);
    const ProblemSize* const size = request.task.main_size();
    if (launches.empty() || size == nullptr) return;
    const auto geometry = geometry_of(
        launches.front(), [&](const std::string& text) { return value_at_main_size(request, text); });
    if (!geometry) return;
    values_ = size->symbols;
    for (const SyntaxNode& parameter : parameters(*launch.function->node)) values_.erase(parameter.text);
    for (const auto& [name, value] : parameter_values(request, launch, *size)) values_[name] = value;
    add_launch_values(*geometry, values_);
    grid_.emplace(*launch.function, *geometry, values_);
    warp_.emplace(*launch.function, *grid_, values_);
  }
  WarpLanes(const WarpLanes&) = delete;
  WarpLanes& operator=(const WarpLanes&) = delete;

  /// Whether neighbouring threads touch neighbouring elements, as far as that is known.
  [[nodiscard]] bool are_neighbours(const Access& access) const {
    return pattern_of(access) == LanePattern::coalesced;
  }
  /// Whether the threads of a warp touch one element, as far as that is known.
  [[nodiscard]] bool are_together(const Access& access) const {
    return pattern_of(access) == LanePattern::broadcast;
  }

private:
  [[nodiscard]] std::optional<LanePattern> pattern_of(const Access& access) const {
    return warp_ ? std::optional(warp_->facts(access, {}).pattern) : std::nullopt;
  }

  Symbols values_{};
  std::optional<ThreadGrid> grid_{};
  std::optional<WarpAccess> warp_{};
};

} // namespace mtmc::detail
