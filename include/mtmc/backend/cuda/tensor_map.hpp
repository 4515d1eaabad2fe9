#pragma once
/// `tensor_map(...)` of a launch line as the driver's cuTensorMapEncodeTiled takes it.

#include <mtmc/core/launch_plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// Bytes of one parameter of a launch: a scalar, a pointer, or a whole tensor map, which has to be aligned.
struct alignas(128) CudaParameterBytes {
  std::array<std::uint64_t, 16> words{};
};

/// What the driver is asked for. Arrays count from the innermost extent; enumerations as in cuda.h.
struct TensorMapRequest {
  int type = 0;
  std::uint32_t rank = 0;
  std::array<std::uint64_t, 5> extents{};
  /// Bytes from one element to the next along every extent but the innermost.
  std::array<std::uint64_t, 5> strides{};
  std::array<std::uint32_t, 5> box{};
  std::array<std::uint32_t, 5> steps{1, 1, 1, 1, 1};
  int interleave = 0;
  int swizzle = 0;
  int promotion = 0;
  int fill = 0;
};

/// How cuda.h numbers the element types of tensor maps.
[[nodiscard]] constexpr int tensor_map_type(DataType type) noexcept {
  switch (type) {
  case DataType::u8:
  case DataType::i8:
    return 0;
  case DataType::u16:
  case DataType::i16:
    return 1;
  case DataType::u32:
    return 2;
  case DataType::i32:
    return 3;
  case DataType::u64:
    return 4;
  case DataType::i64:
    return 5;
  case DataType::f16:
    return 6;
  case DataType::f32:
    return 7;
  case DataType::f64:
    return 8;
  case DataType::bf16:
    return 9;
  }
  return 0;
}

/// Translates a tensor map for a buffer that begins at `address`. The answer is why it is impossible, half a
/// sentence about the argument; empty if it is not.
[[nodiscard]] inline std::string read_tensor_map(const LaunchArgument& argument, std::uint64_t address,
                                                 TensorMapRequest& request) {
  const auto rank = argument.extents.size();
  if (rank < 1 || rank > request.extents.size())
    return "has " + std::to_string(rank) + " extents; a tensor map has one to five";
  if (argument.operands.size() != rank)
    return "has " + std::to_string(rank) + " extents, but the box of its tensor map " +
           std::to_string(argument.operands.size());
  const auto option = [&](const char* name) {
    const auto found = argument.options.find(name);
    return found == argument.options.end() ? 0 : found->second;
  };
  // 0 and powers of two from `first` on become 0, 1, 2, ...
  const auto numbered = [](std::int64_t value, std::int64_t first, int count) {
    for (int i = 0; i < count; ++i)
      if (value == first << i) return i + 1;
    return value == 0 ? 0 : -1;
  };
  request.swizzle = numbered(option("swizzle"), 32, 3);
  request.interleave = numbered(option("interleave"), 16, 2);
  request.promotion = numbered(option("l2"), 64, 3);
  request.fill = numbered(option("nan_fill"), 1, 1);
  if (request.swizzle < 0)
    return "has a swizzle of " + std::to_string(option("swizzle")) + "; possible are 32, 64, 128";
  if (request.interleave < 0)
    return "has an interleave of " + std::to_string(option("interleave")) + "; possible are 16 and 32";
  if (request.promotion < 0) return "has l2=" + std::to_string(option("l2")) + "; possible are 64, 128, 256";
  if (request.fill < 0) return "has a nan_fill that is neither 0 nor 1";
  if (request.fill == 1 && !is_floating(argument.type))
    return "has a nan_fill, but its elements are integers";
  if (request.interleave == 2 && request.swizzle != 1) return "has interleave=32 without swizzle=32";
  if (request.interleave > 0 && rank < 3) return "is interleaved, which takes three extents or more";

  request.type = tensor_map_type(argument.type);
  request.rank = static_cast<std::uint32_t>(rank);
  const auto element = static_cast<std::int64_t>(size_of(argument.type));
  const std::int64_t aligned = request.interleave == 2 ? 32 : 16;
  if (address % static_cast<std::uint64_t>(aligned) != 0)
    return "begins at an address that is no multiple of " + std::to_string(aligned) + " bytes";
  auto stride = element;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto extent = argument.extents[rank - 1 - i];
    const auto box = argument.operands[rank - 1 - i];
    constexpr std::int64_t largest_extent = std::int64_t{1} << 32;
    constexpr std::int64_t largest_stride = std::int64_t{1} << 40;
    if (extent < 1 || extent > largest_extent)
      return "has an extent of " + std::to_string(extent) + "; a tensor map allows 1 to 2^32";
    if (box < 1 || box > 256)
      return "has a box with an extent of " + std::to_string(box) + "; possible are 1 to 256";
    request.extents[i] = static_cast<std::uint64_t>(extent);
    request.box[i] = static_cast<std::uint32_t>(box);
    if (i + 1 == rank) break;
    stride *= extent;
    if (stride % aligned != 0 || stride >= largest_stride)
      return "has rows of " + std::to_string(stride) + " bytes; a tensor map needs a multiple of " +
             std::to_string(aligned) + " below 2^40";
    request.strides[i] = static_cast<std::uint64_t>(stride);
  }
  const auto inner = argument.operands.back() * element;
  if (request.interleave == 0 && inner % 16 != 0)
    return "has a box whose innermost extent is " + std::to_string(inner) +
           " bytes; a tensor map needs a multiple of 16";
  if (request.interleave == 0 && request.swizzle > 0 && inner > option("swizzle"))
    return "has a box whose innermost extent is " + std::to_string(inner) +
           " bytes; with swizzle=" + std::to_string(option("swizzle")) + " it can be no longer than that";
  return {};
}

} // namespace mtmc::detail
