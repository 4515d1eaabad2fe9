#pragma once
/// What a compiler says about a kernel's text, as diagnostics that a coder can act on.

#include <mtmc/backend/cpu/trampolines.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// One line "file:line:column: severity: message" of GCC or Clang.
struct CompilerRemark {
  std::string_view file{};
  int line = 0;
  int column = 0;
  Severity severity = Severity::error;
  std::string_view message{};
};

inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Splits "file:line:column" or "file:line"; a text without numbers is a file (or a program) alone.
inline void split_location(std::string_view text, CompilerRemark& remark) {
  std::array<int, 2> numbers{};
  std::size_t count = 0;
  while (count < 2) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) break;
    int value = 0;
    const auto* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + colon + 1, end, value);
    if (read.ec != std::errc{} || read.ptr != end) break;
    numbers[count++] = value;
    text = text.substr(0, colon);
  }
  if (text.starts_with("./")) text.remove_prefix(2);
  remark.file = text;
  remark.line = count == 2 ? numbers[1] : numbers[0];
  remark.column = count == 2 ? numbers[0] : 0;
}

[[nodiscard]] inline std::optional<CompilerRemark> parse_remark(std::string_view line) {
  constexpr std::array<std::pair<std::string_view, Severity>, 5> kinds{
      {{": error: ", Severity::error},
       {": fatal error: ", Severity::error},
       {": internal compiler error: ", Severity::error},
       {": warning: ", Severity::warning},
       {": note: ", Severity::note}}};
  std::optional<CompilerRemark> best;
  auto place = std::string_view::npos;
  for (const auto& [marker, severity] : kinds) {
    const auto at = line.find(marker);
    // Without a word behind it, it says nothing.
    if (at == std::string_view::npos || at >= place ||
        trim(shortened(line.substr(at + marker.size()))).empty())
      continue;
    place = at;
    best.emplace();
    best->severity = severity;
    best->message = line.substr(at + marker.size());
    split_location(line.substr(0, at), *best);
  }
  return best;
}

/// Whether an assembler has the last word. It quotes its input, which may be any file.
[[nodiscard]] inline bool is_assembler_failure(std::string_view text) {
  return text.find(": Assembler messages:") != std::string_view::npos ||
         text.find(": Error: ") != std::string_view::npos ||
         text.find("assembler command failed") != std::string_view::npos;
}

/// The first name between single quotes in a message, or nothing.
[[nodiscard]] inline std::string_view quoted_name(std::string_view message) {
  const auto open = message.find('\'');
  if (open == std::string_view::npos) return {};
  const auto close = message.find('\'', open + 1);
  return close == std::string_view::npos ? std::string_view{} : message.substr(open + 1, close - open - 1);
}

/// The header that declares a well-known name, or nothing.
[[nodiscard]] inline std::string_view header_of(std::string_view name) {
  // An entry that ends in '*' stands for all names that begin like it.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 40> headers{
      {{"_mm*", "immintrin.h"},
       {"__m128*", "immintrin.h"},
       {"__m256*", "immintrin.h"},
       {"__m512*", "immintrin.h"},
       {"omp_*", "omp.h"},
       {"int8_t", "cstdint"},
       {"int16_t", "cstdint"},
       {"int32_t", "cstdint"},
       {"int64_t", "cstdint"},
       {"uint8_t", "cstdint"},
       {"uint16_t", "cstdint"},
       {"uint32_t", "cstdint"},
       {"uint64_t", "cstdint"},
       {"uintptr_t", "cstdint"},
       {"intptr_t", "cstdint"},
       {"size_t", "cstddef"},
       {"ptrdiff_t", "cstddef"},
       {"memcpy", "cstring"},
       {"memset", "cstring"},
       {"memmove", "cstring"},
       {"malloc", "cstdlib"},
       {"free", "cstdlib"},
       {"aligned_alloc", "cstdlib"},
       {"FLT_MAX", "cfloat"},
       {"DBL_MAX", "cfloat"},
       {"FLT_MIN", "cfloat"},
       {"INFINITY", "cmath"},
       {"exp*", "cmath"},
       {"sqrt*", "cmath"},
       {"tanh*", "cmath"},
       {"fma*", "cmath"},
       {"fmax*", "cmath"},
       {"fmin*", "cmath"},
       {"erf*", "cmath"},
       {"log*", "cmath"},
       {"pow*", "cmath"},
       {"float32x*", "arm_neon.h"},
       {"float64x*", "arm_neon.h"},
       {"vld1*", "arm_neon.h"},
       {"INT_MAX", "climits"}}};
  if (name.starts_with("std::")) name.remove_prefix(5);
  for (const auto& [known, header] : headers)
    if (known.ends_with('*') ? name.starts_with(known.substr(0, known.size() - 1)) : name == known)
      return header;
  return {};
}

