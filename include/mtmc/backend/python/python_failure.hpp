#pragma once
/// What Python says when a module cannot be recorded or a kernel not be lowered, as a sentence and a remedy.

#include <mtmc/requirements.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Text of a process that may have said anything, for a screen: UTF-8 without control characters but line
/// ends, without signs that change the direction of writing, cut off behind `longest` bytes.
[[nodiscard]] inline std::string harmless(std::string_view text, std::size_t longest = 2000) {
  std::string out;
  for (std::size_t at = 0; at < text.size() && out.size() < longest;) {
    const auto first = static_cast<unsigned char>(text[at]);
    const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : 2;
    std::uint32_t code = first < 0x80  ? first
                         : length == 2 ? first & 0x1fU
                         : length == 3 ? first & 0x0fU
                                       : first & 0x07U;
    bool whole = first < 0x80 || (first >= 0xc2 && first < 0xf5);
    for (std::size_t i = 1; i < length && whole; ++i) {
      whole = at + i < text.size() && (static_cast<unsigned char>(text[at + i]) & 0xc0U) == 0x80U;
      if (whole) code = code << 6U | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
    }
    constexpr std::uint32_t shortest[] = {0, 0, 0x80, 0x800, 0x10000};
    whole = whole && code >= shortest[length] && code < 0x110000 && (code < 0xd800 || code > 0xdfff);
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool turns = (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                       (code >= 0x2066 && code <= 0x2069);
    if (!whole)
      out += '?';
    else if (code != '\n' && (control || turns))
      out += ' ';
    else
      out += text.substr(at, length);
    at += whole ? length : 1;
  }
  return out;
}

/// A message and its remedy. `kind`: "refused", whose message has the remedy behind its first semicolon, or
/// the name of an exception.
[[nodiscard]] inline std::pair<std::string, std::string> explained_python_failure(std::string_view kind,
                                                                                  std::string_view message) {
  auto said = harmless(message);
  if (kind == "refused") {
    const auto end = said.find("; ");
    if (end == std::string::npos) return {std::move(said), std::string()};
    auto remedy = said.substr(end + 2);
    if (!remedy.empty() && remedy[0] >= 'a' && remedy[0] <= 'z')
      remedy[0] = static_cast<char>(remedy[0] - 'a' + 'A');
    return {said.substr(0, end), std::move(remedy)};
  }
  if (kind == "values")
    return {
        "the content of a tensor decides what is done (" + said +
            "), and is not known while a call is recorded",
        "Decide by shapes and numbers alone: no .item(), no .tolist(), no truth of a tensor, no nonzero()"};
  if (kind == "memory") return {std::move(said), "Build smaller lists and texts; tensors cost nothing here"};
  if (kind == "syntax") return {"this is not Python: " + said, std::string()};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> remedies{{
      {"ModuleNotFoundError", "Use torch, triton and Python's own library alone"},
      {"PermissionError", "A module may not open files, connections or other processes"},
      {"FileNotFoundError", "A module may not open files"},
      {"CompilationError", "Write what this version of Triton understands"},
      {"RecursionError", "Recurse less deeply"},
      {"NotImplementedError", "Use another operator"},
  }};
  for (const auto& [name, remedy] : remedies)
    if (kind == name) return {harmless(kind, 100) + ": " + said, std::string(remedy)};
  return {harmless(kind, 100) + ": " + said, std::string()};
}

} // namespace mtmc::detail
