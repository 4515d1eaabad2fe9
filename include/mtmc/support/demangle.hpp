#pragma once

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// At most so many bytes: what is longer keeps its beginning and its end, with "..." between them.
[[nodiscard]] inline std::string abridged(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  const std::size_t kept = longest / 2;
  return std::string(text.substr(0, kept)) + "..." + std::string(text.substr(text.size() - kept));
}

/// More bytes than a mangled name has when it is written out. A mangled name says what it repeats by a short
/// reference (`S3_`, `T_`), to something that was said before and may have references itself: written out, a
/// name of 200 bytes can take up gigabytes.
[[nodiscard]] inline double largest_written_out(std::string_view mangled) noexcept {
  // A letter may stand for `std::basic_iostream<char, std::char_traits<char> >`.
  constexpr double largest_letter = 32;
  double size = 0;
  double parameters = 0; // references to template arguments, which a repeated part looks up anew
  for (std::size_t i = 0; i < mangled.size(); ++i) {
    size += largest_letter;
    const char c = mangled[i];
    const char next = i + 1 < mangled.size() ? mangled[i + 1] : '\0';
    const bool numbered = next == '_' || (next >= '0' && next <= '9') || (next >= 'A' && next <= 'Z');
    if (c == 'T' && numbered) ++parameters;
    if ((c == 'S' || c == 'T') && numbered) size *= 2 + parameters;
    // An expansion repeats its pattern for each argument of a pack.
    if ((c == 'D' || c == 's') && (next == 'p' || next == 'P')) size *= static_cast<double>(mangled.size());
  }
  return size;
}

/// The name as the coder wrote it, at most 200 bytes of it: `_ZZ4rowsPKfE5cache` is
/// `rows(float const*)::cache`. Of a name that could take up more than 16 megabytes when it is
/// written out, the mangled form is given.
[[nodiscard]] inline std::string demangled(const std::string& name) {
  constexpr std::size_t longest = 200;
  constexpr double max_written_out = 16 << 20;
  // Without this prefix it would be taken for a type: `c` for `char`.
  if (!name.starts_with("_Z") || largest_written_out(name) > max_written_out) return abridged(name, longest);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text{
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free};
  return abridged(status == 0 && text ? std::string_view(text.get()) : std::string_view(name), longest);
}

} // namespace mtmc::detail
