#pragma once
/// Which files are the compiler's own: its programs with their libraries, its headers, what its linker takes.
/// Everything else is nothing a kernel's text should make it open.

#include <mtmc/backend/cpu/cpp_compiler.hpp>
#include <mtmc/support/file_fence.hpp>
#include <mtmc/support/file_io.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The path without links and dots; empty if nothing is there.
[[nodiscard]] inline std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> found{::realpath(path.c_str(), nullptr), &std::free};
  return found ? std::string(found.get()) : std::string();
}

/// Whether `path` is `folder` or lies below it; both without links and dots.
[[nodiscard]] inline bool lies_in(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) &&
         (path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/');
}

/// The parts of `text` between separators, without empty ones.
[[nodiscard]] inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// The folders of headers that `-v` names, in order.
[[nodiscard]] inline std::vector<std::string> header_folders(std::string_view verbose) {
  std::vector<std::string> folders;
  bool listed = false;
  for (const auto& line : split(verbose, '\n')) {
    if (line.starts_with("End of search list")) listed = false;
    if (listed && line.starts_with(' ')) folders.push_back(line.substr(line.find_first_not_of(' ')));
    if (line.find("search starts here:") != std::string::npos) listed = true;
  }
  return folders;
}

/// The folders that `-print-search-dirs` names behind `field` ("programs", "install").
[[nodiscard]] inline std::vector<std::string> searched_folders(std::string_view answer,
                                                               std::string_view field) {
  for (const auto& line : split(answer, '\n'))
    if (line.starts_with(std::string(field) + ": ")) {
      auto list = line.substr(field.size() + 2);
      if (list.starts_with('=')) list.erase(0, 1);
      return split(list, ':');
    }
  return {};
}

/// Paths in the answers of a linker that traces its input ("/lib/libm.so", "-lm (/lib/libm.so)") and of a
/// loader that does ("libm.so => /lib/libm.so (0x7f...)").
[[nodiscard]] inline std::vector<std::string> traced_files(std::string_view trace) {
  std::vector<std::string> files;
  for (const auto& line : split(trace, '\n')) {
    const auto begin = line.find('/');
    if (begin == std::string::npos) continue;
    const auto end = std::min(line.find_first_of("()", begin), line.size());
    auto file = line.substr(begin, end - begin);
    while (!file.empty() && file.back() == ' ') file.pop_back();
    files.push_back(std::move(file));
  }
  return files;
}

/// The files that a rule for `make` names behind its target, as compilers and assemblers write it.
[[nodiscard]] inline std::vector<std::string> dependencies(std::string_view rule) {
  std::vector<std::string> files;
  const auto colon = rule.find(": ");
  if (colon == std::string_view::npos) return files;
  std::string file;
  const auto finish = [&] {
    if (!file.empty()) files.push_back(std::exchange(file, {}));
  };
  for (auto rest = rule.substr(colon + 1); !rest.empty(); rest.remove_prefix(1)) {
    if (rest.starts_with("\\\n") || rest.starts_with("\\ ") || rest.starts_with("\\#") ||
        rest.starts_with("$$")) {
      rest.remove_prefix(1);
      if (rest.front() != '\n') file += rest.front();
    } else if (rest.front() == ' ' || rest.front() == '\n') {
      finish();
    } else {
      file += rest.front();
    }
  }
  finish();
  return files;
}

/// What a compiler needs to compile any kernel, found by asking it and by watching it compile one.
class CompilerFiles {
public:
  /// `trial`: what compiling and linking a correct program with `-v -Wl,-t -MD -MF trial.d` gave, in `folder`
  /// with that program. `more`: folders that the host adds. Nothing that holds the folder's parent, where the
  /// texts of others lie, is ever among them.
  CompilerFiles(const CppCompiler& compiler, const ProcessResult& trial, const std::string& folder,
                const std::vector<std::string>& more)
      : private_folder_(real_path(folder + "/..")) {
    find_programs(compiler, folder);
    for (const auto& path : header_folders(trial.error)) add(headers_, path);
    for (const auto& path : more) add(headers_, path);
    // What a flag of the host includes.
    for (const auto& path : dependencies(read_file(folder + "/trial.d")))
      if (path.starts_with('/') && !is_header(path)) add(headers_, path);
    for (const auto& path : traced_files(trial.output)) add_folder_of(programs_, path);
  }