/// What a coder should do about a message, where that is plain; otherwise empty.
[[nodiscard]] inline std::string remedy_for(std::string_view message) {
  const auto has = [&](std::string_view part) { return message.find(part) != std::string_view::npos; };
  if (has("target specific option mismatch") || has("requires target feature") ||
      has("always_inline function"))
    return "This processor or the compiler's flags do not have that instruction set: use only what the "
           "device's "
           "features name";
  if (has("No such file or directory") || has("file not found"))
    return "Only the standard library, <omp.h> and the compiler's intrinsics can be included: remove the "
           "#include or put the code into the kernel's text";
  if (has("was not declared in this scope") || has("undeclared identifier") || has("does not name a type") ||
      has("unknown type name") || has("is not a member of 'std'") || has("no member named")) {
    const auto name = quoted_name(message);
    if (const auto header = header_of(name); !header.empty())
      return "Add `#include <" + std::string(header) + ">`";
    if (const auto at = message.find("did you mean '"); at != std::string_view::npos)
      return "Write `" + std::string(quoted_name(message.substr(at))) + "` if that was meant, or declare `" +
             std::string(name) + "` before its use";
    if (name == "std") return "Include the header that declares what is used from `std`";
    return "Declare it before its use, or include the header that declares it";
  }
  if (has("expected ';'")) return "Add the missing semicolon";
  if (has("template instantiation depth") || has("recursive template instantiation"))
    return "End the recursion of the template";
  if (has("constexpr") && has("limit")) return "Compute it at run time, or with fewer steps";
  return {};
}

/// Reads what the compiler wrote about a program (see `program_text`).
class CompilerReport {
public:
  /// `kernel_lines` is the number of lines of the kernel's text, `folder` the path to keep out of messages,
  /// `is_header` whether a file is one of which messages may quote words.
  CompilerReport(std::string text, const std::vector<LaunchSignature>& signatures, int kernel_lines,
                 const std::string& folder, std::function<bool(const std::string&)> is_header)
      : text_(std::move(text)), signatures_(signatures), kernel_lines_(kernel_lines),
        is_header_(std::move(is_header)) {
    replace_all(text_, folder + '/', "");
    replace_all(text_, "std::__cxx11::", "std::");
  }

  /// The remarks worth a coder's attention, errors first, at most `most`.
  [[nodiscard]] std::vector<Diagnostic> diagnostics(std::size_t most) {
    std::string_view rest = text_;
    while (!rest.empty() && !done_) {
      const auto end = rest.find('\n');
      take_line(rest.substr(0, end));
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    }
    drop_cascades();
    std::stable_partition(groups_.begin(), groups_.end(), [](const Group& group) {
      return group.remarks.front().severity == Severity::error;
    });
    std::vector<Diagnostic> result;
    for (auto& group : groups_)
      for (auto& diagnostic : group.remarks)
        if (result.size() < most) result.push_back(std::move(diagnostic));
    return result;
  }

private:
  struct Group {
    // A remark and the notes that belong to it.
    std::vector<Diagnostic> remarks;
    // Whether it is a sentence of ours about a launch line, and of these the one that there is no such
    // function.
    bool generated = false;
    bool unknown_entry = false;
  };
  static constexpr std::size_t longest_message = 400;
  static constexpr std::size_t max_notes = 2;

  [[nodiscard]] const LaunchSignature* launch_at(int line) const {
    for (const auto& signature : signatures_)
      if (signature.line == line) return &signature;
    return nullptr;
  }

  static std::string shortened(std::string_view message) {
    if (message.size() <= longest_message) return std::string(message);
    return std::string(message.substr(0, longest_message)) + "...";
  }

  void add(Diagnostic diagnostic) {
    has_error_ = has_error_ || diagnostic.severity == Severity::error;
    groups_.push_back({{std::move(diagnostic)}});
  }

  /// The answer of the system to a name of a file, which would tell whether there is one.
  [[nodiscard]] static bool names_a_file(std::string_view message) {
    return message.ends_with(": No such file or directory") || message.ends_with(": Permission denied") ||
           message.ends_with(": Not a directory") || message.ends_with(": Is a directory") ||
           message.ends_with(" file not found");
  }

