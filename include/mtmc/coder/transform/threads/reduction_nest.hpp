#pragma once
/// The loops of a reduction at the task's main size: how long they are, and which of them go along memory.

#include <mtmc/analysis/flow/polynomial.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/launch_words.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/threads/transposition.hpp>
#include <mtmc/coder/transform/threads/warp_lanes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace mtmc::inline MTMC_ABI::detail {

/// Measures the loops of the nest.
class ReductionNest {
public:
  /// `reduction` must outlive it.
  explicit ReductionNest(const ReductionLaunch& reduction) : reduction_(reduction) {}

  /// Iterations of a thread, where they are known.
  [[nodiscard]] std::optional<std::int64_t> trips_of(const LoopInfo& loop) const {
    const TransformRequest& request = reduction_.request;
    const ThreadLaunch& launch = reduction_.launch;
    if (const auto trips = launched_trips(request, launch, loop)) return trips;
    if (loop.bound_expression == nullptr || loop.step < 1 ||
        !reduction_.depends_on_thread(*loop.start_expression))
      return std::nullopt;
    const auto bound = LaunchWords(request.task, launch).of(*loop.bound_expression);
    const auto end = bound ? value_at_main_size(request, *bound) : std::nullopt;
    return end ? std::optional(*end / loop.step + 1) : std::nullopt; // of the first thread, about
  }
  /// Iterations of the nest: those of a thread where threads share them.
  [[nodiscard]] std::int64_t iterations() const {
    constexpr std::int64_t usual = 1 << 20, most = std::int64_t{1} << 40;
    std::int64_t product = 1;
    for (const LoopInfo* level : reduction_.body.nest)
      product =
          std::min(product * std::clamp<std::int64_t>(trips_of(*level).value_or(usual), 1, 1 << 22), most);
    return product;
  }

  /// The outermost loop of those with the most iterations.
  [[nodiscard]] const LoopInfo& longest_level() const {
    const auto& nest = reduction_.body.nest;
    return **std::max_element(nest.begin(), nest.end(), [&](const auto* a, const auto* b) {
      return trips_of(*a).value_or(1) < trips_of(*b).value_or(1);
    });
  }
  /// The innermost loop that goes along memory and has iterations for a warp; else the longest one.
  [[nodiscard]] const LoopInfo& level_along_memory() const {
    const auto& nest = reduction_.body.nest;
    for (auto level = nest.rbegin(); level != nest.rend(); ++level)
      if (goes_along_memory(**level) && trips_of(**level).value_or(1024) >= 32) return **level;
    return longest_level();
  }

  /// A loop goes along memory for each thread in another place. What all threads read is near for all of
  /// them.
  [[nodiscard]] bool goes_along_own_memory(const LoopInfo& level) const {
    const WarpLanes lanes(reduction_.request, reduction_.launch);
    const auto& accesses = reduction_.function().accesses;
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return goes_along(access, level) && !lanes.are_together(access);
    });
  }
  /// Some access of the nest moves by one element from thread to thread along x.
  [[nodiscard]] bool neighbours_have_neighbouring_results() const {
    const auto x = std::find_if(reduction_.indices.begin(), reduction_.indices.end(),
                                [](const ThreadIndex& index) { return index.axis == 0; });
    if (x == reduction_.indices.end()) return false;
    const WarpLanes lanes(reduction_.request, reduction_.launch);
    const auto& accesses = reduction_.function().accesses;
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return in_nest(access) && (is_neighbour_along(access, *x) || lanes.are_neighbours(access));
    });
  }

private:
  /// The access is made in the nest.
  [[nodiscard]] bool in_nest(const Access& access) const {
    return access.loop != nullptr && access.loop->inside(reduction_.body.nest.front());
  }
  /// A loop moves the access by one element.
  [[nodiscard]] bool goes_along(const Access& access, const LoopInfo& level) const {
    return in_nest(access) && access.subscripts.size() == 1 && access.subscripts.front().defined() &&
           expanded(access.subscripts.front()).coefficient_of(level.symbol).constant() == 1;
  }
  /// A loop moves some access by one element.
  [[nodiscard]] bool goes_along_memory(const LoopInfo& level) const {
    const auto& accesses = reduction_.function().accesses;
    return std::any_of(accesses.begin(), accesses.end(),
                       [&](const Access& access) { return goes_along(access, level); });
  }

  const ReductionLaunch& reduction_;
};

} // namespace mtmc::detail
