#pragma once
/// Functions of a kernel whose names the compiler knows from the C library.

#include <mtmc/backend/cpu/allowed_symbols.hpp>
#include <mtmc/backend/defined_functions.hpp>
#include <mtmc/backend/launch_check.hpp>

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What the compiler has to be told, and what has to be looked at, so that a kernel's own `abort`, `malloc`
/// or `memcpy` is what the text says and not what the compiler takes it for.
class OwnFunctions {
public:
  /// Of a kernel's text with those launches.
  OwnFunctions(std::string_view text, const std::vector<LaunchSignature>& signatures) {
    const auto tokens = all_tokens(text);
    for (const auto& name : defined_functions(tokens))
      // Overloads of functions for real numbers are common; the library's own are still to become
      // instructions.
      if (!is_mathematical(name)) own_.insert(name);
    for (const auto& signature : signatures) own_.insert(signature.entry);
    constexpr std::string_view builtin = "__builtin_";
    std::set<std::string, std::less<>> called{"memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen"};
    for (const auto& token : tokens) {
      if (token.kind != SourceToken::Kind::name) continue;
      std::string_view name = token.spelling;
      if (name.starts_with(builtin)) called.emplace(name = name.substr(builtin.size()));
      // The sine and the cosine of one number become one call.
      for (const std::string_view suffix : {"", "f", "l"})
        if (name == "sin" + std::string(suffix)) called.insert("sincos" + std::string(suffix));
    }
    called_.assign(called.begin(), called.end());
  }

  /// Flags that take from the compiler what it believes to know of functions that the kernel defines: that
  /// `abort` never returns, that memory of `malloc` is nobody else's.
  [[nodiscard]] std::vector<std::string> flags() const {
    // No function that a compiler knows has a longer name, and no honest text defines more functions; a
    // command line has an end.
    constexpr std::size_t longest = 32, most = 512;
    std::vector<std::string> flags;
    for (const auto& name : own_)
      if (name.size() <= longest && flags.size() < most) flags.push_back("-fno-builtin-" + name);
    return flags;
  }

  /// Symbols that the compiler calls by itself in this text (for copies, say), or that the text calls under
  /// the names that compilers have for them: a function of the kernel's own with such a symbol would be
  /// called in their place.
  [[nodiscard]] const std::vector<std::string>& called_by_compiler() const noexcept { return called_; }

private:
  [[nodiscard]] static bool is_mathematical(std::string_view name) {
    if (is_one_of(name, mathematical_functions)) return true;
    return (name.ends_with('f') || name.ends_with('l')) &&
           is_one_of(name.substr(0, name.size() - 1), mathematical_functions);
  }

  std::set<std::string, std::less<>> own_;
  std::vector<std::string> called_;
};

} // namespace mtmc::detail
