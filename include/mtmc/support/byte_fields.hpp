#pragma once
/// Messages between two processes of the same program: numbers and texts in a fixed order, as one string.

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Appends fields: a number as eight bytes of this machine, a text as its length and its bytes.
class ByteFieldWriter {
public:
  void number(std::uint64_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

private:
  std::string bytes_;
};

/// Reads them in the same order. Throws std::out_of_range where the message is cut short.
class ByteFieldReader {
public:
  /// `bytes` must outlive the reader.
  explicit ByteFieldReader(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::string text() { return std::string(take(number())); }
  /// How many items follow, each of at least eight bytes.
  [[nodiscard]] std::size_t count() {
    const auto value = number();
    if (value > rest_.size() / sizeof value) cut_short();
    return static_cast<std::size_t>(value);
  }

private:
  [[noreturn]] static void cut_short() {
    throw std::out_of_range("a message of this library's is cut short");
  }
  [[nodiscard]] std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) cut_short();
    const auto part = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(part.size());
    return part;
  }

  std::string_view rest_;
};

} // namespace mtmc::detail
