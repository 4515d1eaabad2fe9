#pragma once
/// Reading of `.npy` files, NumPy's format of one array (numpy.lib.format, versions 1.0 to 3.0).

#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A file that is no `.npy` file, or one that this library does not read. `what()` says what is wrong with
/// it.
class NpyError : public std::runtime_error {
public:
  /// `message` becomes `what()`.
  NpyError(const std::string& message, std::string remedy)
      : std::runtime_error(message), remedy_(std::move(remedy)) {}

  /// What to do about it.
  [[nodiscard]] const std::string& remedy() const noexcept { return remedy_; }

private:
  std::string remedy_;
};

/// What the beginning of an `.npy` file says of its array, whose elements are little-endian and row-major.
struct NpyHeader {
  /// As NumPy writes it: "<f4", "|u1", ...
  std::string type;
  /// What the elements are: 'f' floating point, 'i' and 'u' integers with and without sign, 'b' truth values,
  /// 'V' bytes without a meaning (bfloat16 is stored so).
  char kind = 'f';
  /// Bytes of one element: 1, 2, 4 or 8.
  std::size_t width = 0;
  /// Outermost extent first; empty for a single number.
  std::vector<std::int64_t> shape;
  /// Where in the file the elements begin, and how many bytes they are.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0; ///< of all elements
};

namespace detail {

/// Headers of plain arrays have some hundred bytes; NumPy itself refuses more than 10,000.
inline constexpr std::size_t npy_longest_header = 65535;
/// As many dimensions as NumPy has.
inline constexpr std::size_t npy_max_dimensions = 64;

/// Reads the header's text, a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class NpyDictionary {
public:
  explicit NpyDictionary(std::string_view text) : text_(text) {}

  struct Fields {
    std::string type;
    bool fortran_order = false;
    std::vector<std::int64_t> shape;
  };

  [[nodiscard]] Fields read();

private:
  void skip_blanks() noexcept;
  [[nodiscard]] char next() noexcept;
  [[nodiscard]] bool take(char wanted) noexcept;
  void expect(char wanted);

  [[nodiscard]] std::string_view quoted();

  [[nodiscard]] std::string type();

  [[nodiscard]] bool truth_value();

  [[nodiscard]] std::vector<std::int64_t> extents();

  [[nodiscard]] std::int64_t extent();

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Takes a type such as "<f4" apart.
void read_npy_type(const std::string& type, NpyHeader& header);

} // namespace detail

/// Reads a header from the first bytes of a file: all of them, or at least 65,547. Throws `NpyError`.
[[nodiscard]] NpyHeader parse_npy_header(std::string_view beginning);

/// An open `.npy` file: first its header, then, if that is what is wanted, the elements.
class NpyFile {
public:
  /// Reads the header and makes sure that the file is as long as it says. Throws `NpyError` if it is no such
  /// file, `std::system_error`, whose what() names path, reason and remedy, if it cannot be read.
  explicit NpyFile(const std::string& path);

  /// What the file says of its elements.
  [[nodiscard]] const NpyHeader& header() const noexcept { return header_; }

  /// All elements. Takes as much memory as the file is long. Throws `NpyError` if the file has become shorter
  /// meanwhile, `std::system_error` if it cannot be read.
  [[nodiscard]] std::vector<std::byte> read() const;

private:
  void fill(std::span<std::byte> target, std::uint64_t from) const;

  std::string path_;
  FileDescriptor file_;
  NpyHeader header_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/support/npy_inl.hpp>
#endif
