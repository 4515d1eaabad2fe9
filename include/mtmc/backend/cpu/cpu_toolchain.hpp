#pragma once
/// From a kernel's text to a program on disk, and the runner's own executable.

#include <mtmc/backend/cpu/compilation_cache.hpp>
#include <mtmc/backend/cpu/compiler_files.hpp>
#include <mtmc/backend/cpu/cpp_compiler.hpp>
#include <mtmc/backend/cpu/options.hpp>
#include <mtmc/backend/cpu/own_functions.hpp>
#include <mtmc/backend/cpu/trampolines.hpp>
#include <mtmc/core/branch.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The compiler with its flags, and a private folder for what it makes.
class CpuToolchain {
public:
  explicit CpuToolchain(const CpuBackendOptions& options);

  [[nodiscard]] const CppCompiler& compiler() const noexcept { return compiler_; }

  /// The flags that decide what the compiler makes of a text, in one line.
  [[nodiscard]] std::string flags() const;

  /// The compiler and the flags that decide how fast a kernel's code is, as a shell takes them, up to the
  /// names of the files.
  [[nodiscard]] std::string command() const;

  /// What keeps the compiler from files that are not its own, for the environment record: "Landlock", or
  /// "checked", if there is none, or the compiler cannot work behind it: then what it has read is looked at
  /// before anything of it is believed.
  [[nodiscard]] std::string confinement() const { return fenced_ ? "Landlock" : "checked"; }

  /// Finds out which files are the compiler's own, when it is first called, by compiling a small program.
  /// Throws `Error` (`mtmc.backend.001`) if that fails.
  void prepare();

  /// Compiles a kernel with trampolines for those launches. `timed_out` is set if the deadline or a stop
  /// request came first; otherwise the answer has an object or at least one error.
  [[nodiscard]] Compilation compile(const Kernel& kernel, std::vector<LaunchSignature> signatures,
                                    const CompilerLimits& limits, bool& timed_out);

  /// The same with stores that show which ways its branches go (`CompiledObject::branches`), as the text has
  /// them: without the optimisations that merge branches or make new ones.
  [[nodiscard]] Compilation compile_probed(const Kernel& kernel, std::vector<LaunchSignature> signatures,
                                           const CompilerLimits& limits, bool& timed_out);

  /// The runner's executable, compiled when it is first asked for. Throws `Error` (`mtmc.backend.001`) if
  /// that fails.
  [[nodiscard]] std::string runner();

private:
  static constexpr std::size_t max_diagnostics = 20;

  static TemporaryFolder make_folder(const CpuBackendOptions& options);

  static void write_source(const std::string& path, std::string_view text);

  /// What the compiler made of a program in a folder.
  struct Built {
    /// Of the last step that was taken.
    ProcessResult answer;
    /// The errors and warnings of all steps.
    std::string said;
    /// Why nothing of it must be believed.
    std::vector<Diagnostic> refused{};

    [[nodiscard]] bool cut_short() const;
    /// The compiler was not started, or was killed, by none of us: as a system does that lacks memory.
    [[nodiscard]] bool disturbed() const;
    [[nodiscard]] bool failed() const { return !cut_short() && refused.empty() && !answer.succeeded(); }
  };

  /// What a probed program is to have, and which branches it turned out to have.
  struct Probes {
    /// Of the function that hands out what the stores have left.
    std::string exported;
    /// Where the launch lines stand.
    std::set<int> launch_lines{};
    std::vector<Branch> branches{};
  };

  [[nodiscard]] Compilation compile_text(const Kernel& kernel, std::vector<LaunchSignature> signatures,
                                         const CompilerLimits& limits, Probes* probes, bool& timed_out);

  /// Makes `program.so` from `program.cpp`, in two steps: what the compiler proper gets has been read, and no
  /// longer includes anything. `probes`: null for a program without.
  [[nodiscard]] Built build(const std::string& folder, CompilerLimits limits, bool fenced,
                            const OwnFunctions& own, Probes* probes = nullptr) const;

  /// The second step of a program with probes: to assembly, which is screened as it is, and then probed.
  void build_probed(Built& built, const std::string& folder, const CompilerLimits& limits, bool fenced,
                    const OwnFunctions& own, Probes& probes) const;

