#pragma once

#include <mtmc/analysis/dependence/delinearize.hpp>
#include <mtmc/analysis/dependence/dependence_test.hpp>
#include <mtmc/analysis/flow/function_analysis.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

/// \file
/// All dependences between the array accesses of a function.

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The loops around both, outermost first.
[[nodiscard]] inline std::vector<CommonLoop> common_loops(const LoopInfo* a, const LoopInfo* b) {
  const auto depth = [](const LoopInfo* loop) { return loop == nullptr ? -1 : loop->depth; };
  while (depth(a) > depth(b)) a = a->parent;
  while (depth(b) > depth(a)) b = b->parent;
  while (a != b) {
    a = a->parent;
    b = b->parent;
  }
  std::vector<CommonLoop> result;
  for (; a != nullptr; a = a->parent) result.push_back({a, a});
  std::reverse(result.begin(), result.end());
  return result;
}

/// Finds the dependences of one function.
class DependenceFinder {
public:
  explicit DependenceFinder(FunctionAnalysis& function) : function_(function) {}

  void run() {
    group();
    for (Group& group : groups_)
      if (group.array != nullptr)
        delinearize(const_cast<Array&>(*group.array), group.accesses, function_.assumptions,
                    *function_.budget);
    for (const Group& group : groups_) within(group);
    between_unknown();
    std::stable_sort(function_.dependences.begin(), function_.dependences.end(),
                     [](const Dependence& a, const Dependence& b) { return rank(a) < rank(b); });
  }

private:
  struct Group {
    const Array* array = nullptr;
    std::vector<Access*> accesses;
    bool written = false;
  };
  /// Beyond this many accesses to one array only a summary is made; unrolled register tiles stay below.
  static constexpr std::size_t max_accesses = 160;
  /// The same for pairs of an access through a pointer of unknown origin and any other one.
  static constexpr std::size_t max_unknown_pairs = 50'000;

  /// The same for nests of more loops than anybody writes: what is known of a pair grows with the square of
  /// their number.
  static constexpr int max_loops = 20;

  template <class Accesses> [[nodiscard]] static bool too_deep(const Accesses& accesses) {
    return std::any_of(accesses.begin(), accesses.end(), [](const Access* access) {
      return access->loop != nullptr && access->loop->depth >= max_loops;
    });
  }

  [[nodiscard]] static std::size_t rank(const Dependence& dependence) noexcept {
    return dependence.loops.empty() ? 0 : dependence.loops.back()->index + 1;
  }

  void group() {
    std::unordered_map<const Array*, std::size_t> position;
    for (Access& access : function_.accesses) {
      const auto [entry, fresh] = position.emplace(access.array, groups_.size());
      if (fresh) groups_.push_back({access.array, {}, false});
      Group& group = groups_[entry->second];
      group.accesses.push_back(&access);
      group.written = group.written || access.write;
    }
  }

  void within(const Group& group) {
    if (!group.written) return;
    if (group.accesses.size() > max_accesses || function_.budget->exhausted() || too_deep(group.accesses))
      return summarize(group.accesses);
    for (std::size_t i = 0; i < group.accesses.size(); ++i)
      for (std::size_t j = i; j < group.accesses.size(); ++j) {
        const Access& a = *group.accesses[i];
        const Access& b = *group.accesses[j];
        if (!a.write && !b.write) continue;
        const auto common = common_loops(a.loop, b.loop);
        if (i == j && common.empty()) continue;
        if (group.array->unknown)
          add(a, b, common, anywhere(common.size()));
        else
          add(a, b, common, PairTest(a, b, common, function_.assumptions, *function_.budget).run());
      }
  }

  /// Every access depends on the one before it in every way; legality then answers "no" everywhere.
  void summarize(std::span<const Access* const> accesses) {
    for (const Access* access : accesses)
      if (access->write) add_unknown(*access, *access);
    for (std::size_t i = 0; i + 1 < accesses.size(); ++i) add_unknown(*accesses[i], *accesses[i + 1]);
  }

  /// Pointers of unknown origin may point into any array that is not local.
  void between_unknown() {
    std::vector<const Access*> shared;
    std::size_t unknown_accesses = 0;
    for (const Access& access : function_.accesses) {
      if (!access.array->local) shared.push_back(&access);
      if (access.array->unknown) ++unknown_accesses;
    }
    if (unknown_accesses > 0 && (unknown_accesses * shared.size() > max_unknown_pairs || too_deep(shared)))
      return summarize(shared);
    for (std::size_t i = 0; i < groups_.size(); ++i)
      for (std::size_t j = 0; j < groups_.size(); ++j) {
        const Group& unknown = groups_[i];
        const Group& other = groups_[j];
        if (!unknown.array->unknown || i == j || other.array->local || (other.array->unknown && j < i) ||
            (!unknown.written && !other.written))
          continue;
        for (const Access* a : unknown.accesses)
          for (const Access* b : other.accesses)
            if (a->write || b->write) a->order <= b->order ? add_unknown(*a, *b) : add_unknown(*b, *a);
      }
  }

