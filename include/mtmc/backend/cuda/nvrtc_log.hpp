#pragma once
/// What NVRTC says, as diagnostics with places in the kernel's own text.

#include <mtmc/backend/cuda/kernel_text.hpp>
#include <mtmc/backend/cuda/nvrtc_headers.hpp>
#include <mtmc/backend/launch_check.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// One remark of the log.
struct NvrtcRemark {
  std::string file;
  int line = 0;
  Severity severity = Severity::error;
  std::string message;
};

/// Reads `kernel.cu(12): error: identifier "x" is undefined`; nothing if the line is none.
[[nodiscard]] inline std::optional<NvrtcRemark> read_remark(std::string_view text) {
  const auto close = text.find("): ");
  if (close == std::string_view::npos) return std::nullopt;
  const auto open = text.rfind('(', close);
  if (open == std::string_view::npos) return std::nullopt;
  NvrtcRemark remark;
  remark.file = text.substr(0, open);
  const auto number = text.substr(open + 1, close - open - 1);
  const auto read = std::from_chars(number.data(), number.data() + number.size(), remark.line);
  if (read.ec != std::errc{} || read.ptr != number.data() + number.size()) return std::nullopt;
  text.remove_prefix(close + 3);
  for (const std::string_view word : {"catastrophic error", "error", "warning"}) {
    if (!text.starts_with(word)) continue;
    // The number of the remark may stand between: "warning #177-D: ".
    const auto colon = text.find(": ");
    // Without a word behind it, it says nothing.
    if (colon == std::string_view::npos || trim(shortened(text.substr(colon + 2))).empty())
      return std::nullopt;
    if (word == "warning") remark.severity = Severity::warning;
    remark.message = text.substr(colon + 2);
    return remark;
  }
  return std::nullopt;
}

/// Whether a remark may quote the file it is about: the kernel's, one of this library's, or a header from
/// `folders`.
[[nodiscard]] inline bool may_quote(const std::string& file, const std::vector<std::string>& folders) {
  if (file == cuda_kernel_file || file == end_of_kernel_file || file == "program.cu" ||
      file == "mtmc-launch-check")
    return true;
  for (const auto& [own, text] : cuda_own_headers())
    if (file == own) return true;
  return file.find("/../") == std::string::npos &&
         std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return file.starts_with(folder + '/'); });
}

