#pragma once
/// From a kernel's text to a program on disk, and the runner's own executable.

#include <mtmc/backend/cpu/compilation_cache.hpp>
#include <mtmc/backend/cpu/compiler_diagnostics.hpp>
#include <mtmc/backend/cpu/cpp_compiler.hpp>
#include <mtmc/backend/cpu/launch_limits.hpp>
#include <mtmc/backend/cpu/object_screen.hpp>
#include <mtmc/backend/cpu/options.hpp>
#include <mtmc/backend/cpu/runner_source.hpp>
#include <mtmc/backend/cpu/text_screen.hpp>
#include <mtmc/backend/cpu/trampolines.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/support/elf.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::detail {

/// The compiler with its flags, and a private folder for what it makes.
class CpuToolchain {
public:
  explicit CpuToolchain(const CpuBackendOptions& options)
      : options_(options), compiler_(options), folder_(make_folder(options)) {}

  [[nodiscard]] const CppCompiler& compiler() const noexcept { return compiler_; }

  /// The flags that decide what the compiler makes of a text, in one line.
  [[nodiscard]] std::string flags() const {
    std::string text;
    for (const auto* const list : {&options_.flags, &options_.extra_flags})
      for (const auto& flag : *list) text += (text.empty() ? "" : " ") + flag;
    return text;
  }

  /// Compiles a kernel with trampolines for those launches. `timed_out` is set if the deadline or a stop
  /// request came first; otherwise the answer has an object or at least one error.
  [[nodiscard]] Compilation compile(const Kernel& kernel, std::vector<LaunchSignature> signatures,
                                    const CompilerLimits& limits, bool& timed_out) {
    const auto text = normalize_text(kernel.source);
    TemporaryFolder folder({.base = folder_.path(), .prefix = "program-"});
    write_source(folder.path() + "/kernel.cpp", text);
    write_source(folder.path() + "/program.cpp", program_text(signatures));
    const auto answer = compiler_.run(arguments(), folder.path(), limits);
    Compilation result;
    timed_out = answer.status == ProcessStatus::timed_out || answer.status == ProcessStatus::cancelled;
    if (timed_out) return result;
    CompilerReport report(answer.error, signatures,
                          static_cast<int>(std::count(text.begin(), text.end(), '\n')), folder.path());
    result.diagnostics = report.diagnostics(most_diagnostics);
    // Before anything the compiler says is believed or handed on: it may quote what it should not have read.
    if (auto refused = screen(folder.path(), answer.succeeded()); !refused.empty()) {
      result.diagnostics = std::move(refused);
      result.refused = true;
      return result;
    }
    if (answer.succeeded()) {
      const auto path = folder.path() + "/program.so";
      if (const auto file = read_elf(read_file(path)))
        result.resources["code_bytes"] = static_cast<double>(file->code_bytes);
      remove_traces(folder.path());
      result.object =
          std::make_shared<const CompiledObject>(CompiledObject{std::move(folder), std::move(signatures)});
      return result;
    }
    explain(answer, limits, folder.path(), result.diagnostics);
    return result;
  }

  /// The runner's executable, compiled when it is first asked for. Throws `Error` (`mtmc.backend.001`) if
  /// that fails.
  [[nodiscard]] std::string runner() {
    const std::scoped_lock lock(mutex_);
    if (!runner_.empty()) return runner_;
    const auto source = runner_source();
    const auto name =
        "mtmc-runner-" + sha256_hex(source + compiler_.path() + compiler_.version()).substr(0, 16);
    const auto cached = options_.cache_folder + '/' + name;
    if (!options_.cache_folder.empty() && ::access(cached.c_str(), X_OK) == 0) return runner_ = cached;
    write_source(folder_.path() + "/runner.cpp", source);
    const auto answer = compiler_.run({"-std=c++17", "-O1", "-rdynamic", "-Wl,-z,now", "-Wl,-z,relro", "-o",
                                       "runner", "runner.cpp", "-ldl"},
                                      folder_.path(), {});
    if (!answer.succeeded()) throw broken(answer, "the runner");
    runner_ = folder_.path() + "/runner";
    keep_runner(cached);
    return runner_;
  }

private:
  static constexpr std::size_t most_diagnostics = 20;

  static TemporaryFolder make_folder(const CpuBackendOptions& options) {
    try {
      return TemporaryFolder({.base = options.temporary_folder, .claimed = true});
    } catch (const std::system_error& error) {
      throw Error(error_id::backend_runner, error.what(),
                  "Name a folder that this process can write to in CpuBackendOptions::temporary_folder");
    }
  }

  static void write_source(const std::string& path, std::string_view text) {
    try {
      write_file_atomic(path, text);
    } catch (const std::system_error& error) {
      throw Error(
          error_id::backend_compiler, error.what(),
          "Free space in the folder that CpuBackendOptions::temporary_folder names, or name another one");
    }
  }

  /// How compilers name what they keep: Clang, and GCC where the result has a name of its own.
  static constexpr std::array<std::string_view, 2> kept_names{"program", "program.so-program"};

