#pragma once
/// Definitions of backend/cpu/cpu_toolchain.hpp.

#include <mtmc/backend/cpu/assembly_screen.hpp>
#include <mtmc/backend/cpu/branch_probes.hpp>
#include <mtmc/backend/cpu/compilation_cache.hpp>
#include <mtmc/backend/cpu/compiler_diagnostics.hpp>
#include <mtmc/backend/cpu/compiler_files.hpp>
#include <mtmc/backend/cpu/cpp_compiler.hpp>
#include <mtmc/backend/cpu/cpu_toolchain.hpp>
#include <mtmc/backend/cpu/launch_limits.hpp>
#include <mtmc/backend/cpu/object_screen.hpp>
#include <mtmc/backend/cpu/options.hpp>
#include <mtmc/backend/cpu/own_functions.hpp>
#include <mtmc/backend/cpu/runner_source.hpp>
#include <mtmc/backend/cpu/text_screen.hpp>
#include <mtmc/backend/cpu/trampolines.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/support/elf.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/readable_bytes.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE CpuToolchain::CpuToolchain(const CpuBackendOptions& options)
    : options_(options), compiler_(options), folder_(make_folder(options)),
      fenced_(options.defences.compiler_fence && landlock_version() > 0) {}

MTMC_INLINE std::string CpuToolchain::flags() const {
  std::string text;
  for (const auto* const list : {&options_.flags, &options_.extra_flags})
    for (const auto& flag : *list) text += (text.empty() ? "" : " ") + flag;
  return text;
}

MTMC_INLINE std::string CpuToolchain::command() const {
  auto text = compiler_.path();
  for (const auto& flag : code_flags()) text += ' ' + shell_word(flag);
  return text;
}

MTMC_INLINE void CpuToolchain::prepare() {
  const std::scoped_lock lock(mutex_);
  if (files_) return;
  const TemporaryFolder folder({.base = folder_.path(), .prefix = "trial-"});
  write_source(folder.path() + "/trial.cpp", correct_program);
  auto arguments = code_flags();
  arguments.insert(arguments.end(), {"-shared", "-MD", "-MF", "trial.d", "-o", "trial.so", "trial.cpp"});
  auto telling = arguments;
  telling.insert(telling.end(), {"-v", "-Wl,-t"});
  const auto answer = compiler_.run(telling, folder.path(), {});
  // Once more for the reason alone.
  if (!answer.succeeded()) throw broken(compiler_.run(arguments, folder.path(), {}), "a correct program");
  files_.emplace(compiler_, answer, folder.path(), options_.compiler_folders);
}

MTMC_INLINE Compilation CpuToolchain::compile(const Kernel& kernel, std::vector<LaunchSignature> signatures,
                                              const CompilerLimits& limits, bool& timed_out) {
  return compile_text(kernel, std::move(signatures), limits, nullptr, timed_out);
}

MTMC_INLINE Compilation CpuToolchain::compile_probed(const Kernel& kernel,
                                                     std::vector<LaunchSignature> signatures,
                                                     const CompilerLimits& limits, bool& timed_out) {
  Probes probes{trampoline_name(signatures.size())};
  for (const auto& signature : signatures) probes.launch_lines.insert(signature.line);
  return compile_text(kernel, std::move(signatures), limits, &probes, timed_out);
}

