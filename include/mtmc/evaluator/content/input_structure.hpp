#pragma once
/// Inputs that have a structure as a whole, as real ones have: parameters that were never changed, images,
/// masks, matrices that are symmetric.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace mtmc::inline MTMC_ABI::detail {

/// The structure of an input of the distribution `structured`; the device's kernel has the same numbers. Rows
/// are slices, columns places within them.
enum class InputStructure : std::uint8_t {
  ones = 0,             ///< 1
  zeros = 1,            ///< 0
  identity = 2,         ///< 1 where row and column are equal, else 0
  symmetric = 3,        ///< equal on both sides of the diagonals of square blocks
  triangular = 4,       ///< 0 above those diagonals
  unit_interval = 5,    ///< uniform in [0, 1)
  rectified = 6,        ///< 0 in place of negative numbers
  bytes = 7,            ///< k / 255
  halves = 8,           ///< numbers that binary16 has, too
  descending = 9,       ///< by 1/4 from column to column
  twin_rows = 10,       ///< each second row equal to the one before
  equal_rows = 11,      ///< all rows equal
  flat_rows = 12,       ///< one value in each row
  constant = 13,        ///< one value
  smooth = 14,          ///< between 1 and 2, neighbours 1/4096 apart
  separable = 15,       ///< one number of each row times one of each column
  shared = 16,          ///< the same for all inputs of this structure
  tiled = 17,           ///< repeated after 16 to 1024 elements
  masked = 18,          ///< -10000 in place of every fourth, by chance
  counting = 19,        ///< 0, 1, 2, ... 4095, 0, ...
  homogeneous = 20,     ///< 1 in the last column
  pixels = 21,          ///< whole numbers up to 255
  palindrome = 22,      ///< the same from the end as from the beginning
  thousands = 23,       ///< 512 * bell + 4000 in the first input; others are normal
  small = 24,           ///< bell / 512 in the first input; others are `hundreds`
  hundreds = 25,        ///< 16 * bell + 100
  deep = 26,            ///< bell - 5000
  alternating = 27,     ///< each row equal to the last but one
  unit_triangular = 28, ///< bell below the diagonals of square blocks, 1 on them, 0 above
  hidden = 29,          ///< -infinity in place of every fourth, by chance
  special = 30          ///< by chance, one in 16 is an infinity, NaN or denormal
};
inline constexpr unsigned structure_count = 31;
/// Those that are made of ordinary numbers.
inline constexpr std::uint32_t all_structures = (1u << static_cast<unsigned>(InputStructure::hidden)) - 1;
/// Those that are for tasks with `Task::special_values` alone.
inline constexpr std::uint32_t special_structures = 1u << static_cast<unsigned>(InputStructure::hidden) |
                                                    1u << static_cast<unsigned>(InputStructure::special);
/// Those that stay within what `normal` has, for tasks whose calls are too expensive to try the others.
inline constexpr std::uint32_t mild_structures = 1u << static_cast<unsigned>(InputStructure::unit_interval) |
                                                 1u << static_cast<unsigned>(InputStructure::rectified) |
                                                 1u << static_cast<unsigned>(InputStructure::halves) |
                                                 1u << static_cast<unsigned>(InputStructure::twin_rows);
/// Those whose numbers are no larger than what `normal` has. Only these are mixed: where a norm of equal
/// numbers leaves nothing but rounding errors, a scale of 255 makes results of them (a layer norm that adds
/// in another order was refused).
inline constexpr std::uint32_t mixed_structures =
    all_structures & ~(1u << static_cast<unsigned>(InputStructure::descending) |
                       1u << static_cast<unsigned>(InputStructure::masked) |
                       1u << static_cast<unsigned>(InputStructure::counting) |
                       1u << static_cast<unsigned>(InputStructure::pixels) |
                       1u << static_cast<unsigned>(InputStructure::thousands) |
                       1u << static_cast<unsigned>(InputStructure::small) |
                       1u << static_cast<unsigned>(InputStructure::hundreds) |
                       1u << static_cast<unsigned>(InputStructure::deep));
/// The random numbers of `shared`.
inline constexpr std::uint64_t shared_stream = 63;
/// Where the random numbers of columns begin, for `separable`.
inline constexpr std::uint64_t first_column_word = std::uint64_t{1} << 40;

