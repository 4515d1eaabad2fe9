#pragma once
/// A kernel: one editable text in some language.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/unknown_fields.hpp>
#include <mtmc/support/sha256.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Which family of syntax a language's text has; it decides the comment marker of launch lines.
enum class Syntax { c_family, python };

namespace detail {
inline constexpr EnumName<Syntax> syntax_names[] = {
    {Syntax::c_family, "c_family"},
    {Syntax::python, "python"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Syntax>> enum_names(Syntax) noexcept {
  return detail::syntax_names;
}

/// A kernel language. The set is open: a host adds its own as a value.
struct Language {
  /// Stable name, as in task files: "cpp", "cuda", ...
  std::string name;
  Syntax syntax = Syntax::c_family; ///< decides the comment marker of launch lines
  UnknownFields unknown{};          ///< fields of a newer form

  /// Of a file that holds a kernel: ".cu". ".txt", or ".py" by its syntax, for a host's own language.
  [[nodiscard]] std::string file_extension() const {
    if (name == "cpp") return ".cpp";
    if (name == "cuda") return ".cu";
    if (name == "opencl") return ".cl";
    return syntax == Syntax::python ? ".py" : ".txt";
  }

  friend bool operator==(const Language&, const Language&) = default; ///< member by member
};

/// Marker that starts a launch line: `//@` in C-family text, `#@` in Python-family text.
[[nodiscard]] inline std::string_view launch_marker(const Language& language) noexcept {
  return language.syntax == Syntax::python ? "#@" : "//@";
}

/// The languages this library knows by name.
namespace languages {
inline const Language cpp{"cpp", Syntax::c_family};       ///< C++ on the host's processor
inline const Language cuda{"cuda", Syntax::c_family};     ///< CUDA C++
inline const Language opencl{"opencl", Syntax::c_family}; ///< OpenCL C
inline const Language triton{"triton", Syntax::python};   ///< Triton
inline const Language pytorch{"pytorch", Syntax::python}; ///< PyTorch
} // namespace languages

/// `text` with CRLF as LF, blanks at line ends removed, and exactly one newline at the end (none if it is
/// empty).
[[nodiscard]] inline std::string normalize_text(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 1);
  for (const char c : text) {
    if (c == '\n')
      while (!out.empty() && (out.back() == ' ' || out.back() == '\t' || out.back() == '\r')) out.pop_back();
    out.push_back(c);
  }
  while (!out.empty() &&
         (out.back() == '\n' || out.back() == ' ' || out.back() == '\t' || out.back() == '\r'))
    out.pop_back();
  if (!out.empty()) out.push_back('\n');
  return out;
}

/// One editable text including its launch lines (design, section 4).
struct Kernel {
  Language language;       ///< the language of `source`
  std::string source;      ///< the whole text, launch lines included
  UnknownFields unknown{}; ///< fields of a newer form

  /// SHA-256, in hex, of the language's name and the normalised text. Comments count, since launch lines are
  /// comments.
  [[nodiscard]] std::string id() const { return sha256_hex(language.name + '\n' + normalize_text(source)); }

  friend bool operator==(const Kernel&, const Kernel&) = default; ///< member by member
};

/// A part of a kernel's text that is executed as a whole: an outermost loop, or a statement with loops in it.
struct KernelPart {
  /// Name of the function.
  std::string entry;
  int first_line = 0; ///< 1-based first line in the kernel's text
  int last_line = 0;  ///< 1-based last line, included

  friend bool operator==(const KernelPart&, const KernelPart&) = default; ///< member by member
};

/// A kernel that can be stopped early.
struct DividedKernel {
  /// What its launch lines pass, which is more than any kernel has parts: everything is executed.
  static constexpr std::int64_t all_parts = 1000000;
  /// The kernel; each launch has one more argument behind all others, how many of its parts are executed.
  Kernel kernel{};
  /// The parts of all entries, by entry in the order of execution; the last one of an entry goes to its end.
  std::vector<KernelPart> parts{};
};

} // namespace mtmc
