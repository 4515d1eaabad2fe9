#pragma once
/// Contents of `.npy` files, as NumPy 2.4 writes them.

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace npy_bytes {

/// Magic, version and a header padded to a multiple of 64 bytes.
inline std::string header(std::string_view dictionary, int version = 1) {
  const std::size_t start = version == 1 ? 10 : 12;
  std::string padded(dictionary);
  while ((start + padded.size() + 1) % 64 != 0) padded += ' ';
  padded += '\n';
  std::string text("\x93NUMPY", 6);
  text += static_cast<char>(version);
  text += '\0';
  for (std::size_t i = 0; i < start - 8; ++i) text += static_cast<char>(padded.size() >> (8 * i) & 0xff);
  return text + padded;
}

/// A whole file; `type` and `shape` as in "<f4" and "(2, 3)".
template <class T>
std::string file(const std::string& type, const std::string& shape, const std::vector<T>& elements) {
  std::string bytes(elements.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), elements.data(), bytes.size());
  return header("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }") + bytes;
}

} // namespace npy_bytes