MTMC_INLINE Compilation CpuToolchain::compile_text(const Kernel& kernel,
                                                   std::vector<LaunchSignature> signatures,
                                                   const CompilerLimits& limits, Probes* probes,
                                                   bool& timed_out) {
  prepare();
  const auto text = normalize_text(kernel.source);
  TemporaryFolder folder({.base = folder_.path(), .prefix = "program-"});
  write_source(folder.path() + "/kernel.cpp", text);
  write_source(folder.path() + "/program.cpp", program_text(signatures));
  const OwnFunctions own(text, signatures);
  const bool fenced = fenced_;
  auto built = build(folder.path(), limits, fenced, own, probes);
  if (built.disturbed()) built = build(folder.path(), limits, fenced, own, probes);
  if (built.failed() && !exhausted(built.answer, limits)) {
    check_itself();
    if (fenced && !fenced_) built = build(folder.path(), limits, false, own, probes);
  }
  Compilation result;
  timed_out = built.cut_short();
  if (timed_out) return result;
  // Before anything the compiler says is believed or handed on: it may quote what it should not have read.
  if (!built.refused.empty()) {
    result.diagnostics = std::move(built.refused);
    result.refused = true;
    return result;
  }
  const auto& answer = built.answer;
  CompilerReport report(built.said, signatures, static_cast<int>(std::count(text.begin(), text.end(), '\n')),
                        folder.path(), [this](const std::string& file) { return files_->is_header(file); });
  result.diagnostics = report.diagnostics(max_diagnostics);
  if (answer.succeeded()) {
    const auto binary = read_file(folder.path() + "/program.so");
    if (const auto file = read_elf(binary))
      result.resources["code_bytes"] = static_cast<double>(file->code_bytes);
    remove_traces(folder.path());
    CompiledObject object{std::move(folder), std::move(signatures), sha256_hex(binary), {}};
    if (probes != nullptr) object.branches = std::move(probes->branches);
    result.object = std::make_shared<const CompiledObject>(std::move(object));
    return result;
  }
  explain(answer, limits, folder.path(), result.diagnostics);
  result.disturbed = built.disturbed();
  return result;
}

MTMC_INLINE std::string CpuToolchain::runner() {
  const std::scoped_lock lock(mutex_);
  if (!runner_.empty()) return runner_;
  const auto source = runner_source();
  const auto name =
      "mtmc-runner-" + sha256_hex(source + compiler_.path() + compiler_.version()).substr(0, 16);
  const auto cached = options_.cache_folder + '/' + name;
  if (!options_.cache_folder.empty() && ::access(cached.c_str(), X_OK) == 0) return runner_ = cached;
  write_source(folder_.path() + "/runner.cpp", source);
  const auto answer = compiler_.run(
      {"-std=c++17", "-O1", "-rdynamic", "-Wl,-z,now", "-Wl,-z,relro", "-o", "runner", "runner.cpp", "-ldl"},
      folder_.path(), {});
  if (!answer.succeeded()) throw broken(answer, "the runner");
  runner_ = folder_.path() + "/runner";
  keep_runner(cached);
  return runner_;
}

MTMC_INLINE TemporaryFolder CpuToolchain::make_folder(const CpuBackendOptions& options) {
  try {
    return TemporaryFolder({.base = options.temporary_folder, .claimed = true});
  } catch (const std::system_error& error) {
    throw Error(error_id::backend_runner, error.what(), "Name a folder that this process can write to")
        .about("CpuBackendOptions::temporary_folder");
  }
}

MTMC_INLINE void CpuToolchain::write_source(const std::string& path, std::string_view text) {
  try {
    write_file_atomic(path, text);
  } catch (const std::system_error& error) {
    throw Error(error_id::backend_compiler, error.what(),
                "Free space in the folder for temporary files, or name another one")
        .about("CpuBackendOptions::temporary_folder");
  }
}

MTMC_INLINE bool CpuToolchain::Built::cut_short() const {
  return answer.status == ProcessStatus::timed_out || answer.status == ProcessStatus::cancelled;
}

MTMC_INLINE bool CpuToolchain::Built::disturbed() const {
  return answer.status == ProcessStatus::failed_to_start || answer.status == ProcessStatus::lost ||
         answer.status == ProcessStatus::signalled || answer.error.find("Killed signal") != std::string::npos;
}

