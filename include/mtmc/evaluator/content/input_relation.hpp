#pragma once
/// Relations between the elements of an input, between its rows, and between inputs. A kernel that takes a
/// short cut where its inputs look related is right about all others.

#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/input_structure.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// An input of f32 that may be changed.
struct RelatedInput {
  std::span<float> elements;        ///< its content, row by row
  std::vector<std::size_t> extents; ///< of its axes; their product is the number of elements
  std::size_t place = 0;            ///< among the inputs of the task

  /// Elements of its last axis; of a vector, a part of it.
  [[nodiscard]] std::size_t slice() const noexcept {
    constexpr std::size_t part = 64;
    if (extents.size() > 1) return std::max<std::size_t>(1, extents.back());
    return std::max<std::size_t>(1, std::min(part, elements.size()));
  }
};

namespace detail {

/// An axis of an array that is stored row by row.
struct Axis {
  std::size_t stride = 1; ///< elements from one place to the next
  std::size_t extent = 1; ///< how many places it has

  [[nodiscard]] std::size_t place_of(std::size_t element) const noexcept { return element / stride % extent; }
};

/// One axis of an input.
[[nodiscard]] inline Axis axis_of(const RelatedInput& input, std::size_t axis) {
  Axis found;
  found.extent = input.extents.empty() ? input.elements.size() : input.extents[axis];
  for (std::size_t i = axis + 1; i < input.extents.size(); ++i) found.stride *= input.extents[i];
  found.extent = std::max<std::size_t>(1, found.extent);
  return found;
}

/// A number that is drawn by some bits of a hash.
[[nodiscard]] constexpr std::size_t pick(std::uint64_t hash, unsigned shift, std::size_t count) noexcept {
  return static_cast<std::size_t>((hash >> shift) % std::max<std::size_t>(1, count));
}

/// 1, -1, 2 or 1/2.
[[nodiscard]] inline float small_factor(std::uint64_t random) noexcept {
  constexpr std::array factors{1.0f, -1.0f, 2.0f, 0.5f};
  return factors[random % factors.size()];
}

/// The element at the other end: along one axis, of all elements, or on the other side of the diagonals of
/// square blocks.
[[nodiscard]] inline std::size_t opposite(const RelatedInput& input, std::size_t way, std::size_t element) {
  const auto axes = input.extents.size();
  if (way < axes) {
    const auto axis = axis_of(input, way);
    const auto place = axis.place_of(element);
    return element + (axis.extent - 1 - place) * axis.stride - place * axis.stride;
  }
  if (way == axes || axes < 2) return input.elements.size() - 1 - element;
  const auto slice = input.slice();
  const auto row = element / slice;
  const auto in_block = row % slice;
  const auto other = (row - in_block + element % slice) * slice + in_block;
  return other < input.elements.size() ? other : element;
}

/// Equal or opposite elements at opposite places.
inline void mirror(const RelatedInput& input, std::uint64_t hash) {
  const auto way = pick(hash, 8, input.extents.size() + 2);
  const bool odd = pick(hash, 16, 2) == 0;
  for (std::size_t i = 0; i < input.elements.size(); ++i) {
    const auto other = opposite(input, way, i);
    if (i == other && odd) input.elements[i] = 0;
    if (other < i) input.elements[i] = odd ? -input.elements[other] : input.elements[other];
  }
}

/// Some odd rows are the row before times a small factor: as it is, rotated, or from its end on.
inline void relate_rows(const RelatedInput& input, std::uint64_t hash) {
  const auto slice = input.slice();
  const float factor = small_factor(hash >> 8);
  const auto order = pick(hash, 16, 4);
  const auto rotation = order == 0 ? 0 : order == 1 ? 1 : pick(hash, 24, slice);
  for (std::size_t row = 1; (row + 1) * slice <= input.elements.size(); row += 2) {
    if (slice_hash(row, hash, 6) % 4 == 0) continue;
    const auto before = input.elements.subspan((row - 1) * slice, slice);
    for (std::size_t i = 0; i < slice; ++i)
      input.elements[row * slice + i] = factor * before[order == 3 ? slice - 1 - i : (i + rotation) % slice];
  }
}

/// One number in each row, in other columns from row to row; all are 1, or each is its own.
inline void permute_unit(const RelatedInput& input, std::uint64_t hash) {
  const auto slice = input.slice();
  const auto step = 1 + pick(hash, 8, slice);
  const auto first = pick(hash, 24, slice);
  const bool ones = pick(hash, 40, 2) == 0;
  for (std::size_t i = 0; i < input.elements.size(); ++i) {
    const bool is_there = i % slice == (i / slice * step + first) % slice;
    input.elements[i] = !is_there ? 0 : ones ? 1 : input.elements[i];
  }
}

/// Zeros but where two axes' places are related: a diagonal and its neighbours, all beside it, a triangle, a
/// checkerboard, a cross, an edge. Of a vector, one element in a few.
inline void keep_pattern(const RelatedInput& input, std::uint64_t hash) {
  const auto axes = input.extents.size();
  const auto one = pick(hash, 8, axes);
  const auto a = axis_of(input, one);
  const auto b = axes > 1 ? axis_of(input, (one + 1 + pick(hash, 16, axes - 1)) % axes) : a;
  const auto period = 2 + pick(hash, 24, 16);
  const auto kind = pick(hash, 32, 8);
  for (std::size_t i = 0; i < input.elements.size(); ++i) {
    const auto x = a.place_of(i);
    const auto y = b.place_of(i);
    bool kept = x % period == 0;
    if (axes > 1)
      kept = kind == 0   ? x == y
             : kind == 1 ? x != y
             : kind == 2 ? x <= y
             : kind == 3 ? x <= y + 1 && y <= x + 1
             : kind == 4 ? (x + y) % 2 == 0
             : kind == 5 ? x == a.extent / 2 || y == b.extent / 2
             : kind == 6 ? x == 0 || y == 0
                         : x % period != 0;
    if (!kept) input.elements[i] = 0;
  }
}

/// Whole numbers up to 1, 10, 100, 1000 or 30000.
inline void make_whole(const RelatedInput& input, std::uint64_t hash) {
  constexpr std::array largest{1.0f, 10.0f, 100.0f, 127.0f, 1000.0f, 30000.0f};
  const float scale = largest[pick(hash, 8, largest.size())] / 3;
  for (auto& element : input.elements) element = std::round(element * scale);
}

/// Along one axis, the second half is the first one once more, times a small factor.
inline void double_up(const RelatedInput& input, std::uint64_t hash) {
  const auto axis = axis_of(input, pick(hash, 8, input.extents.size()));
  const auto half = axis.extent / 2;
  const float factor = small_factor(hash >> 16);
  for (std::size_t i = 0; i < input.elements.size() && half > 0; ++i)
    if (const auto place = axis.place_of(i); place >= half && place < 2 * half)
      input.elements[i] = factor * input.elements[i - half * axis.stride];
}

/// Repeated after any number of elements up to 300, along the last axis or through all of them.
inline void repeat(const RelatedInput& input, std::uint64_t hash) {
  const auto length = pick(hash, 8, 2) == 0 ? input.slice() : input.elements.size();
  const auto period = 1 + pick(hash, 16, 300);
  for (std::size_t i = 0; i < input.elements.size(); ++i)
    if (i % length >= period) input.elements[i] = input.elements[i - period];
}

/// An input that is another one times a small factor, element by element or transposed, as a whole or in
/// part.
inline void make_alike(const RelatedInput& input, const RelatedInput& other, std::uint64_t hash) {
  if (other.elements.empty()) return;
  const float factor = small_factor(hash >> 8);
  const bool transposed = pick(hash, 16, 2) == 0;
  const auto count = input.elements.size();
  const bool in_part = pick(hash, 24, 2) == 0;
  const auto first = in_part ? pick(hash, 32, count) : 0;
  const auto last = in_part ? std::min(count, first + 64) : count;
  const auto rows = std::max<std::size_t>(1, other.elements.size() / other.slice());
  for (auto i = first; i < last; ++i) {
    const auto row = i / input.slice() % other.slice();
    const auto column = i % input.slice() % rows;
    input.elements[i] =
        factor * other.elements[transposed ? column * other.slice() + row : i % other.elements.size()];
  }
}

/// Breaks a relation in one place, or at the end: it was true of every sample but one.
inline void spoil(const RelatedInput& input, std::uint64_t hash) {
  const auto count = input.elements.size();
  if (count == 0) return;
  const auto bell_at = [&](std::size_t i) {
    return bell(static_cast<std::uint32_t>(slice_hash(i, hash, 7) >> 32));
  };
  const auto one = pick(hash, 8, count);
  const auto tail = pick(hash, 40, 2) == 0 ? std::min<std::size_t>(1 + pick(hash, 48, 16), count) : 0;
  if (tail == 0) input.elements[one] = bell_at(one);
  for (std::size_t i = count - tail; i < count; ++i) input.elements[i] = bell_at(i);
}

} // namespace detail

} // namespace mtmc
