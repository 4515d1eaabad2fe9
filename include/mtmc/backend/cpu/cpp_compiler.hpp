#pragma once
/// The C++ compiler of the machine: finding it, and running it under limits.

#include <mtmc/backend/cpu/options.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/process/find_program.hpp>
#include <mtmc/support/process/subprocess.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether a program is a link to ccache, which keeps what it compiles in files of the user's.
[[nodiscard]] inline bool is_caching(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::canonical(path, ignored).filename() == "ccache";
}

/// The same program without ccache before it, as ccache itself would find it; `path` if there is none.
[[nodiscard]] inline std::string find_uncached(const std::string& path, std::string_view folders) {
  if (!is_caching(path)) return path;
  const auto name = path.substr(path.rfind('/') + 1);
  while (!folders.empty()) {
    const auto end = std::min(folders.find(':'), folders.size());
    auto found = find_program(name, folders.substr(0, end));
    if (!found.empty() && !is_caching(found)) return found;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return path;
}

/// How one call of the compiler is limited.
struct CompilerLimits {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  /// Bytes of address space; 0 = no limit.
  std::int64_t memory = 0;
  std::stop_token stop{};
  /// What it and all that it starts may open; null: everything.
  const FileFence* fence = nullptr;
};

/// A C++ compiler of the GCC or Clang family.
class CppCompiler {
public:
  /// Finds the compiler that the options name and asks for its version. Throws `Error` (`mtmc.backend.001`)
  /// if there is none, or if it is of another family or too old.
  explicit CppCompiler(const CpuBackendOptions& options) : search_path_(options.search_path) {
    const std::vector<std::string> names = options.compiler.empty()
                                               ? std::vector<std::string>{"c++", "g++", "clang++"}
                                               : std::vector{options.compiler};
    for (const auto& name : names) {
      path_ = find_program(name, search_path_);
      if (!path_.empty()) break;
    }
    if (path_.empty()) {
      std::string tried;
      for (const auto& name : names) tried += (tried.empty() ? "" : ", ") + name;
      throw Error(error_id::backend_compiler,
                  "there is no C++ compiler (tried " + tried + " in " + search_path_ + ')',
                  "Install one, for example with `apt install g++`, or name one that is there")
          .about("CpuBackendOptions::compiler");
    }
    path_ = find_uncached(path_, search_path_);
    const auto limits =
        CompilerLimits{.deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30}};
    const auto answer = run({"--version"}, "", limits);
    version_ = answer.output.substr(0, answer.output.find('\n'));
    const auto macros = run({"-dM", "-E", "-x", "c++", "/dev/null"}, "", limits);
    const int gcc = macro_value(macros.output, "__GNUC__");
    const int clang = macro_value(macros.output, "__clang_major__");
    is_clang_ = clang > 0;
    if (is_clang_ ? clang < oldest_clang : gcc < oldest_gcc)
      throw Error(error_id::backend_compiler,
                  path_ + " is not GCC " + std::to_string(oldest_gcc) + " or Clang " +
                      std::to_string(oldest_clang) + (gcc > 0 ? ", it is too old: " + version_ : " or later"),
                  "Install one of them, or a later version, and name it")
          .about("CpuBackendOptions::compiler");
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// First line of what `--version` says.
  [[nodiscard]] const std::string& version() const noexcept { return version_; }
  /// The folders in which it finds what it starts, separated by colons.
  [[nodiscard]] const std::string& search_path() const noexcept { return search_path_; }
  [[nodiscard]] bool is_clang() const noexcept { return is_clang_; }

  /// The flags that make its remarks readable for `CompilerReport`.
  [[nodiscard]] std::vector<std::string> remark_flags() const {
    std::vector<std::string> flags{"-Wall", "-fmessage-length=0", "-fno-diagnostics-show-option"};
    if (is_clang_)
      flags.insert(flags.end(), {"-fno-caret-diagnostics", "-fno-color-diagnostics", "-ferror-limit=50",
                                 "-Wno-unused-command-line-argument"});
    else
      flags.insert(flags.end(),
                   {"-fno-diagnostics-show-caret", "-fdiagnostics-color=never", "-fmax-errors=50"});
    return flags;
  }

  /// Runs it in `folder`, which also takes its temporary files, with an environment of nothing but what it
  /// needs.
  [[nodiscard]] ProcessResult run(const std::vector<std::string>& arguments, const std::string& folder,
                                  const CompilerLimits& limits) const {
    ProcessOptions process;
    // A shell sets the limit on file sizes, which posix_spawn cannot: a kernel's text can ask for an object
    // of any size. The number counts blocks of 512 or 1024 bytes.
    process.arguments = {"/bin/sh", "-c", limits_of_shell(limits) + " && exec \"$@\"", "sh", path_};
    process.arguments.insert(process.arguments.end(), arguments.begin(), arguments.end());
    process.working_folder = folder;
    // SOURCE_DATE_EPOCH: `__DATE__` and `__TIME__` of a header say the same whenever it is compiled.
    process.environment = {"LC_ALL=C", "SOURCE_DATE_EPOCH=0", "PATH=" + search_path_,
                           "TMPDIR=" + (folder.empty() ? "/tmp" : folder)};
    process.output_limit = std::size_t{256} << 10;
    process.memory_limit = static_cast<std::uint64_t>(std::max<std::int64_t>(limits.memory, 0));
    process.stop = limits.stop;
    process.fence = limits.fence;
    process.deadline = std::chrono::milliseconds::max();
    if (limits.deadline != std::chrono::steady_clock::time_point::max())
      process.deadline = std::max(
          std::chrono::milliseconds{1},
          std::chrono::ceil<std::chrono::milliseconds>(limits.deadline - std::chrono::steady_clock::now()));
    return run_process(process);
  }

private:
  /// On processor time, too: whoever is killed cannot end the compiler that it has started, which a text may
  /// keep busy for hours. Twice the deadline and some seconds, so that the deadline comes first for whoever
  /// lives.
  static std::string limits_of_shell(const CompilerLimits& limits) {
    std::string text = "ulimit -c 0; ulimit -f 524288";
    if (limits.deadline == std::chrono::steady_clock::time_point::max()) return text;
    const auto left =
        std::chrono::ceil<std::chrono::seconds>(limits.deadline - std::chrono::steady_clock::now()).count();
    return text + "; ulimit -t " + std::to_string(2 * std::max<long long>(left, 0) + 10);
  }

  static constexpr int oldest_gcc = 12;
  static constexpr int oldest_clang = 14;

  // The number a macro of the compiler stands for; 0 if it is not defined.
  static int macro_value(std::string_view definitions, std::string_view name) {
    const auto line = "#define " + std::string(name) + ' ';
    const auto at = definitions.find(line);
    int value = 0;
    if (at != std::string_view::npos)
      std::from_chars(definitions.data() + at + line.size(), definitions.data() + definitions.size(), value);
    return value;
  }

  std::string search_path_;
  std::string path_;
  std::string version_;
  bool is_clang_ = false;
};

} // namespace mtmc::detail
