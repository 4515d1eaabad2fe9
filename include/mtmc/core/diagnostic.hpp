#pragma once
/// One remark about a kernel's text, fit to be shown to a coder.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/unknown_fields.hpp>

#include <string>

namespace mtmc::inline MTMC_ABI {

/// How bad it is.
enum class Severity { note, warning, error };

namespace detail {
inline constexpr EnumName<Severity> severity_names[] = {
    {Severity::note, "note"},
    {Severity::warning, "warning"},
    {Severity::error, "error"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Severity>> enum_names(Severity) noexcept {
  return detail::severity_names;
}

/// A remark with its place and, where one is known, the remedy. Places are in the kernel's text as the coder
/// wrote it.
struct Diagnostic {
  /// Error, warning or remark.
  Severity severity = Severity::error;
  /// 1-based line; 0 if the remark has no place.
  int line = 0;
  /// 1-based column; 0 if unknown.
  int column = 0;
  /// One sentence.
  std::string message;
  /// What the coder should do instead; may be empty.
  std::string remedy;
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default; ///< member by member
};

} // namespace mtmc
