#pragma once
/// Reading of `.npy` files, NumPy's format of one array (numpy.lib.format, versions 1.0 to 3.0).

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

namespace mtmc {

/// A file that is no `.npy` file, or one that this library does not read. `what()` says what is wrong with
/// it.
class NpyError : public std::runtime_error {
public:
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
  std::uint64_t bytes = 0;
};

namespace detail {

/// Headers of plain arrays have some hundred bytes; NumPy itself refuses more than 10,000.
inline constexpr std::size_t npy_longest_header = 65535;
/// As many dimensions as NumPy has.
inline constexpr std::size_t npy_most_dimensions = 64;

[[noreturn]] inline void npy_error(const std::string& message) {
  throw NpyError(message, "Write the file anew with numpy.save");
}

/// Reads the header's text, a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class NpyDictionary {
public:
  explicit NpyDictionary(std::string_view text) : text_(text) {}

  struct Fields {
    std::string type;
    bool fortran_order = false;
    std::vector<std::int64_t> shape;
  };

  [[nodiscard]] Fields read() {
    Fields fields;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const auto key = quoted();
      expect(':');
      bool* has = key == "descr"           ? &has_type
                  : key == "fortran_order" ? &has_order
                  : key == "shape"         ? &has_shape
                                           : nullptr;
      if (has == nullptr) npy_error("its header has a field besides descr, fortran_order and shape");
      if (std::exchange(*has, true)) npy_error("its header has the field " + std::string(key) + " twice");
      if (has == &has_type)
        fields.type = type();
      else if (has == &has_order)
        fields.fortran_order = truth_value();
      else
        fields.shape = extents();
      if (take(',')) continue;
      expect('}');
      break;
    }
    skip_blanks();
    if (at_ < text_.size()) npy_error("its header goes on after the closing brace");
    if (!has_type || !has_order || !has_shape)
      npy_error("its header lacks one of the fields descr, fortran_order and shape");
    return fields;
  }

private:
  void skip_blanks() noexcept {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  [[nodiscard]] char next() noexcept {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  [[nodiscard]] bool take(char wanted) noexcept {
    if (next() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted))
      npy_error(std::string("its header is malformed: a ") + wanted + " is missing at byte " +
                std::to_string(at_));
  }

  [[nodiscard]] std::string_view quoted() {
    const char quote = next();
    if (quote != '\'' && quote != '"')
      npy_error("its header is malformed: a quoted word is missing at byte " + std::to_string(at_));
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) npy_error("its header is malformed: a quotation mark is not closed");
    const auto word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }

  [[nodiscard]] std::string type() {
    if (next() == '[' || next() == '(')
      throw NpyError("its elements are records of several fields", "Save one field, as a plain array");
    return std::string(quoted());
  }

  [[nodiscard]] bool truth_value() {
    skip_blanks();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    npy_error("its header is malformed: fortran_order is neither True nor False");
  }

  [[nodiscard]] std::vector<std::int64_t> extents() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!take(')')) {
      if (shape.size() == npy_most_dimensions)
        npy_error("its array has more than " + std::to_string(npy_most_dimensions) + " dimensions");
      shape.push_back(extent());
      if (take(',')) continue;
      // In Python (3) is a number and (3,) a shape.
      if (shape.size() == 1 && next() == ')') npy_error("its header is malformed: the shape is no tuple");
      expect(')');
      break;
    }
    return shape;
  }

  [[nodiscard]] std::int64_t extent() {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    std::int64_t value = 0;
    bool any = false;
    for (char c = next(); c >= '0' && c <= '9'; c = at_ < text_.size() ? text_[at_] : '\0') {
      if (value > (most - (c - '0')) / 10) npy_error("an extent of its array is no number of 64 bits");
      value = 10 * value + (c - '0');
      any = true;
      ++at_;
    }
    if (!any) npy_error("its header is malformed: an extent is missing at byte " + std::to_string(at_));
    // Python 2 wrote long integers so.
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Takes a type such as "<f4" apart.
inline void read_npy_type(const std::string& type, NpyHeader& header) {
  std::string shown;
  for (const char c : type.substr(0, 16)) shown += c > ' ' && c < '\x7f' ? c : '?';
  const std::string_view order = "<>|=";
  const char kind = type.size() == 3 ? type[1] : '\0';
  const int width = type.size() == 3 ? type[2] - '0' : 0;
  const bool integer = kind == 'i' || kind == 'u';
  const bool known = ((kind == 'f' || integer) && (width == 2 || width == 4 || width == 8)) ||
                     ((integer || kind == 'b') && width == 1) || (kind == 'V' && width == 2);
  if (!known || order.find(type[0]) == std::string_view::npos)
    throw NpyError("its elements are of the type \"" + shown + "\", which no buffer has",
                   "Save integers of 1 to 8 bytes or floating-point numbers of 2 to 8 bytes, for instance "
                   "array.astype(numpy.float32)");
  if (type[0] == '>' && width > 1)
    throw NpyError("its elements are big-endian (\"" + shown + "\")",
                   "Save array.astype(array.dtype.newbyteorder('<'))");
  header.type = type;
  header.kind = kind;
  header.width = static_cast<std::size_t>(width);
}

} // namespace detail

