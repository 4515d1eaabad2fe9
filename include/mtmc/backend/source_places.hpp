#pragma once
/// Which place of a kernel's text an assembly text (of GCC, Clang or NVRTC) comes from, line by line.

#include <mtmc/backend/defined_functions.hpp>
#include <mtmc/core/branch.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

namespace mtmc::inline MTMC_ABI::detail {

/// The first word of a line of assembly, and what follows it.
struct AssemblyStatement {
  std::string_view word;
  std::string_view operands;
};
/// Without the blanks around them.
[[nodiscard]] inline AssemblyStatement statement_of(std::string_view line) {
  constexpr std::string_view blank = " \t";
  line.remove_prefix(std::min(line.find_first_not_of(blank), line.size()));
  const auto word = line.substr(0, line.find_first_of(blank));
  line.remove_prefix(word.size());
  line.remove_prefix(std::min(line.find_first_not_of(blank), line.size()));
  return {word, line};
}

/// Follows `.file` and `.loc`.
class SourcePlaces {
public:
  /// Of `text`, the source file of that name.
  SourcePlaces(std::string_view file, std::string_view text) : file_(file) {
    // What stands on the line of a directive (OpenMP's, say) is the compiler's: how it deals out a loop.
    for (const auto& token : all_tokens(text))
      if (token.starts_line && token.is("#")) directives_.insert(token.line);
  }

  /// `.file 1 "folder" "name"`, with more behind it or without a folder. May come behind its use, if it is
  /// looked for before.
  void note_file(const AssemblyStatement& statement) {
    if (statement.word != ".file") return;
    auto operands = statement.operands;
    const int number = take_number(operands);
    std::string_view name;
    for (auto begin = operands.find('"'); begin != std::string_view::npos; begin = operands.find('"')) {
      const auto end = operands.find('"', begin + 1);
      if (end == std::string_view::npos) break;
      name = operands.substr(begin + 1, end - begin - 1);
      operands.remove_prefix(end + 1);
    }
    if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
    files_[number] = name == file_;
  }
  /// `.loc 1 12 5`, with more behind it.
  void note_place(const AssemblyStatement& statement) {
    if (statement.word != ".loc") return;
    auto operands = statement.operands;
    const int file = take_number(operands);
    place_.line = take_number(operands);
    place_.column = std::max(0, take_number(operands));
    is_known_ = place_.line > 0 && files_[file] && !directives_.contains(place_.line);
  }
  /// From here on nothing is known.
  void forget_place() noexcept { is_known_ = false; }

  /// Whether the line comes from a statement of the text.
  [[nodiscard]] bool is_known() const noexcept { return is_known_; }
  /// A branch at that place, that has gone nowhere.
  [[nodiscard]] const Branch& branch() const noexcept { return place_; }

private:
  /// Of `operands` the number at the front, which is taken off; -1 if there is none.
  [[nodiscard]] static int take_number(std::string_view& operands) {
    operands.remove_prefix(std::min(operands.find_first_not_of(" \t"), operands.size()));
    int number = -1;
    const auto [end, error] = std::from_chars(operands.data(), operands.data() + operands.size(), number);
    operands.remove_prefix(static_cast<std::size_t>(end - operands.data()));
    return error == std::errc{} ? number : -1;
  }

  std::string_view file_;
  std::set<int> directives_;
  std::map<int, bool> files_;
  Branch place_;
  bool is_known_ = false;
};

} // namespace mtmc::detail