MTMC_INLINE CpuToolchain::Built CpuToolchain::build(const std::string& folder, CompilerLimits limits,
                                                    bool fenced, const OwnFunctions& own,
                                                    Probes* probes) const {
  write_source(folder + "/program.map", exported_symbols);
  std::optional<FileFence> fence;
  if (fenced) limits.fence = &fence.emplace(files_->openable(folder));
  Built built{compiler_.run(preprocessing(folder), folder, limits), {}};
  built.said = built.answer.error;
  if (built.cut_short()) return built;
  built.refused = screen_preprocessed(folder);
  if (!built.answer.succeeded() || !built.refused.empty()) return built;
  if (probes != nullptr) {
    build_probed(built, folder, limits, fenced, own, *probes);
    return built;
  }
  built.answer = compiler_.run(arguments(folder, fenced, own), folder, limits);
  built.said += built.answer.error;
  if (built.answer.succeeded()) built.refused = screen_compiled(folder, own);
  return built;
}

MTMC_INLINE void CpuToolchain::build_probed(Built& built, const std::string& folder,
                                            const CompilerLimits& limits, bool fenced,
                                            const OwnFunctions& own, Probes& probes) const {
  const auto run = [&](const std::vector<std::string>& first, const std::vector<std::string>& last) {
    built.answer = compiler_.run(with_flags(first, last), folder, limits);
    built.said += built.answer.error;
    return built.answer.succeeded();
  };
  auto to_assembly = plain_branches();
  to_assembly.insert(to_assembly.end(), {"-S", "-o", "program.s", "program.ii"});
  if (!run(generating(folder, own), to_assembly)) return;
  if (!run(assembling(fenced), {"-c", "-o", "program.o", "program.s"})) return;
  built.refused = screen_compiled(folder, own);
  if (!built.refused.empty()) return;
  auto probed =
      BranchProbes("kernel.cpp", read_file(folder + "/kernel.cpp"), probes.launch_lines, trampoline_prefix)
          .probe(read_file(folder + "/program.s"), probes.exported);
  write_source(folder + "/probed.s", probed.text);
  if (run(linking(), {"-o", "program.so", "probed.s"})) probes.branches = std::move(probed.branches);
}

MTMC_INLINE std::vector<Diagnostic> CpuToolchain::screen_preprocessed(const std::string& folder) const {
  const auto refuse = [](std::string message, std::string remedy) {
    return std::vector<Diagnostic>{{Severity::error, 0, 0, std::move(message), std::move(remedy), {}}};
  };
  for (const auto& file : read_by(folder, "program.d"))
    if (file != "kernel.cpp" && file != "program.cpp" && !files_->is_header(file))
      return refuse("the text includes `" + file + "`, which is not one of the compiler's headers",
                    std::string(cpp_text_rules.header_remedy));
  const auto text = folder + "/program.ii";
  struct stat facts{};
  if (!options_.defences.text_screen || ::stat(text.c_str(), &facts) != 0) return {};
  constexpr off_t most = off_t{64} << 20;
  if (facts.st_size > most)
    return refuse("the preprocessed text is larger than 64 MiB",
                  "Make the text smaller: fewer headers, no macros that multiply");
  return PreprocessedScreen("kernel.cpp", end_of_kernel_file).screen(read_file(text));
}

MTMC_INLINE std::vector<Diagnostic> CpuToolchain::screen_compiled(const std::string& folder,
                                                                  const OwnFunctions& own) const {
  for (const auto& file : read_by(folder, "assembled.d"))
    if (file.find('/') != std::string::npos)
      return {{Severity::error,
               0,
               0,
               "the text makes the assembler read `" + file + '`',
               "Write plain C++, without inline assembly",
               {}}};
  if (!options_.defences.object_screen) return {};
  const auto kept = [&](const char* extension) {
    std::string content;
    for (const auto name : kept_names)
      if (const auto path = folder + '/' + std::string(name) + extension; ::access(path.c_str(), F_OK) == 0)
        content = read_file(path);
    return content;
  };
  auto refused = screen_object(kept(".o"), options_.allowed_functions, own.called_by_compiler());
  if (refused.empty()) refused = screen_assembly(kept(".s"));
  return refused;
}

