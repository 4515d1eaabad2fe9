#pragma once
/// Which steps of a history were about the same launches as an action.

#include <mtmc/core/step.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The functions that a region's path speaks of: {"gemm"} of "gemm/i/j" and of "launch:gemm#2", {"a", "b"} of
/// "launch:a+launch:b".
[[nodiscard]] inline std::vector<std::string_view> functions_of(std::string_view path) {
  constexpr std::string_view launch = "launch:";
  std::vector<std::string_view> functions;
  path = path.substr(0, path.find('/'));
  while (!path.empty()) {
    const auto end = std::min(path.find('+'), path.size());
    auto name = path.substr(0, end);
    if (name.starts_with(launch)) name.remove_prefix(launch.size());
    functions.push_back(name.substr(0, name.find('#')));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return functions;
}

/// The members of a run of statements and launches in Python by its path: {"relu", "softmax"} of
/// "Model/relu+launch:softmax", {"relu#2", "tanh"} of "Model/relu#2+tanh".
[[nodiscard]] inline std::vector<std::string_view> members_of_run(std::string_view path) {
  constexpr std::string_view launch = "launch:";
  std::vector<std::string_view> members;
  const auto module = path.find('/'); // once, before the first statement
  while (!path.empty()) {
    const auto end = std::min(path.find('+'), path.size());
    auto name = path.substr(0, end);
    if (module < end && members.empty()) name.remove_prefix(module + 1);
    if (name.starts_with(launch)) name = name.substr(launch.size(), name.find('#') - launch.size());
    members.push_back(name);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return members;
}

/// The region that an action's key names; empty if it names none.
[[nodiscard]] inline std::string_view region_of_key(std::string_view key) noexcept {
  const auto bar = key.find('|');
  return bar == std::string_view::npos ? std::string_view{} : key.substr(bar + 1);
}

/// Whether a step was about one of these functions.
[[nodiscard]] inline bool is_about(const HistoryEntry& entry,
                                   const std::vector<std::string_view>& functions) {
  const auto tried = functions_of(region_of_key(entry.action_key));
  return std::find_first_of(tried.begin(), tried.end(), functions.begin(), functions.end()) != tried.end();
}

} // namespace mtmc
