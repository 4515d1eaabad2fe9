#pragma once
/// Semantic actions: which optimisation, on which region; and the space they are drawn from (paper: action
/// space).

#include <mtmc/core/device.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What a policy can decide: apply one optimisation to one region, stop, or (ablation) say it in free text.
struct Action {
  enum class Kind { optimize, stop, free_text };
  Kind kind = Kind::stop;
  /// Id of the optimisation type: "tiling".
  std::string optimization{};
  /// "tiling", "fusing": the type's verb, for `text()`.
  std::string verb{};
  /// Stable path, label and lines of the region.
  std::string region{};
  std::string label{};
  int first_line = 0;
  int last_line = 0;
  /// The text of a free-text action.
  std::string free_text{};
  UnknownFields unknown{};

  /// The action that ends the search.
  [[nodiscard]] static Action stop() { return {}; }

  /// As in the paper: "tiling the k loop of gemm in line 15 to 20"; "stop"; the free text.
  [[nodiscard]] std::string text() const;

  /// Identity that survives shifting lines: "tiling|gemm/i/j/k"; "stop"; "free|" and the text.
  [[nodiscard]] std::string key() const;

  friend bool operator==(const Action&, const Action&) = default;
};

namespace detail {
inline constexpr EnumName<Action::Kind> action_kind_names[] = {
    {Action::Kind::optimize, "optimize"},
    {Action::Kind::stop, "stop"},
    {Action::Kind::free_text, "free_text"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Action::Kind>> enum_names(Action::Kind) noexcept {
  return detail::action_kind_names;
}

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
  ApplicabilityPredicate applies;
  /// The same for a region that the threads of a launch execute; empty = no different.
  std::string grid_principle{};

  /// How it is done on this region.
  [[nodiscard]] const std::string& principle_on(const Region* region) const noexcept;
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
  /// The paper's four and those the library adds: unrolling, vectorization, parallelization.
  [[nodiscard]] static ActionSpace extended() { return {detail::all_optimization_types()}; }

  /// The type of that id, or null.
  [[nodiscard]] const OptimizationType* find(std::string_view id) const noexcept;

  /// Every type on every region where its predicate holds, ordered by key, and `stop` last. Never empty.
  [[nodiscard]] std::vector<Action> legal_actions(const Structure& structure, const Device& device) const;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/core/action_inl.hpp>
#endif