MTMC_INLINE std::vector<std::string> CpuToolchain::read_by(const std::string& folder, const char* list) {
  const auto path = folder + '/' + list;
  if (::access(path.c_str(), F_OK) != 0) return {};
  auto files = dependencies(read_file(path));
  for (auto& file : files)
    for (const auto& here : {folder + '/', std::string("./")})
      if (file.starts_with(here)) file.erase(0, here.size());
  return files;
}

MTMC_INLINE void CpuToolchain::remove_traces(const std::string& folder) {
  for (const std::string_view file :
       {"kernel.cpp", "program.cpp", "program.map", "program.d", "assembled.d", "probed.s"})
    ::unlink((folder + '/' + std::string(file)).c_str());
  for (const auto name : kept_names)
    for (const std::string_view extension : {".ii", ".bc", ".s", ".o", ".res"})
      ::unlink((folder + '/' + std::string(name) + std::string(extension)).c_str());
}

MTMC_INLINE std::vector<std::string> CpuToolchain::code_flags() const {
  std::vector<std::string> flags{"-fPIC"};
  for (const auto* const list : {&options_.flags, &options_.extra_flags})
    flags.insert(flags.end(), list->begin(), list->end());
  return flags;
}

MTMC_INLINE std::string CpuToolchain::anonymous_folder(const std::string& folder) const {
  // Clang would write the other flag itself, the folder's name with it, where it notes its command line.
  if (compiler_.is_clang()) return "-ffile-compilation-dir=.";
  std::error_code ignored;
  const auto real = std::filesystem::canonical(folder, ignored).string();
  return "-ffile-prefix-map=" + (real.empty() ? folder : real) + "=.";
}

MTMC_INLINE std::vector<std::string> CpuToolchain::with_flags(const std::vector<std::string>& first,
                                                              const std::vector<std::string>& last) const {
  auto arguments = compiler_.remark_flags();
  const auto code = code_flags();
  for (const auto* const list : {&first, &code, &last})
    arguments.insert(arguments.end(), list->begin(), list->end());
  return arguments;
}

MTMC_INLINE std::vector<std::string> CpuToolchain::preprocessing(const std::string& folder) const {
  return with_flags({anonymous_folder(folder)},
                    {"-E", "-MD", "-MF", "program.d", "-o", "program.ii", "program.cpp"});
}

MTMC_INLINE std::vector<std::string> CpuToolchain::arguments(const std::string& folder, bool fenced,
                                                             const OwnFunctions& own) const {
  auto first = generating(folder, own);
  first.emplace_back("-save-temps");
  for (const auto& more : {linking(), assembling(fenced)})
    first.insert(first.end(), more.begin(), more.end());
  return with_flags(first, {"-o", "program.so", "program.ii"});
}

MTMC_INLINE std::vector<std::string> CpuToolchain::generating(const std::string& folder,
                                                              const OwnFunctions& own) const {
  auto flags = own.flags();
  flags.insert(flags.end(), {anonymous_folder(folder), "-fvisibility=hidden", "-nostdinc"});
  if (compiler_.is_clang()) flags.emplace_back("-nostdinc++");
  return flags;
}

