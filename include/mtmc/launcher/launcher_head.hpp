#pragma once
/// The comment with which a launcher begins.

#include <mtmc/core/kernel.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/launcher/launcher_evidence.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/version.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// A text for the rest of a comment's line, which it cannot leave.
[[nodiscard]] inline std::string comment_text(std::string_view text) {
  std::string line;
  for (const char c : text) line += c == '\n' || c == '\r' ? ' ' : c;
  // A backslash at the end would draw the next line into the comment.
  while (!line.empty() && (line.back() == '\\' || line.back() == ' ')) line.pop_back();
  return line;
}

[[nodiscard]] inline std::string comment_line(std::string_view title, std::string_view text) {
  constexpr std::size_t column = 13;
  std::string line = "// " + std::string(title) + ':';
  line.append(line.size() < column + 3 ? column + 3 - line.size() : 1, ' ');
  return comment_text(line + std::string(text)) + '\n';
}

/// The comment with which a launcher begins. `how` is the line that says how to compile it.
[[nodiscard]] inline std::string launcher_head(const Kernel& kernel, const Task& task,
                                               const LauncherEvidence& evidence, const std::string& how) {
  std::string text = "// " + comment_text(task.summary.empty() ? task.name : task.summary) + "\n//\n";
  text += how;
  if (!evidence.compiler.empty()) text += comment_line("Compiler", evidence.compiler);
  if (!evidence.device.empty())
    text +=
        comment_line("Device", evidence.device + (evidence.arch.empty() ? "" : " (" + evidence.arch + ')'));
  if (evidence.speed_up)
    text += comment_line("Speed-up", speed_up_text(*evidence.speed_up) + " over the start kernel, at " +
                                         std::to_string(std::lround(100 * evidence.speed_up->confidence)) +
                                         " % confidence");
  if (evidence.seconds > 0) text += comment_line("Time", seconds_text(evidence.seconds) + " a call");
  std::string sizes;
  for (const auto& size : evidence.verified_sizes) sizes += (sizes.empty() ? "" : "; ") + to_string(size);
  if (!sizes.empty()) text += comment_line("Verified at", sizes);
  text += comment_line("Kernel", kernel.id());
  if (!evidence.binary_hash.empty())
    text += comment_line("Judged", "binary of SHA-256 " + evidence.binary_hash);
  return text + comment_line("Written by", std::string("mtmc ") + version_string);
}

} // namespace mtmc::detail