  /// How compilers name what they keep: Clang, and GCC where the result has a name of its own.
  static constexpr std::array<std::string_view, 2> kept_names{"program", "program.so-program"};

  /// What of the preprocessed text, and of the files it was read from, is not allowed.
  [[nodiscard]] std::vector<Diagnostic> screen_preprocessed(const std::string& folder) const;

  /// What of the object, and of the files that went into it, is not allowed.
  [[nodiscard]] std::vector<Diagnostic> screen_compiled(const std::string& folder,
                                                        const OwnFunctions& own) const;

  /// The files that a step has read, by its own list, without the folder where they lie in it; none if there
  /// is no list.
  [[nodiscard]] static std::vector<std::string> read_by(const std::string& folder, const char* list);

  /// Other candidates' texts are nothing a candidate should find.
  static void remove_traces(const std::string& folder);

  /// Nothing but the trampolines can be seen from outside, so that a kernel's functions are called by the
  /// kernel and nobody else, and nobody else's in their place, whatever names they have.
  static constexpr std::string_view exported_symbols = "{ global: mtmc_launch_*; local: *; };\n";

  [[nodiscard]] std::vector<std::string> code_flags() const;

  /// Keeps the folder's name, another one for every compilation, out of what debuggers are told, so that the
  /// same text gives the same bytes with -g, too.
  [[nodiscard]] std::string anonymous_folder(const std::string& folder) const;

  /// `first`, with the flags of the host behind it, so that it has the last word, and then `last`.
  [[nodiscard]] std::vector<std::string> with_flags(const std::vector<std::string>& first,
                                                    const std::vector<std::string>& last) const;

  [[nodiscard]] std::vector<std::string> preprocessing(const std::string& folder) const;

  /// What decides which code the compiler makes, besides the host's flags.
  [[nodiscard]] std::vector<std::string> generating(const std::string& folder, const OwnFunctions& own) const;
  static std::vector<std::string> linking();
  /// Without a fence the assembler says what it has read, which Clang's own one cannot.
  [[nodiscard]] std::vector<std::string> assembling(bool fenced) const;
  /// What makes a branch of every condition and nothing else.
  [[nodiscard]] std::vector<std::string> plain_branches() const;

  [[nodiscard]] std::vector<std::string> arguments(const std::string& folder, bool fenced,
                                                   const OwnFunctions& own) const;

  /// What a text is told that wants more than a compilation may have; nothing if that was not its trouble.
  [[nodiscard]] static std::optional<Diagnostic> exhausted(const ProcessResult& answer,
                                                           const CompilerLimits& limits);

  /// Makes sure that a failed compilation has an error that says why.
  static void explain(const ProcessResult& answer, const CompilerLimits& limits, const std::string& folder,
                      std::vector<Diagnostic>& diagnostics);

  /// A compiler that cannot do its work behind the fence, a wrapper that reads files of its own say, fails
  /// for every text: that is not a candidate's fault, and the fence is given up. Tried once, when a
  /// compilation first fails. Throws `Error` (`mtmc.backend.001`) if a correct program does not compile
  /// without it either.
  void check_itself();

  [[nodiscard]] Error broken(const ProcessResult& answer, std::string_view what) const;

  // The cache is a convenience: that it cannot be written is no reason to stop.
  void keep_runner(const std::string& cached) const;

  /// With what else compilations need: the C++ library, OpenMP if the flags ask for it, a linker.
  static constexpr std::string_view correct_program =
      "#include <cstdint>\n#ifdef _OPENMP\n#include <omp.h>\n#endif\nvoid f(int n, float* x) {\n"
      "#pragma omp parallel for\n  for (int i = 0; i < n; ++i) x[i] += 1;\n}\n";

  CpuBackendOptions options_;
  CppCompiler compiler_;
  TemporaryFolder folder_;
  /// Whether compilations run behind a fence.
  std::atomic<bool> fenced_;
  std::mutex mutex_;
  /// Does not change any more once it is there.
  std::optional<CompilerFiles> files_;
  std::string runner_;
  bool checked_ = false;
};

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/cpu/cpu_toolchain_inl.hpp>
#endif
