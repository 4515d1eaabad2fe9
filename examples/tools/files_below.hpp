#pragma once
// Files of one name, wherever they lie in a folder: the journals of many runs.

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace command_line {

/// Every regular file of that name in a folder and below, in a fixed order.
inline std::vector<std::string> files_below(const std::string& folder, const std::string& name) {
  std::vector<std::string> found;
  std::error_code ignored;
  using Options = std::filesystem::directory_options;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator{folder, Options::skip_permission_denied, ignored})
    if (entry.path().filename() == name && entry.is_regular_file(ignored))
      found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

} // namespace command_line