/// Reads a header from the first bytes of a file: all of them, or at least 65,547. Throws `NpyError`.
[[nodiscard]] inline NpyHeader parse_npy_header(std::string_view beginning) {
  using detail::npy_error;
  constexpr std::string_view magic{"\x93NUMPY", 6};
  if (!beginning.starts_with(magic))
    throw NpyError("it is no .npy file", "Write it with numpy.save (not savez, savetxt or tofile)");
  const auto byte = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(beginning[at]));
  };
  const std::size_t version = beginning.size() > 7 ? byte(6) : 1;
  const std::size_t start = version == 1 ? 10 : 12;
  if (beginning.size() < start) npy_error("it is cut off in its header");
  if (version < 1 || version > 3 || byte(7) != 0)
    npy_error("it has the unknown format version " + std::to_string(byte(6)) + '.' + std::to_string(byte(7)));
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > detail::npy_longest_header)
    npy_error("it has a header of " + std::to_string(length) + " bytes, more than any plain array needs");
  if (beginning.size() - start < length) npy_error("it is cut off in its header");

  auto fields = detail::NpyDictionary(beginning.substr(start, length)).read();
  NpyHeader header;
  detail::read_npy_type(fields.type, header);
  if (fields.fortran_order && fields.shape.size() > 1)
    throw NpyError(
        "its array is stored column by column (fortran_order)",
        "Save numpy.ascontiguousarray(array), or declare the argument with its extents reversed and "
        "save array.T");
  header.shape = std::move(fields.shape);
  header.offset = start + length;
  header.bytes = header.width;
  for (const auto extent : header.shape) {
    const auto factor = static_cast<std::uint64_t>(extent);
    if (factor != 0 && header.bytes > std::numeric_limits<std::uint64_t>::max() / factor)
      npy_error("its header names more elements than memory can hold");
    header.bytes *= factor;
  }
  return header;
}

/// An open `.npy` file: first its header, then, if that is what is wanted, the elements.
class NpyFile {
public:
  /// Reads the header and makes sure that the file is as long as it says. Throws `NpyError` if it is no such
  /// file, `std::system_error`, whose what() names path, reason and remedy, if it cannot be read.
  explicit NpyFile(const std::string& path)
      : path_(path), // A pipe would be waited for without O_NONBLOCK.
        file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (!file_) detail::throw_file_error("read", path_, errno);
    struct stat facts {};
    if (::fstat(file_.get(), &facts) != 0) detail::throw_file_error("read", path_, errno);
    if (S_ISDIR(facts.st_mode)) detail::throw_file_error("read", path_, EISDIR);
    if (!S_ISREG(facts.st_mode)) throw NpyError("it is no regular file", "Copy its content to a file");
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    constexpr std::uint64_t most = 12 + detail::npy_longest_header;
    std::string beginning(static_cast<std::size_t>(std::min(size, most)), '\0');
    fill(std::as_writable_bytes(std::span(beginning)), 0);
    header_ = parse_npy_header(beginning);
    const auto rest = size - header_.offset;
    if (rest != header_.bytes)
      detail::npy_error((rest < header_.bytes ? "it is cut off: " : "it is too long: ") +
                        ("its header names " + std::to_string(header_.bytes)) + " bytes of elements, but " +
                        std::to_string(rest) + " follow");
  }

  [[nodiscard]] const NpyHeader& header() const noexcept { return header_; }

  /// All elements. Takes as much memory as the file is long. Throws `NpyError` if the file has become shorter
  /// meanwhile, `std::system_error` if it cannot be read.
  [[nodiscard]] std::vector<std::byte> read() const {
    std::vector<std::byte> elements(static_cast<std::size_t>(header_.bytes));
    fill(elements, header_.offset);
    return elements;
  }

private:
  void fill(std::span<std::byte> target, std::uint64_t from) const {
    while (!target.empty()) {
      const ssize_t got = ::pread(file_.get(), target.data(), target.size(), static_cast<off_t>(from));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) detail::throw_file_error("read", path_, errno);
      if (got == 0) detail::npy_error("it became shorter while it was read");
      target = target.subspan(static_cast<std::size_t>(got));
      from += static_cast<std::uint64_t>(got);
    }
  }

  std::string path_;
  FileDescriptor file_;
  NpyHeader header_;
};

} // namespace mtmc
