#pragma once
/// Where the parts of results lie in scratch memory between the two launches of a split reduction.

#include <mtmc/coder/transform/threads/block_trees.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/threads/split_geometry.hpp>
#include <mtmc/coder/transform/threads/split_plan.hpp>
#include <mtmc/support/text.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Numbers the results, and the elements for their parts.
class SplitScratch {
public:
  /// `reduction` and `plan` must outlive it.
  SplitScratch(const ReductionLaunch& reduction, const SplitPlan& plan)
      : reduction_(reduction), shape_(plan.shape), combination_(plan.combination), geometry_(plan.geometry),
        names_(plan.names) {}

  /// The number of the thread's result, and how many there are.
  [[nodiscard]] std::pair<std::string, std::string> result_number() const {
    auto [number, count] = block_number();
    if (geometry_.width == 1) return {number, count};
    std::string thread = "threadIdx.x";
    if (combination_) thread = "threadIdx.x / 32"; // a warp's
    const std::size_t axes =
        shape_.team == ReductionTeam::column ? geometry_.block.size() - 1 : geometry_.block.size();
    if (axes > 1) thread = "threadIdx.y * " + geometry_.block[0] + " + threadIdx.x";
    if (axes > 2)
      thread = "(threadIdx.z * " + geometry_.block[1] + " + threadIdx.y) * " + geometry_.block[0] +
               " + threadIdx.x";
    const std::string width = std::to_string(geometry_.width);
    if (number == "0") return {thread, width};
    return {(number.find(' ') == std::string::npos ? number : '(' + number + ')') + " * " + width + " + " +
                thread,
            count + " * " + width};
  }
  /// Parts of one result lie next to each other where neighbouring threads combine them.
  [[nodiscard]] bool parts_are_neighbours() const {
    return shape_.team == ReductionTeam::block || combination_.has_value();
  }
  /// The element for this part of this result of a value.
  [[nodiscard]] std::string place(std::size_t value) const {
    if (geometry_.single) return names_.scratch[value] + '[' + names_.part + ']';
    if (parts_are_neighbours())
      return names_.scratch[value] + '[' + names_.result + " * " + names_.parts + " + " + names_.part + ']';
    return names_.scratch[value] + '[' + names_.part + " * " + names_.results + " + " + names_.result + ']';
  }
  /// The scratch line of a value.
  [[nodiscard]] std::string line(std::size_t value) const {
    std::vector<std::string> factors = geometry_.grid;
    if (geometry_.width > 1) factors.push_back(std::to_string(geometry_.width));
    std::vector<std::string> extents{geometry_.parts};
    if (!geometry_.single)
      extents.insert(parts_are_neighbours() ? extents.begin() : extents.end(), extent_product(factors));
    return "//@ scratch " + names_.scratch[value] + ": " + scratch_type(reduction_.body.values[value].type) +
           '[' + joined(extents, ", ") + ']';
  }

private:
  /// The number of the block among those that share no result, and how many there are.
  [[nodiscard]] std::pair<std::string, std::string> block_number() const {
    if (geometry_.grid.size() == 1 && geometry_.part_axis == 0) return {"0", "1"};
    std::string number = launch_member("blockIdx", geometry_.grid.size() - 1),
                count = launch_member("gridDim", 0);
    for (std::size_t i = geometry_.grid.size() - 1; i-- > 0;)
      number = (number.find(' ') == std::string::npos ? number : '(' + number + ')') + " * " +
               launch_member("gridDim", i) + " + " + launch_member("blockIdx", i);
    for (std::size_t i = 1; i < geometry_.grid.size(); ++i) count += " * " + launch_member("gridDim", i);
    return {number, count};
  }

  const ReductionLaunch& reduction_;
  const SplittingShape& shape_;
  const std::optional<KnownCombination>& combination_;
  const SplitGeometry& geometry_;
  const SplitNames& names_;
};

} // namespace mtmc::detail
