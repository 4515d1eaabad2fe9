#pragma once
/// The optimisation types that there are, where each may be offered, and the actions that this leaves (paper:
/// action space).

#include <mtmc/core/action.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/structure.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Whether an optimisation may be offered for a region of a structure on a device.
using ApplicabilityPredicate = std::function<bool(const Region&, const Structure&, const Device&)>;

/// One kind of optimisation. The set is open: a host adds one by pushing another entry to its `ActionSpace`.
struct OptimizationType {
  /// Stable id: "tiling".
  std::string id;
  /// As it stands in a sentence before a region: "tiling", "fusing".
  std::string verb;
  /// What it is for, in one sentence.
  std::string intent;
  /// How it is done, in one or two sentences a coder can act on.
  std::string principle;
  /// Where it may be applied to a loop, a nest or a sequence.
  ApplicabilityPredicate applies;
  /// The same for a region that the threads of a launch execute; empty = no different.
  std::string grid_principle{};
  /// Drafts of one step, where the loop's options name no number (`LoopOptions::samples`): more where much is
  /// to be gained and answers differ much.
  int samples = 1;
  /// The same for regions of a PyTorch module and of Triton kernels; empty = no different.
  std::string program_principle{};

  /// How it is done on this region.
  [[nodiscard]] const std::string& principle_on(const Region* region) const noexcept;
  /// The same for a region of a structure, whose launches tell what a sequence of them runs on.
  [[nodiscard]] const std::string& principle_on(const Region* region,
                                                const Structure& structure) const noexcept;
};

namespace detail {
/// Whether two accesses of a loop nest touch an element again: some loop does not move the access while
/// another does.
[[nodiscard]] bool has_reuse(const RegionFacts& facts);

/// Whether some access moves by more than one element in the innermost loop of the nest.
[[nodiscard]] bool has_strided_access(const RegionFacts& facts);

[[nodiscard]] std::vector<OptimizationType> all_optimization_types();
} // namespace detail

/// The optimisation types a search may draw from, and the rule that makes actions of them.
struct ActionSpace {
  /// One entry a type; the order has no meaning but in lists for people.
  std::vector<OptimizationType> types;

  /// The paper's four: tiling, fusion, pipeline, reordering.
  [[nodiscard]] static ActionSpace paper();
  /// The paper's four and those the library adds: unrolling, vectorization, parallelization; retention,
  /// online algorithms, scanning, splitting, strength reduction, packing, hoisting, scalar replacement,
  /// fission, recomputation, persistence and finishing, which language models write; and rewriting of the
  /// whole kernel.
  [[nodiscard]] static ActionSpace extended() { return {detail::all_optimization_types()}; }

  /// The type of that id, or null.
  [[nodiscard]] const OptimizationType* find(std::string_view id) const noexcept;

  /// Every type on every region where its predicate holds, ordered by key, and `stop` last. Never empty.
  [[nodiscard]] std::vector<Action> legal_actions(const Structure& structure, const Device& device) const;
};

/// The legal actions of a kernel in this language without those whose type the coder does not write
/// (`KnowsWhatItWrites`). `stop` is always there.
template <class C>
[[nodiscard]] std::vector<Action> offered_actions(const ActionSpace& space, const Structure& structure,
                                                  const Device& device, const C& coder,
                                                  const Language& language) {
  auto actions = space.legal_actions(structure, device);
  std::erase_if(actions, [&](const Action& action) {
    return action.kind == Action::Kind::optimize && !writes_of(coder, action.optimization, language);
  });
  return actions;
}

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/actions/action_space_inl.hpp>
#endif
