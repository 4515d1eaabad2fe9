#pragma once
/// What was proved of a kernel, for the head of its launcher.

#include <mtmc/core/conditions.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/version.hpp>

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc {

/// What was proved of a kernel, and with what; `Result::evidence` has it of a run. What is empty is not
/// known, and the launcher does not speak of it.
struct LauncherEvidence {
  /// As `environment_key::compile_command` has it: a launcher in C++ asks for the same flags, one of a CUDA
  /// kernel hands the same options to NVRTC.
  std::string compile_command{};
  /// Version of the compiler.
  std::string compiler{};
  /// Name of the device, and its architecture.
  std::string device{};
  std::string arch{};
  /// Over the start kernel, where there is one that was measured.
  std::optional<SpeedUp> speed_up{};
  /// At which the kernel was found correct.
  std::vector<ProblemSize> verified_sizes{};
};

namespace detail {

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

/// "2.07x [2.01, 2.13] over the start kernel, at 95 % confidence".
[[nodiscard]] inline std::string speed_up_text(const SpeedUp& speed_up) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "%.2fx [%.2f, %.2f] over the start kernel, at %.0f %% confidence",
                speed_up.value, speed_up.low, speed_up.high, 100 * speed_up.confidence);
  return text.data();
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
  if (evidence.speed_up) text += comment_line("Speed-up", speed_up_text(*evidence.speed_up));
  std::string sizes;
  for (const auto& size : evidence.verified_sizes) sizes += (sizes.empty() ? "" : "; ") + to_string(size);
  if (!sizes.empty()) text += comment_line("Verified at", sizes);
  text += comment_line("Kernel", kernel.id());
  return text + comment_line("Written by", std::string("mtmc ") + version_string);
}

} // namespace detail

} // namespace mtmc