/// Lines of a log that are no echo of a source text, which is indented.
[[nodiscard]] inline std::string without_echo(std::string_view log) {
  std::string lines;
  while (!log.empty()) {
    const auto end = std::min(log.find('\n'), log.size());
    const auto line = log.substr(0, end);
    if (!line.empty() && line.front() != ' ' && !read_remark(line)) lines.append(line).append("\n");
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return lines;
}

/// Diagnostics of a log. `header_folders`: where the compiler may have found headers. `failed`: there must be
/// an error, if need be the log's own words. At most eight errors and four warnings, one a line.
[[nodiscard]] inline std::vector<Diagnostic> read_nvrtc_log(std::string_view log, const std::string& kernel,
                                                            const std::vector<LaunchSignature>& signatures,
                                                            const std::vector<std::string>& header_folders,
                                                            bool failed) {
  constexpr std::size_t max_errors = 8;
  constexpr std::size_t max_warnings = 4;
  constexpr std::size_t longest_message = 400; // names of types can take up megabytes
  const int lines = 1 + static_cast<int>(std::count(kernel.begin(), kernel.end(), '\n'));
  std::vector<Diagnostic> errors;
  std::vector<Diagnostic> warnings;
  const auto launch_at = [&](int line) -> const LaunchSignature* {
    for (const auto& signature : signatures)
      if (signature.line == line) return &signature;
    return nullptr;
  };
  bool unfinished = false;
  for (std::size_t begin = 0; begin < log.size();) {
    const auto end = std::min(log.find('\n', begin), log.size());
    auto remark = read_remark(log.substr(begin, end - begin));
    begin = end + 1;
    // Names that were asked for are looked up in a file of NVRTC's own; what is wrong with them is said at
    // the launch line, too.
    if (!remark || remark->file.starts_with("__nv")) continue;
    if (remark->severity == Severity::warning && launch_at(remark->line) != nullptr) continue;
    if (unfinished && launch_at(remark->line) != nullptr) continue;
    Diagnostic diagnostic;
    diagnostic.severity = remark->severity;
    diagnostic.line = remark->line;
    diagnostic.message = shortened(remark->message, longest_message);
    if (remark->file == end_of_kernel_file) {
      unfinished = true;
      diagnostic.line = lines;
      diagnostic.message = "the text is incomplete: " + diagnostic.message;
      diagnostic.remedy = "Close every brace, parenthesis and comment";
    } else if (!may_quote(remark->file, header_folders)) {
      diagnostic.line = 0;
      diagnostic.message = "the text includes a file that is not a header of the toolkit";
      diagnostic.remedy = "Remove the #include, and put the code into the kernel's text";
    } else if (remark->file != cuda_kernel_file) {
      diagnostic.line = 0;
      diagnostic.message += " (in <" + remark->file.substr(remark->file.rfind('/') + 1) + ">)";
    } else if (const auto* const launch = launch_at(remark->line)) {
      if (const auto at = remark->message.find(assertion_marker); at != std::string::npos) {
        diagnostic.message = remark->message.substr(at + assertion_marker.size());
        diagnostic.message.erase(std::min(diagnostic.message.rfind('"'), diagnostic.message.size()));
        std::replace(diagnostic.message.begin(), diagnostic.message.end(), '\'', '`');
        diagnostic.remedy = "Make the launch line and the parameter list of `" + launch->entry + "` agree";
      } else if (remark->message.find("undefined") != std::string::npos) {
        diagnostic.message =
            "the launch line calls `" + launch->entry + "`, which the kernel does not define";
        diagnostic.remedy =
            "Define the function `" + launch->entry + "`, or name an existing function in the launch line";
      } else if (remark->message.find("overloaded") != std::string::npos ||
                 remark->message.find("template") != std::string::npos) {
        diagnostic.message =
            "`" + launch->entry +
            "` is overloaded, a template, or a function that CUDA has of that name, too, so it is "
            "not clear what the launch line calls";
        diagnostic.remedy = "Launch one ordinary function of a name of its own, which may call the template";
      }
    }
    auto& list = diagnostic.severity == Severity::error ? errors : warnings;
    const auto same = [&](const Diagnostic& known) {
      // What follows on the same line mostly follows from the first.
      return known.line == diagnostic.line && (known.message == diagnostic.message || diagnostic.line > 0);
    };
    const auto most = diagnostic.severity == Severity::error ? max_errors : max_warnings;
    if (list.size() < most && std::none_of(list.begin(), list.end(), same))
      list.push_back(std::move(diagnostic));
  }
  if (failed && errors.empty()) {
    constexpr std::size_t longest = 2000;
    errors.push_back(
        {Severity::error, 0, 0, "the compiler failed: " + without_echo(log).substr(0, longest), {}, {}});
  }
  errors.insert(errors.end(), warnings.begin(), warnings.end());
  return errors;
}

/// What `--ptxas-options=-v` says of each function: "registers", "spill_store_bytes", ... by its name in the
/// binary.
[[nodiscard]] inline std::map<std::string, std::map<std::string, double>>
read_ptxas_report(std::string_view log) {
  std::map<std::string, std::map<std::string, double>> report;
  std::string function;
  const auto number_before = [](std::string_view line, std::string_view words) -> std::optional<double> {
    const auto at = line.find(words);
    if (at == std::string_view::npos) return std::nullopt;
    auto first = at;
    while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
    int value = 0;
    const auto read = std::from_chars(line.data() + first, line.data() + at, value);
    if (read.ec != std::errc{}) return std::nullopt;
    return value;
  };
  for (std::size_t begin = 0; begin < log.size();) {
    const auto end = std::min(log.find('\n', begin), log.size());
    const auto line = log.substr(begin, end - begin);
    begin = end + 1;
    for (const std::string_view words : {"Compiling entry function '", "Function properties for "})
      if (const auto at = line.find(words); at != std::string_view::npos) {
        const auto name = line.substr(at + words.size());
        function = name.substr(0, name.find('\''));
      }
    if (function.empty()) continue;
    for (const auto& [words, key] :
         {std::pair<std::string_view, const char*>{" bytes stack frame", "stack_bytes"},
          {" bytes spill stores", "spill_store_bytes"},
          {" bytes spill loads", "spill_load_bytes"},
          {" registers", "registers"},
          {" bytes smem", "shared_bytes"}})
      if (const auto value = number_before(line, words)) report[function][key] = *value;
  }
  return report;
}

} // namespace mtmc::detail