  [[nodiscard]] static PairVectors anywhere(std::size_t loops) {
    PairVectors result;
    result.vectors.emplace_back(loops, Directions::any);
    result.distances.assign(loops, std::nullopt);
    return result;
  }

  void add_unknown(const Access& a, const Access& b) {
    const auto common = common_loops(a.loop, b.loop);
    const auto pairs = anywhere(common.size());
    if (common.size() <= static_cast<std::size_t>(max_loops)) return add(a, b, common, pairs);
    // In any order of iterations at once, instead of one entry for each loop that may come first.
    enter(a, b, common, pairs.vectors.front(), pairs.distances, false);
    if (&a != &b) enter(b, a, common, pairs.vectors.front(), pairs.distances, true);
  }

  /// Enters the pairs of iterations as dependences from the earlier to the later one. `a` comes before `b` in
  /// the text, or is the same access.
  void add(const Access& a, const Access& b, std::span<const CommonLoop> common, const PairVectors& pairs) {
    for (const auto& vector : pairs.vectors) {
      std::vector<Directions> prefix = vector;
      std::vector<std::optional<std::int64_t>> distances = pairs.distances;
      std::size_t p = 0;
      for (; p < vector.size(); ++p) {
        if (has(vector[p], Directions::less)) {
          prefix[p] = Directions::less;
          enter(a, b, common, prefix, distances, false);
        }
        if (has(vector[p], Directions::greater) && &a != &b) {
          prefix[p] = Directions::greater;
          enter(b, a, common, prefix, distances, true);
        }
        if (!has(vector[p], Directions::equal)) break;
        prefix[p] = Directions::equal;
        distances[p] = 0;
      }
      if (p == vector.size() && &a != &b) enter(a, b, common, prefix, distances, false);
    }
  }

  void enter(const Access& source, const Access& sink, std::span<const CommonLoop> common,
             const std::vector<Directions>& directions,
             const std::vector<std::optional<std::int64_t>>& distances, bool reverse) {
    Dependence dependence;
    dependence.kind =
        source.write ? (sink.write ? DependenceKind::output : DependenceKind::flow) : DependenceKind::anti;
    dependence.source = &source;
    dependence.sink = &sink;
    bool carried = false;
    for (std::size_t p = 0; p < common.size(); ++p) {
      dependence.loops.push_back(common[p].first);
      dependence.directions.push_back(reverse ? reversed(directions[p]) : directions[p]);
      std::optional<std::int64_t> distance = distances[p];
      if (distance && reverse) distance = -*distance;
      dependence.distances.push_back(distance);
      carried = carried || directions[p] != Directions::equal;
    }
    dependence.reduction = carried && source.update != ReductionOperation::none &&
                           source.update == sink.update && source.array == sink.array;
    function_.dependences.push_back(std::move(dependence));
  }

  FunctionAnalysis& function_;
  std::vector<Group> groups_;
};

} // namespace detail

/// The dependences with both ends in a loop, as a range of its function's list.
[[nodiscard]] inline std::span<const Dependence> dependences_in(const LoopInfo& loop) {
  const auto& all = loop.function->dependences;
  const auto rank = [](const Dependence& dependence) {
    return dependence.loops.empty() ? std::size_t{0} : dependence.loops.back()->index + 1;
  };
  const auto first = std::partition_point(all.begin(), all.end(),
                                          [&](const Dependence& d) { return rank(d) < loop.index + 1; });
  const auto last = std::partition_point(first, all.end(),
                                         [&](const Dependence& d) { return rank(d) < loop.last_inside + 1; });
  return {first, last};
}

/// The loop carries the dependence: it relates different iterations of this loop within one iteration of the
/// loops around it.
[[nodiscard]] inline bool carries(const LoopInfo& loop, const Dependence& dependence) noexcept {
  for (std::size_t p = 0; p < dependence.loops.size(); ++p) {
    if (dependence.loops[p] == &loop) return detail::has(dependence.directions[p], Directions::less);
    if (!detail::has(dependence.directions[p], Directions::equal)) return false;
  }
  return false;
}

/// The position of a loop among those of a dependence, or their number.
[[nodiscard]] inline std::size_t position_in(const Dependence& dependence, const LoopInfo& loop) noexcept {
  std::size_t p = 0;
  while (p < dependence.loops.size() && dependence.loops[p] != &loop) ++p;
  return p;
}

} // namespace mtmc
