#pragma once
/// The vector types of CUDA C++ by which a thread loads or stores several neighbouring elements at once, and
/// the tests that their addresses must pass.

#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// `(reinterpret_cast<size_t>(a) | reinterpret_cast<size_t>(b)) % 16 == 0`: whether pointers are multiples of
/// so many bytes.
[[nodiscard]] inline std::string alignment_test(const std::vector<std::string>& pointers,
                                                std::int64_t bytes) {
  std::vector<std::string> addresses;
  for (const std::string& pointer : pointers)
    addresses.push_back("reinterpret_cast<size_t>(" + pointer + ')');
  const std::string all = joined(addresses, " | ");
  return (addresses.size() > 1 ? '(' + all + ')' : all) + " % " + std::to_string(bytes) + " == 0";
}

/// Several elements that one access moves: `float4`.
struct VectorType {
  std::string name{};        ///< "float4"
  std::int64_t elements = 1; ///< 2 or 4
  std::int64_t bytes = 4;    ///< of all of them: what an address must be divisible by

  /// The name of the element of that number: "x", "y", "z" or "w".
  [[nodiscard]] static std::string_view member(std::int64_t element) {
    constexpr std::array<std::string_view, 4> names{"x", "y", "z", "w"};
    return names.at(static_cast<std::size_t>(element));
  }
  /// The vector at the address of a place, as an expression: `*reinterpret_cast<const float4*>(&x[i])`.
  [[nodiscard]] std::string load(const std::string& place) const {
    return "*reinterpret_cast<const " + name + "*>(&" + place + ')';
  }
  /// The vector at the address of a place, to be assigned: `*reinterpret_cast<float4*>(&y[i])`.
  [[nodiscard]] std::string store(const std::string& place) const {
    return "*reinterpret_cast<" + name + "*>(&" + place + ')';
  }
  /// A vector of these values: `make_float4(a, b, c, d)`.
  [[nodiscard]] std::string of(const std::vector<std::string>& values) const {
    return "make_" + name + '(' + joined(values, ", ") + ')';
  }
  /// Whether a pointer is at a whole vector, as an expression: `reinterpret_cast<size_t>(x) % 16 == 0`.
  [[nodiscard]] std::string is_aligned(const std::string& pointer) const {
    return alignment_test({pointer}, bytes);
  }
};

/// The type of 2 or 4 elements of a built-in type; nothing where there is none of at most 16 bytes.
[[nodiscard]] inline std::optional<VectorType> vector_type(std::string_view element, std::int64_t elements) {
  struct Known {
    std::string_view element, stem;
    std::int64_t bytes;
  };
  constexpr std::array<Known, 13> known{{{"float", "float", 4},
                                         {"double", "double", 8},
                                         {"int", "int", 4},
                                         {"unsigned int", "uint", 4},
                                         {"unsigned", "uint", 4},
                                         {"short", "short", 2},
                                         {"unsigned short", "ushort", 2},
                                         {"signed char", "char", 1},
                                         {"unsigned char", "uchar", 1},
                                         {"int32_t", "int", 4},
                                         {"uint32_t", "uint", 4},
                                         {"int8_t", "char", 1},
                                         {"uint8_t", "uchar", 1}}};
  if (elements != 2 && elements != 4) return std::nullopt;
  const std::string plain = without_qualifiers(element);
  for (const Known& one : known)
    if (one.element == plain && one.bytes * elements <= 16)
      return VectorType{std::string(one.stem) + std::to_string(elements), elements, one.bytes * elements};
  return std::nullopt;
}

/// The widest access of a thread, in bytes, that a run of so many bytes is made of.
[[nodiscard]] inline std::int64_t vector_bytes(std::int64_t run) {
  return run % 16 == 0 ? 16 : run % 8 == 0 ? 8 : run % 4 == 0 ? 4 : 2;
}

/// The name of the built-in type of 2, 4, 8 or 16 bytes that a thread loads or stores at once: one of the
/// element's own where that has 4 bytes or more (`float4`), else one of unsigned integers.
[[nodiscard]] inline std::string vector_type_name(std::string_view element, std::int64_t bytes) {
  for (const std::int64_t elements : {2, 4})
    if (const auto own = vector_type(element, elements);
        own && own->bytes == bytes && own->bytes >= 4 * elements)
      return own->name;
  switch (bytes) {
  case 16:
    return "uint4";
  case 8:
    return "uint2";
  case 4:
    return "unsigned int";
  default:
    return "unsigned short";
  }
}

} // namespace mtmc::detail
