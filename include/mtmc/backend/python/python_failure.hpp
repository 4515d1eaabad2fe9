#pragma once
/// What Python says when a module cannot be recorded or a kernel not be lowered, as a sentence and a remedy.

#include <mtmc/requirements.hpp>

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Text of a process that may have said anything, without control characters but line ends, cut off at
/// `longest` bytes.
[[nodiscard]] inline std::string harmless(std::string_view text, std::size_t longest = 2000) {
  std::string out(text.substr(0, longest));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = ' ';
  return out;
}

/// A message and its remedy. `kind`: "refused", whose message has the remedy behind its first semicolon, or
/// the name of an exception.
[[nodiscard]] inline std::pair<std::string, std::string> explained_python_failure(std::string_view kind,
                                                                                  std::string_view message) {
  auto said = harmless(message);
  if (kind == "refused") {
    const auto end = said.find("; ");
    if (end == std::string::npos) return {std::move(said), {}};
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
  if (kind == "syntax") return {"this is not Python: " + said, {}};
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
  return {harmless(kind, 100) + ": " + said, {}};
}

} // namespace mtmc::detail
