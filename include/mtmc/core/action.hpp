#pragma once
/// Semantic actions: which optimisation, on which region (paper: action space).

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/unknown_fields.hpp>

#include <span>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// What a policy can decide: apply one optimisation to one region, stop, or (ablation) say it in free text.
struct Action {
  /// What is decided.
  enum class Kind { optimize, stop, free_text };
  /// What is decided.
  Kind kind = Kind::stop;
  /// Id of the optimisation type: "tiling".
  std::string optimization{};
  /// "tiling", "fusing": the type's verb, for `text()`.
  std::string verb{};
  /// Stable path, label and lines of the region.
  std::string region{};
  /// The region's label: "the k loop of gemm".
  std::string label{};
  /// 1-based first line of the region.
  int first_line = 0;
  /// 1-based last line of the region.
  int last_line = 0;
  /// The text of a free-text action.
  std::string free_text{};
  UnknownFields unknown{}; ///< fields of a newer form

  /// The action that ends the search.
  [[nodiscard]] static Action stop() { return {}; }

  /// As in the paper: "tiling the k loop of gemm in line 15 to 20"; "stop"; the free text.
  [[nodiscard]] std::string text() const;

  /// Identity that survives shifting lines: "tiling|gemm/i/j/k"; "stop"; "free|" and the text.
  [[nodiscard]] std::string key() const;

  friend bool operator==(const Action&, const Action&) = default; ///< member by member
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

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/core/action_inl.hpp>
#endif
