#pragma once
/// Where a program lies.

#include <mtmc/requirements.hpp>

#include <string>
#include <string_view>
#include <unistd.h>

namespace mtmc::inline MTMC_ABI::detail {

/// The path of a program in the colon-separated `folders`; empty if it is in none of them.
[[nodiscard]] inline std::string find_program(std::string_view name, std::string_view folders) {
  if (name.find('/') != std::string_view::npos)
    return ::access(std::string(name).c_str(), X_OK) == 0 ? std::string(name) : std::string{};
  while (!folders.empty()) {
    const auto colon = folders.find(':');
    std::string path(folders.substr(0, colon));
    folders = colon == std::string_view::npos ? std::string_view{} : folders.substr(colon + 1);
    if (path.empty()) continue;
    path.append("/").append(name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

} // namespace mtmc::detail
