#pragma once
/// Which functions a kernel's text must define.

#include <mtmc/coder/answer_text.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/support/text.hpp>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The function that a line launches; empty if it is no `launch` line.
[[nodiscard]] inline std::string launched_name(std::string_view line, std::string_view marker) {
  line = trim(line);
  if (!line.starts_with(marker)) return {};
  line.remove_prefix(marker.size());
  return take_identifier(line) == "launch" ? take_identifier(line) : std::string();
}

} // namespace detail

/// Names of the functions that a text's launch lines launch, each once, in order; malformed lines count as
/// far as they name one.
[[nodiscard]] inline std::vector<std::string> launched_entries(std::string_view source,
                                                               const Language& language) {
  const auto marker = launch_marker(language);
  std::vector<std::string> entries;
  std::set<std::string, std::less<>> seen;
  for (const auto line : detail::answer_lines(source))
    if (auto name = detail::launched_name(line, marker); !name.empty() && seen.insert(name).second)
      entries.push_back(std::move(name));
  return entries;
}

/// The functions that `source` must define: those its own launch lines launch (a candidate may rename them
/// together with its launch lines), and without launch lines those of `parent_entries`.
[[nodiscard]] inline std::vector<std::string> needed_entries(std::string_view source,
                                                             const Language& language,
                                                             const std::vector<std::string>& parent_entries) {
  auto own = launched_entries(source, language);
  return own.empty() ? parent_entries : own;
}

} // namespace mtmc
