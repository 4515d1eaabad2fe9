#pragma once

#include <mtmc/support/text.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Number of single-character insertions, deletions and replacements that turn one name into the other,
/// without regard to the case of ASCII letters.
[[nodiscard]] inline std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < right.size(); ++j) {
      std::size_t least = diagonal + (lower_case(left[i]) == lower_case(right[j]) ? 0 : 1);
      if (row[j] + 1 < least) least = row[j] + 1;
      if (row[j + 1] + 1 < least) least = row[j + 1] + 1;
      diagonal = row[j + 1];
      row[j + 1] = least;
    }
  }
  return row.back();
}

} // namespace detail

/// The name among `known` that `name` was probably meant to be, for "did you mean ...?" in messages, or an
/// empty view if none is near. Near means: at most two single-character edits and at most half of `name`;
/// the case of letters is not counted, so "Gemm" is found for "gemm". The first of equally near names wins.
/// Names longer than 64 bytes are never near anything.
[[nodiscard]] inline std::string_view nearest_name(std::string_view name,
                                                   std::span<const std::string_view> known) {
  constexpr std::size_t longest = 64;
  if (name.size() > longest) return {};
  std::size_t best = (name.size() / 2 < 2 ? name.size() / 2 : 2) + 1;
  std::string_view nearest;
  for (const std::string_view candidate : known) {
    if (candidate.size() > longest) continue;
    const std::size_t distance = detail::edit_distance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

/// What to do about a name that is not known: `Did you mean "gemm"? `, if one is near, then `lead` and all
/// that are known.
[[nodiscard]] inline std::string known_names(std::string_view name, std::span<const std::string_view> known,
                                             std::string_view lead) {
  std::string text;
  if (const auto near = nearest_name(name, known); !near.empty())
    text = "Did you mean \"" + std::string(near) + "\"? ";
  return text.append(lead) + detail::joined(known);
}

} // namespace mtmc
