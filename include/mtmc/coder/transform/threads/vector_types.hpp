#pragma once
/// The vector types of CUDA C++ by which a thread loads or stores several neighbouring elements at once, and
/// the tests that their addresses must pass.

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
    return "reinterpret_cast<size_t>(" + pointer + ") % " + std::to_string(bytes) + " == 0";
  }
};

/// An element's type without `const` and `volatile`, one space between its words.
[[nodiscard]] inline std::string plain_element(std::string_view type) {
  std::string plain;
  for (std::size_t at = 0; at < type.size();) {
    const std::size_t end = std::min(type.find(' ', at), type.size());
    const std::string_view word = type.substr(at, end - at);
    if (!word.empty() && word != "const" && word != "volatile")
      plain += (plain.empty() ? "" : " ") + std::string(word);
    at = end + 1;
  }
  return plain;
}

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
  const std::string plain = plain_element(element);
  for (const Known& one : known)
    if (one.element == plain && one.bytes * elements <= 16)
      return VectorType{std::string(one.stem) + std::to_string(elements), elements, one.bytes * elements};
  return std::nullopt;
}

} // namespace mtmc::detail