  /// What the screens of the preprocessed text and of the object have to say.
  [[nodiscard]] std::vector<Diagnostic> screen(const std::string& folder, bool compiled) const {
    const auto kept = [&](std::string_view extension) {
      for (const auto name : kept_names) {
        auto path = folder;
        path.append("/").append(name).append(extension);
        if (::access(path.c_str(), F_OK) == 0) return path;
      }
      return std::string{};
    };
    if (const auto text = kept(".ii"); options_.locks.text_screen && !text.empty()) {
      struct stat facts {};
      constexpr off_t most = off_t{64} << 20;
      if (::stat(text.c_str(), &facts) == 0 && facts.st_size > most)
        return {{Severity::error,
                 0,
                 0,
                 "the preprocessed text is larger than 64 MiB",
                 "Make the text smaller: fewer headers, no macros that multiply",
                 {}}};
      auto found = PreprocessedScreen("kernel.cpp", end_of_kernel_file).screen(read_file(text));
      if (!found.empty()) return found;
    }
    if (!options_.locks.object_screen || !compiled) return {};
    const auto object = kept(".o");
    return screen_object(object.empty() ? std::string{} : read_file(object), options_.allowed_functions);
  }

  /// Other candidates' texts are nothing a candidate should find.
  static void remove_traces(const std::string& folder) {
    for (const std::string_view file : {"kernel.cpp", "program.cpp"})
      ::unlink((folder + '/' + std::string(file)).c_str());
    for (const auto name : kept_names)
      for (const std::string_view extension : {".ii", ".bc", ".s", ".o", ".res"})
        ::unlink((folder + '/' + std::string(name) + std::string(extension)).c_str());
  }

  [[nodiscard]] std::vector<std::string> arguments() const {
    // Flags of the host come last, so that it has the last word.
    auto arguments = compiler_.remark_flags();
    arguments.insert(arguments.end(), {"-shared", "-fPIC", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,-z,relro"});
    if (options_.locks.text_screen || options_.locks.object_screen) arguments.emplace_back("-save-temps");
    arguments.insert(arguments.end(), options_.flags.begin(), options_.flags.end());
    arguments.insert(arguments.end(), options_.extra_flags.begin(), options_.extra_flags.end());
    arguments.insert(arguments.end(), {"-o", "program.so", "program.cpp"});
    return arguments;
  }

  // Makes sure that a failed compilation has an error that says why, and that it is the kernel's fault.
  void explain(const ProcessResult& answer, const CompilerLimits& limits, const std::string& folder,
               std::vector<Diagnostic>& diagnostics) {
    const auto said = [&](std::string_view part) { return answer.error.find(part) != std::string::npos; };
    if (said("out of memory") || said("virtual memory exhausted") || said("Cannot allocate memory") ||
        said("std::bad_alloc") || said("Killed signal") || said("failed to map segment")) {
      diagnostics = {
          {Severity::error,
           0,
           0,
           "the compiler needs more memory than the limit of " + std::to_string(limits.memory >> 20) + " MiB",
           "Make the text smaller: less unrolling, smaller tables, shallower templates",
           {}}};
      return;
    }
    if (said("File size limit exceeded") || said("File too large")) {
      diagnostics = {{Severity::error,
                      0,
                      0,
                      "the compiled program is larger than a kernel may be",
                      "Make large tables buffers or compute them",
                      {}}};
      return;
    }
    check_itself();
    for (const auto& diagnostic : diagnostics)
      if (diagnostic.severity == Severity::error) return;
    auto message = answer.error;
    replace_all(message, folder + '/', "");
    constexpr std::size_t most = 400;
    if (message.size() > most) message.erase(0, message.size() - most);
    diagnostics.insert(
        diagnostics.begin(),
        {Severity::error, 0, 0, "the compiler failed: " + answer.message + ' ' + message, {}, {}});
  }

  // A compiler without its headers, assembler or OpenMP, or with flags it does not know, fails for every
  // text: that is not a candidate's fault. Tried once, when a compilation first fails.
  void check_itself() {
    const std::scoped_lock lock(mutex_);
    if (checked_) return;
    TemporaryFolder folder({.base = folder_.path(), .prefix = "check-"});
    write_source(folder.path() + "/program.cpp",
                 "#include <cstdint>\n#ifdef _OPENMP\n#include <omp.h>\n#endif\nvoid f(int n, float* x) {\n"
                 "#pragma omp parallel for\n  for (int i = 0; i < n; ++i) x[i] += 1;\n}\n");
    const auto answer = compiler_.run(arguments(), folder.path(), {});
    if (!answer.succeeded()) throw broken(answer, "a correct program");
    checked_ = true;
  }

  [[nodiscard]] Error broken(const ProcessResult& answer, std::string_view what) const {
    auto said = answer.error.empty() ? answer.message : answer.error;
    constexpr std::size_t most = 600;
    if (said.size() > most) said.resize(most);
    return {error_id::backend_compiler,
            compiler_.path() + " cannot compile " + std::string(what) + " with the flags " + flags() + ": " +
                said,
            "Install what it misses (`apt install g++`, or `apt install clang libomp-dev`), or correct "
            "CpuBackendOptions::flags"};
  }

  // The cache is a convenience: that it cannot be written is no reason to stop.
  void keep_runner(const std::string& cached) const {
    if (options_.cache_folder.empty()) return;
    try {
      create_folders(options_.cache_folder);
      write_file_atomic(cached, read_file(runner_));
      ::chmod(cached.c_str(), 0755);
    } catch (const std::system_error&) {
      return;
    }
  }

  CpuBackendOptions options_;
  CppCompiler compiler_;
  TemporaryFolder folder_;
  std::mutex mutex_;
  std::string runner_;
  bool checked_ = false;
};

} // namespace mtmc::detail