/// A number of a slice's own, or of an input's; its highest four bits say of which kind it is (SplitMix64's
/// last step).
[[nodiscard]] constexpr std::uint64_t slice_hash(std::uint64_t slice, std::uint64_t key,
                                                 std::uint64_t stream) noexcept {
  std::uint64_t x = key + (slice + 1) * 0x9E3779B97F4A7C15u + (stream + 1) * 0xD1B54A32D192ED03u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// The element whose random number makes the one at a place, of `elements`.
[[nodiscard]] constexpr std::uint64_t source_of(InputStructure structure, std::uint64_t element,
                                                std::uint64_t slice, std::uint64_t elements,
                                                std::uint64_t key) noexcept {
  const auto row = element / slice;
  const auto column = element % slice;
  switch (structure) {
  case InputStructure::symmetric: {
    const auto in_block = row % slice;
    return (row - in_block + std::min(in_block, column)) * slice + std::max(in_block, column);
  }
  case InputStructure::twin_rows:
    return (row & ~std::uint64_t{1}) * slice + column;
  case InputStructure::equal_rows:
    return column;
  case InputStructure::flat_rows:
  case InputStructure::separable:
    return row;
  case InputStructure::constant:
    return 0;
  case InputStructure::tiled:
    return element % (std::uint64_t{16} << ((key >> 5) % 7));
  case InputStructure::palindrome:
    return std::min(element, elements - 1 - element);
  case InputStructure::alternating:
    return (row & 1) * slice + column;
  default:
    return element;
  }
}

/// The real number at a place, where values have no bounds. `bell`, `uniform`: what the source's random word
/// makes; `of_column`: the bell of the column.
[[nodiscard]] inline float structured_value(InputStructure structure, std::uint64_t element,
                                            std::uint64_t slice, std::uint32_t word, float bell,
                                            float uniform, float of_column) noexcept {
  const auto row = element / slice;
  const auto column = element % slice;
  switch (structure) {
  case InputStructure::ones:
    return 1;
  case InputStructure::zeros:
    return 0;
  case InputStructure::identity:
    return row % slice == column ? 1.0f : 0.0f;
  case InputStructure::triangular:
    return column <= row % slice ? bell : 0.0f;
  case InputStructure::unit_interval:
    return uniform;
  case InputStructure::rectified:
    return bell < 0 ? 0 : bell;
  case InputStructure::bytes:
    return static_cast<float>(static_cast<std::int32_t>(word >> 24)) / 255.0f;
  case InputStructure::halves: {
    const float cut = std::bit_cast<float>(std::bit_cast<std::uint32_t>(bell) & 0xffffe000u);
    return cut < 0x1p-13f && cut > -0x1p-13f ? 0.0f : cut;
  }
  case InputStructure::descending:
    return static_cast<float>(128 - static_cast<std::int32_t>(column % 256)) * 0.25f;
  case InputStructure::smooth:
    return static_cast<float>(4096 + static_cast<std::int32_t>((row + column) % 4096)) * 0x1p-12f;
  case InputStructure::separable:
    return bell * of_column;
  case InputStructure::masked:
    return word % 4 == 0 ? -10000.0f : bell;
  case InputStructure::counting:
    return static_cast<float>(static_cast<std::int32_t>(element % 4096));
  case InputStructure::homogeneous:
    return column == slice - 1 ? 1.0f : bell;
  case InputStructure::pixels:
    return static_cast<float>(static_cast<std::int32_t>(word >> 24));
  case InputStructure::thousands:
    return bell * 512.0f + 4000.0f;
  case InputStructure::small:
    return bell * 0x1p-9f;
  case InputStructure::hundreds:
    return bell * 16.0f + 100.0f;
  case InputStructure::deep:
    return bell - 5000.0f;
  case InputStructure::hidden:
    return word % 4 == 0 ? -std::numeric_limits<float>::infinity() : bell;
  case InputStructure::special: {
    if (word % 16 != 0) return bell;
    const auto kind = word >> 4 & 7u;
    return std::bit_cast<float>(kind < 2    ? 0x7f800000u
                                : kind == 2 ? 0xff800000u
                                : kind == 3 ? 0x7fc00000u
                                            : (word & 0x80000000u) | ((word >> 12 & 0x7ffu) + 1u));
  }
  case InputStructure::unit_triangular:
    return column < row % slice ? bell : column == row % slice ? 1.0f : 0.0f;
  default:
    return bell;
  }
}

/// The structure of one input of a case; nothing if it is to be normal. Mostly all inputs have the same one
/// (always, where one alone is allowed), which takes turns; at times the first input is normal and others are
/// all ones or all zeros, as parameters that were never trained, or each has its own. Two of four turns, the
/// first one among them, go to values that are special, where a task has such. `allowed`: a bit for each
/// structure; `case_hash` is the case's, `own_hash` the input's own.
[[nodiscard]] inline std::optional<InputStructure> draw_structure(std::uint32_t allowed, std::uint64_t turn,
                                                                  std::uint64_t case_hash,
                                                                  std::uint64_t own_hash,
                                                                  bool first) noexcept {
  const auto special = allowed & special_structures;
  if (special != 0 && special != allowed && turn % 4 < 2)
    return draw_structure(special, turn / 4 + 1, case_hash & ~std::uint64_t{7}, own_hash, first);
  if (allowed == 0) return std::nullopt;
  const auto mode = std::has_single_bit(allowed) ? 0 : case_hash % 8;
  const auto pick = [](std::uint32_t among, std::uint64_t which) {
    auto left = static_cast<unsigned>(which % static_cast<unsigned>(std::popcount(among)));
    unsigned structure = 0;
    while ((among >> structure & 1u) == 0 || left-- != 0) ++structure;
    return static_cast<InputStructure>(structure);
  };
  if (mode < 6) {
    const auto together = pick(allowed, turn);
    if (first) return together;
    if (together == InputStructure::thousands) return std::nullopt;
    return together == InputStructure::small ? InputStructure::hundreds : together;
  }
  if (mode == 6) {
    const auto mixed = allowed & mixed_structures;
    return mixed == 0 || own_hash % 4 == 0 ? std::nullopt : std::optional(pick(mixed, own_hash >> 8));
  }
  const auto plain = own_hash % 2 == 0 ? InputStructure::ones : InputStructure::zeros;
  if (first || (allowed >> static_cast<unsigned>(plain) & 1u) == 0) return std::nullopt;
  return plain;
}

} // namespace mtmc