MTMC_INLINE std::vector<std::string> CpuToolchain::linking() {
  return {"-shared", "-Wl,--version-script=program.map", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,-z,relro"};
}

MTMC_INLINE std::vector<std::string> CpuToolchain::assembling(bool fenced) const {
  if (fenced) return {};
  std::vector<std::string> flags{"-Wa,--MD,assembled.d"};
  if (compiler_.is_clang()) flags.emplace_back("-fno-integrated-as");
  return flags;
}

MTMC_INLINE std::vector<std::string> CpuToolchain::plain_branches() const {
  // What the preprocessor was told of optimisation stays in the text, whatever is said here.
  // Clang's own assembler takes a table of addresses that others do not.
  if (compiler_.is_clang())
    return {"-fno-lto", "-g1", "-O0", "-fno-jump-tables", "-fno-stack-protector", "-fno-addrsig"};
  return {"-fno-lto",
          "-g1",
          "-fno-stack-protector",
          "-fno-stack-clash-protection",
          "-Og",
          "-fno-tree-ch",
          "-fno-if-conversion",
          "-fno-if-conversion2",
          "-fno-ssa-phiopt",
          "-fno-thread-jumps",
          "-fno-jump-tables",
          "-fno-tree-vectorize"};
}

MTMC_INLINE std::optional<Diagnostic> CpuToolchain::exhausted(const ProcessResult& answer,
                                                              const CompilerLimits& limits) {
  const auto said = [&](std::string_view part) { return answer.error.find(part) != std::string::npos; };
  const auto error = [](std::string message, std::string remedy) {
    return Diagnostic{Severity::error, 0, 0, std::move(message), std::move(remedy), {}};
  };
  if (said("out of memory") || said("virtual memory exhausted") || said("Cannot allocate memory") ||
      said("std::bad_alloc") || said("Killed signal") || said("failed to map segment"))
    return error("the compiler needs more memory than the limit of " +
                     readable_bytes(static_cast<double>(limits.memory)),
                 "Make the text smaller: less unrolling, smaller tables, shallower templates");
  if (said("File size limit exceeded") || said("File too large"))
    return error("the compiled program is larger than a kernel may be",
                 "Make large tables buffers or compute them");
  return std::nullopt;
}

MTMC_INLINE void CpuToolchain::explain(const ProcessResult& answer, const CompilerLimits& limits,
                                       const std::string& folder, std::vector<Diagnostic>& diagnostics) {
  if (auto reason = exhausted(answer, limits)) {
    diagnostics = {std::move(*reason)};
    return;
  }
  for (const auto& diagnostic : diagnostics)
    if (diagnostic.severity == Severity::error) return;
  if (is_assembler_failure(answer.error)) {
    diagnostics.insert(diagnostics.begin(),
                       {Severity::error,
                        0,
                        0,
                        "the assembler does not take what the compiler makes of this kernel",
                        "Write plain C++, without assembly, for the instruction sets that the device's "
                        "features name",
                        {}});
    return;
  }
  auto message = answer.error;
  replace_all(message, folder + '/', "");
  constexpr std::size_t most = 400;
  if (message.size() > most) message.erase(0, message.size() - most);
  diagnostics.insert(
      diagnostics.begin(),
      {Severity::error, 0, 0, "the compiler failed: " + answer.message + ' ' + message, {}, {}});
}

MTMC_INLINE void CpuToolchain::check_itself() {
  const std::scoped_lock lock(mutex_);
  if (checked_) return;
  const TemporaryFolder folder({.base = folder_.path(), .prefix = "check-"});
  write_source(folder.path() + "/program.cpp", correct_program);
  const auto compiles = [&](bool fenced) {
    return build(folder.path(), {}, fenced, OwnFunctions({}, {})).answer;
  };
  auto answer = compiles(fenced_);
  if (fenced_ && !answer.succeeded()) {
    answer = compiles(false);
    // Once more, in case that something else was in its way for a moment.
    fenced_ = !answer.succeeded() || compiles(true).succeeded();
  }
  if (!answer.succeeded()) throw broken(answer, "a correct program");
  checked_ = true;
}

MTMC_INLINE Error CpuToolchain::broken(const ProcessResult& answer, std::string_view what) const {
  auto said = answer.error.empty() ? answer.message : answer.error;
  constexpr std::size_t most = 600;
  if (said.size() > most) said.resize(most);
  return Error(error_id::backend_compiler,
               compiler_.path() + " cannot compile " + std::string(what) + " with the flags " + flags() +
                   ": " + said,
               "Install what it misses (`apt install g++`, or `apt install clang libomp-dev`), or correct "
               "the flags")
      .about("CpuBackendOptions::flags");
}

MTMC_INLINE void CpuToolchain::keep_runner(const std::string& cached) const {
  if (options_.cache_folder.empty()) return;
  try {
    create_folders(options_.cache_folder);
    write_file_atomic(cached, read_file(runner_));
    ::chmod(cached.c_str(), 0755);
  } catch (const std::system_error&) {
    return;
  }
}

} // namespace mtmc::detail
