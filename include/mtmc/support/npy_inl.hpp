#pragma once
/// Definitions of support/npy.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/npy.hpp>

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

namespace mtmc::inline MTMC_ABI::detail {

[[noreturn]] inline void npy_error(const std::string& message) {
  throw NpyError(message, "Write the file anew with numpy.save");
}

MTMC_INLINE NpyDictionary::Fields NpyDictionary::read() {
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
  if (at_ < text_.size()) npy_error("its header continues after the closing brace");
  if (!has_type || !has_order || !has_shape)
    npy_error("its header lacks one of the fields descr, fortran_order and shape");
  return fields;
}

MTMC_INLINE void NpyDictionary::skip_blanks() noexcept {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

MTMC_INLINE char NpyDictionary::next() noexcept {
  skip_blanks();
  return at_ < text_.size() ? text_[at_] : '\0';
}

MTMC_INLINE bool NpyDictionary::take(char wanted) noexcept {
  if (next() != wanted) return false;
  ++at_;
  return true;
}

MTMC_INLINE void NpyDictionary::expect(char wanted) {
  if (!take(wanted))
    npy_error(std::string("its header is malformed: a ") + wanted + " is missing at byte " +
              std::to_string(at_));
}

MTMC_INLINE std::string_view NpyDictionary::quoted() {
  const char quote = next();
  if (quote != '\'' && quote != '"')
    npy_error("its header is malformed: a quoted word is missing at byte " + std::to_string(at_));
  const auto end = text_.find(quote, at_ + 1);
  if (end == std::string_view::npos) npy_error("its header is malformed: a quotation mark is not closed");
  const auto word = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  return word;
}

MTMC_INLINE std::string NpyDictionary::type() {
  if (next() == '[' || next() == '(')
    throw NpyError("its elements are records of several fields", "Save one field, as a plain array");
  return std::string(quoted());
}

MTMC_INLINE bool NpyDictionary::truth_value() {
  skip_blanks();
  for (const bool value : {true, false}) {
    const std::string_view word = value ? "True" : "False";
    if (text_.substr(at_, word.size()) != word) continue;
    at_ += word.size();
    return value;
  }
  npy_error("its header is malformed: fortran_order is neither True nor False");
}

MTMC_INLINE std::vector<std::int64_t> NpyDictionary::extents() {
  std::vector<std::int64_t> shape;
  expect('(');
  while (!take(')')) {
    if (shape.size() == npy_max_dimensions)
      npy_error("its array has more than " + std::to_string(npy_max_dimensions) + " dimensions");
    shape.push_back(extent());
    if (take(',')) continue;
    // In Python (3) is a number and (3,) a shape.
    if (shape.size() == 1 && next() == ')') npy_error("its header is malformed: the shape is not a tuple");
    expect(')');
    break;
  }
  return shape;
}

MTMC_INLINE std::int64_t NpyDictionary::extent() {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::int64_t value = 0;
  bool any = false;
  for (char c = next(); c >= '0' && c <= '9'; c = at_ < text_.size() ? text_[at_] : '\0') {
    if (value > (most - (c - '0')) / 10) npy_error("an extent of its array does not fit into 64 bits");
    value = 10 * value + (c - '0');
    any = true;
    ++at_;
  }
  if (!any) npy_error("its header is malformed: an extent is missing at byte " + std::to_string(at_));
  // Python 2 wrote long integers so.
  if (at_ < text_.size() && text_[at_] == 'L') ++at_;
  return value;
}

MTMC_INLINE void read_npy_type(const std::string& type, NpyHeader& header) {
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

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE NpyHeader parse_npy_header(std::string_view beginning) {
  using detail::npy_error;
  constexpr std::string_view magic{"\x93NUMPY", 6};
  if (!beginning.starts_with(magic))
    throw NpyError("it is not a .npy file", "Write it with numpy.save (not savez, savetxt or tofile)");
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

MTMC_INLINE NpyFile::NpyFile(const std::string& path)
    : path_(path), // A pipe would be waited for without O_NONBLOCK.
      file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!file_) detail::throw_file_error("read", path_, errno);
  struct stat facts{};
  if (::fstat(file_.get(), &facts) != 0) detail::throw_file_error("read", path_, errno);
  if (S_ISDIR(facts.st_mode)) detail::throw_file_error("read", path_, EISDIR);
  if (!S_ISREG(facts.st_mode)) throw NpyError("it is not a regular file", "Copy its content to a file");
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

MTMC_INLINE std::vector<std::byte> NpyFile::read() const {
  std::vector<std::byte> elements(static_cast<std::size_t>(header_.bytes));
  fill(elements, header_.offset);
  return elements;
}

MTMC_INLINE void NpyFile::fill(std::span<std::byte> target, std::uint64_t from) const {
  while (!target.empty()) {
    const ssize_t got = ::pread(file_.get(), target.data(), target.size(), static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) detail::throw_file_error("read", path_, errno);
    if (got == 0) detail::npy_error("it became shorter while it was read");
    target = target.subspan(static_cast<std::size_t>(got));
    from += static_cast<std::uint64_t>(got);
  }
}

} // namespace mtmc