  /// Beyond so many remarks, which are compared with each other, only the first error still counts.
  [[nodiscard]] bool is_full(Severity severity) const {
    constexpr std::size_t max_groups = 200;
    return groups_.size() >= max_groups && (severity != Severity::error || has_error_);
  }

  void take_line(std::string_view line) {
    if (const auto remark = parse_remark(line)) {
      if (remark->severity != Severity::note && is_full(remark->severity)) {
        note_is_foreign_ = true;
        return;
      }
      if (remark->severity == Severity::note)
        take_note(*remark);
      else
        take_remark(*remark);
      return;
    }
    if (line.find("In instantiation of") != std::string_view::npos) {
      required_line_ = required_column_ = 0;
    } else if (const auto at = line.find(":   required"); at != std::string_view::npos) {
      CompilerRemark place;
      split_location(line.substr(0, at), place);
      if (place.file == "kernel.cpp") {
        required_line_ = place.line;
        required_column_ = place.column;
      }
    } else {
      take_linker_line(line);
    }
  }

  void take_linker_line(std::string_view line) {
    constexpr std::array<std::string_view, 2> markers{"undefined reference to ", "undefined symbol: "};
    for (const auto marker : markers) {
      const auto at = line.find(marker);
      if (at == std::string_view::npos || is_full(Severity::error)) continue;
      auto name = line.substr(at + marker.size());
      if (!name.empty() && (name.front() == '`' || name.front() == '\'')) name.remove_prefix(1);
      if (!name.empty() && name.back() == '\'') name.remove_suffix(1);
      auto message = '`' + shortened(name) + "` is declared and used but defined nowhere";
      for (const auto& group : groups_)
        if (group.remarks.front().message == message) return;
      add({Severity::error,
           0,
           0,
           std::move(message),
           "Define it in the kernel's text: besides the standard library and OpenMP nothing is "
           "linked",
           {}});
    }
  }

  void take_note(const CompilerRemark& note) {
    if (groups_.empty() || note_is_foreign_) return;
    auto& group = groups_.back();
    // "'std::vector' is defined in header '<vector>'; did you forget to '#include <vector>'?"
    if (const auto at = note.message.find("'#include "); at != std::string_view::npos) {
      const auto end = note.message.find('\'', at + 1);
      group.remarks.front().remedy = "Add `" + std::string(note.message.substr(at + 1, end - at - 1)) + '`';
      return;
    }
    if (note.file != "kernel.cpp") return;
    if (group.remarks.front().line == 0 && note.message.find("requested here") != std::string_view::npos) {
      group.remarks.front().line = note.line;
      group.remarks.front().column = note.column;
      return;
    }
    constexpr std::array<std::string_view, 6> noise{"requested here",        "the comparison reduces to",
                                                    "declared here",         "candidate",
                                                    "suggested alternative", "each undeclared identifier"};
    for (const auto part : noise)
      if (note.message.find(part) != std::string_view::npos) return;
    if (group.remarks.size() <= max_notes)
      group.remarks.push_back({Severity::note, note.line, note.column, shortened(note.message), {}, {}});
  }

  void take_remark(const CompilerRemark& remark) {
    const int required_line = std::exchange(required_line_, 0);
    const int required_column = std::exchange(required_column_, 0);
    note_is_foreign_ = true;
    if (remark.file == "mtmc-trampolines") return;
    if (remark.file == end_of_kernel_file) {
      // Nothing behind an unfinished text can be taken seriously.
      done_ = true;
      add({Severity::error,
           kernel_lines_,
           0,
           "the kernel's text ends inside an open brace or an unfinished declaration",
           "Close every brace and parenthesis, and end the last declaration with a semicolon",
           {}});
      return;
    }
    note_is_foreign_ = false;
    Diagnostic diagnostic{remark.severity, remark.line, remark.column, shortened(remark.message), {}, {}};
    if (names_a_file(remark.message)) {
      diagnostic.message = "the text makes the compiler look for a file";
      diagnostic.remedy = remedy_for("No such file or directory");
      return add(std::move(diagnostic));
    }
    if (remark.file != "kernel.cpp") {
      diagnostic.line = required_line;
      diagnostic.column = required_column;
      if (is_foreign(remark)) {
        diagnostic.message = "the text includes a file that is not one of the compiler's headers";
        diagnostic.remedy = "Remove the #include, and put the code into the kernel's text";
        return add(std::move(diagnostic));
      }
      if (remark.line > 0) {
        const auto slash = remark.file.rfind('/');
        diagnostic.message += " (in <" + std::string(remark.file.substr(slash + 1)) + ">)";
      }
    } else if (const auto* signature = launch_at(remark.line)) {
      diagnostic.column = 0;
      add(std::move(diagnostic));
      describe_launch(*signature, remark.message, groups_.back());
      return;
    }
    diagnostic.remedy = remedy_for(remark.message);
    add(std::move(diagnostic));
  }