  /// Whether a text may include it.
  [[nodiscard]] bool is_header(const std::string& path) const {
    const auto real = real_path(path);
    return std::any_of(headers_.begin(), headers_.end(),
                       [&](const std::string& header) { return lies_in(real, header); });
  }

  /// What a compilation in `folder` may open.
  [[nodiscard]] OpenableFiles openable(const std::string& folder) const {
    OpenableFiles files;
    files.read = headers_;
#ifdef __aarch64__
    // From where compilers have the features of `native`.
    files.read.emplace_back("/proc/cpuinfo");
#endif
    files.execute = programs_;
    files.write = {folder, "/dev/null"};
    // Clang looks for installations of GCC among the names beside them.
    for (const auto* const list : {&headers_, &programs_})
      for (const auto& path : *list)
        if (auto parent = path.substr(0, path.rfind('/')); !parent.empty() && is_harmless(parent))
          files.list.push_back(std::move(parent));
    return files;
  }

private:
  void find_programs(const CppCompiler& compiler, const std::string& folder) {
    const auto answer = compiler.run({"-print-search-dirs"}, "", {}).output;
    const auto usual = split(compiler.search_path(), ':');
    std::vector<std::string> programs{"/bin/sh", compiler.path()};
    for (const char* const field : {"install", "programs"})
      for (const auto& path : searched_folders(answer, field)) {
        const auto real = real_path(path);
        const bool is_usual = std::any_of(usual.begin(), usual.end(),
                                          [&](const std::string& place) { return real == real_path(place); });
        if (is_usual || real.empty()) continue;
        add(programs_, real);
        for (const char* const program : {"/cc1plus", "/as", "/ld", "/ld.lld"})
          programs.push_back(real + program);
      }
    for (const auto& place : usual)
      for (const char* const program :
           {"/as", "/ld", "/ld.bfd", "/ld.gold", "/ld.lld", "/ld.mold", "/mold", "/lld"})
        programs.push_back(place + program);
    for (const auto& program : programs) {
      if (::access(program.c_str(), X_OK) != 0) continue;
      add(programs_, program);
      for (const auto& library : libraries_of(program, folder)) add_folder_of(programs_, library);
    }
  }

  /// What the loader loads for a program. One without it starts, in `folder`, with nothing to do.
  [[nodiscard]] static std::vector<std::string> libraries_of(const std::string& program,
                                                             const std::string& folder) {
    ProcessOptions process;
    process.arguments = {program};
    process.working_folder = folder;
    process.environment = {"LD_TRACE_LOADED_OBJECTS=1", "LC_ALL=C"};
    process.deadline = std::chrono::seconds{10};
    return traced_files(run_process(process).output);
  }

  [[nodiscard]] bool is_harmless(const std::string& real) const {
    return !real.empty() && real != "/" && !lies_in(private_folder_, real) && !lies_in(real, private_folder_);
  }
  void add(std::vector<std::string>& list, const std::string& path) const {
    auto real = real_path(path);
    if (is_harmless(real) && std::find(list.begin(), list.end(), real) == list.end())
      list.push_back(std::move(real));
  }
  void add_folder_of(std::vector<std::string>& list, const std::string& file) const {
    const auto real = real_path(file);
    add(list, file.substr(0, file.rfind('/')));
    add(list, real.substr(0, real.rfind('/')));
  }

  std::string private_folder_;
  /// Folders and files, which are also started.
  std::vector<std::string> programs_;
  std::vector<std::string> headers_;
};

} // namespace mtmc::detail
