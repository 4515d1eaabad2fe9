#pragma once
/// Which candidates of a step are worth going on from, and in which order.

#include <mtmc/loop/gain.hpp>
#include <mtmc/loop/kernel_shape.hpp>
#include <mtmc/loop/search.hpp>
#include <mtmc/loop/search_state.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Every kernel a search stands or stood on, by id.
using SearchNodes = std::map<std::string, std::unique_ptr<SearchNode>>;

/// Sets what is known of a child's speed from its evaluation against the best.
inline void weigh(SearchChild& child, const SearchNode& best) {
  const auto& parent = *child.chain->parent;
  child.gain = gain_of(child.evaluation, best.evaluation.seconds);
  child.speed_up = product(best.speed_up, child.gain.ratio);
  child.over_parent =
      &parent == &best ? child.gain : scaled(child.gain, best.speed_up.value / parent.speed_up.value);
}

/// The correct candidates of a step, each kernel once, without those the search has already been at.
[[nodiscard]] inline std::vector<SearchChild>
correct_children(const std::vector<SearchChain>& chains, const SearchNodes& nodes, const SearchNode& best) {
  std::vector<SearchChild> children;
  std::set<std::string> ids;
  for (const auto& chain : chains) {
    if (chain.last() == nullptr || !chain.last()->judged) continue;
    const auto& judged = *chain.last()->judged;
    if (!judged.evaluation.correct()) continue;
    SearchChild child;
    child.id = chain.last()->kernel_id;
    if (nodes.contains(child.id) || !ids.insert(child.id).second) continue;
    child.chain = &chain;
    child.evaluation = judged.evaluation;
    child.evaluation_key = judged.key;
    weigh(child, best);
    children.push_back(std::move(child));
  }
  return children;
}

/// What a ratio that proves something must reach at least.
[[nodiscard]] inline double proof_threshold(double minimum_gain) noexcept {
  return minimum_gain > 1 ? minimum_gain : 1;
}

/// The children that claim to be faster than the best, the fastest first.
[[nodiscard]] inline std::vector<SearchChild*> hopeful(std::vector<SearchChild>& children,
                                                       double minimum_gain) {
  std::vector<SearchChild*> found, ordered;
  std::vector<double> values;
  std::vector<std::string> keys;
  for (auto& child : children) {
    if (!child.gain.faster() || child.gain.ratio.value < proof_threshold(minimum_gain)) continue;
    found.push_back(&child);
    values.push_back(child.gain.ratio.value);
    keys.push_back(child.chain->action.key());
  }
  for (const auto index : ranked(values, keys)) ordered.push_back(found[index]);
  return ordered;
}

/// Decides which children are good enough for the search to continue from (`LoopOptions::minimum_gain`).
inline void accept(std::vector<SearchChild>& children, double minimum_gain) {
  for (auto& child : children) {
    if (child.refuted || !child.over_parent.timed()) continue;
    child.proven = child.new_best || (child.over_parent.faster() &&
                                      child.over_parent.ratio.value >= proof_threshold(minimum_gain));
    child.accepted = child.proven ||
                     (minimum_gain < 1 && child.speed_up.value >= minimum_gain * child.chain->parent->anchor);
  }
}

/// A place in the next beam: a child, or a kernel the search already stands on.
struct BeamPlace {
  SearchChild* child = nullptr;
  SearchNode* node = nullptr;

  [[nodiscard]] double value() const {
    return child != nullptr ? child->speed_up.value : node->speed_up.value;
  }
  [[nodiscard]] std::string key() const { return child != nullptr ? child->chain->action.key() : node->id; }
  [[nodiscard]] const Kernel& kernel() const {
    return child != nullptr ? *child->chain->last()->draft.kernel : node->kernel;
  }
};

/// At most `width` places, from the first on, without those whose kernel differs from an earlier one in
/// numbers alone: what is to be learnt of an idea is learnt from its fastest variant.
[[nodiscard]] inline std::vector<BeamPlace> different_places(const std::vector<BeamPlace>& places,
                                                             std::size_t width) {
  std::vector<BeamPlace> different;
  std::set<std::string> shapes;
  for (const auto& place : places) {
    if (different.size() == width) break;
    if (shapes.insert(shape_of(place.kernel())).second) different.push_back(place);
  }
  return different;
}

/// The next beam. A new best comes first; then accepted children and kernels without such, the fastest first;
/// then the parents of accepted children. So a chain moves on to a neutral child, and a beam stays wide.
[[nodiscard]] inline std::vector<BeamPlace>
next_beam(std::vector<SearchChild>& children, const std::vector<SearchNode*>& standing, std::size_t width) {
  std::vector<BeamPlace> beam, front, back;
  std::set<const SearchNode*> fruitful;
  for (auto& child : children) {
    if (!child.accepted) continue;
    fruitful.insert(child.chain->parent);
    (child.new_best ? beam : front).push_back({&child, nullptr});
  }
  for (auto* node : standing)
    if (!node->stopped) (fruitful.contains(node) ? back : front).push_back({nullptr, node});
  for (const auto* places : {&front, &back}) {
    std::vector<double> values;
    std::vector<std::string> keys;
    for (const auto& place : *places) {
      values.push_back(place.value());
      keys.push_back(place.key());
    }
    for (const auto index : ranked(values, keys)) beam.push_back((*places)[index]);
  }
  beam = different_places(beam, width);
  for (const auto& place : beam)
    if (place.child != nullptr) place.child->kept = true;
  return beam;
}

} // namespace mtmc::detail