  /// Whether it is about a file that the compiler should not have read, and may quote it.
  [[nodiscard]] bool is_foreign(const CompilerRemark& remark) const {
    return remark.line > 0 && remark.file.find('/') != std::string_view::npos &&
           !is_header_(std::string(remark.file));
  }

  static void describe_launch(const LaunchSignature& signature, std::string_view message, Group& group) {
    auto& diagnostic = group.remarks.front();
    group.generated = true;
    const auto has = [&](std::string_view part) { return message.find(part) != std::string_view::npos; };
    diagnostic.remedy = "Make the launch line and the parameter list of `" + signature.entry + "` agree";
    if (const auto at = message.find(assertion_marker); at != std::string_view::npos) {
      auto sentence = message.substr(at + assertion_marker.size());
      if (sentence.ends_with('"')) sentence.remove_suffix(1);
      diagnostic.message = sentence;
    } else if (quoted_name(message) == signature.entry &&
               (has("not declared in this scope") || has("undeclared identifier"))) {
      group.unknown_entry = true;
      diagnostic.message =
          "the launch line calls `" + signature.entry + "`, which the kernel does not define";
      diagnostic.remedy =
          "Define the function `" + signature.entry + "`, or name an existing function in the launch line";
      if (const auto mean = message.find("did you mean '"); mean != std::string_view::npos)
        diagnostic.remedy += "; perhaps `" + std::string(quoted_name(message.substr(mean))) + "` was meant";
    } else if (has("overloaded function")) {
      diagnostic.message = "`" + signature.entry +
                           "` is overloaded or a template, so it is not clear what the "
                           "launch line calls";
      diagnostic.remedy = "Launch one ordinary function of a name of its own, which may call the template";
    } else {
      group.generated = false;
    }
  }

  // What a linker or compiler driver says after others have said why.
  static bool is_last_word(const Diagnostic& diagnostic) {
    return diagnostic.line == 0 && (diagnostic.message.find("exit status") != std::string::npos ||
                                    diagnostic.message.find("linker command") != std::string::npos);
  }

  // Whether `group` only repeats or follows from what `other` says. `earlier`: whether `other` came before.
  [[nodiscard]] bool makes_superfluous(const Group& other, const Group& group, bool earlier) const {
    const auto& said = other.remarks.front();
    const auto& remark = group.remarks.front();
    if (is_last_word(remark)) return said.severity == Severity::error && (earlier || !is_last_word(said));
    if (said.line != remark.line || said.severity != remark.severity) return false;
    if (launch_at(remark.line) != nullptr) {
      if (other.unknown_entry && !group.unknown_entry) return true;
      return group.generated ? earlier && said.message == remark.message : other.generated || earlier;
    }
    if (!earlier) return false;
    constexpr std::string_view in_header = " (in <";
    return said.message == remark.message || (said.message.find(in_header) != std::string::npos &&
                                              remark.message.find(in_header) != std::string::npos);
  }

  // Drops what only follows from other errors: the rest of a broken launch line, the other overloads that a
  // header's template tried, and the linker's last words.
  void drop_cascades() {
    std::vector<Group> kept;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      bool drop = false;
      for (std::size_t j = 0; j < groups_.size() && !drop; ++j)
        drop = i != j && makes_superfluous(groups_[j], groups_[i], j < i);
      if (!drop) kept.push_back(groups_[i]);
    }
    groups_ = std::move(kept);
  }

  std::string text_;
  const std::vector<LaunchSignature>& signatures_;
  int kernel_lines_;
  std::function<bool(const std::string&)> is_header_;
  std::vector<Group> groups_;
  int required_line_ = 0;
  int required_column_ = 0;
  bool note_is_foreign_ = true;
  bool has_error_ = false;
  bool done_ = false;
};

} // namespace mtmc::detail
