#pragma once
/// A kernel as plain C++ that calls it: what an engine compiles in, without the SDK.

#include <mtmc/loop/cuda_launcher.hpp>
#include <mtmc/loop/launcher_evidence.hpp>
#include <mtmc/loop/launcher_head.hpp>
#include <mtmc/loop/launcher_kernel.hpp>
#include <mtmc/loop/launcher_text.hpp>

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc {

namespace detail {

/// Behind `launcher_functions`.
inline constexpr std::string_view cpp_launcher_support = R"(
  // Memory that only the kernel uses. Each thread keeps its own from call to call, as it was when the kernel was
  // measured: every page of fresh memory would be a page fault.
  template <int> static void* scratch(Number bytes) {
    struct Memory {
      void* place = nullptr;
      Number bytes = 0;
      void free() { ::operator delete(place, std::align_val_t{64}); }
      ~Memory() { free(); }
    };
    static thread_local Memory memory;
    if (memory.bytes < bytes) {
      void* const larger = ::operator new(static_cast<std::size_t>(bytes), std::align_val_t{64});
      memory.free();
      memory.place = larger;
      memory.bytes = bytes;
    }
    return memory.place;
  }

  // Pass as whatever pointer or number the entry function asks for.
  struct Pointer {
    const void* memory;
    template <class T> operator T*() const { return static_cast<T*>(const_cast<void*>(memory)); }
  };
  template <class Value> struct Scalar {
    Value value;
    template <class T> operator T() const { return static_cast<T>(value); }
  };
};
} // namespace
)";

/// The function's name: that of no other one in the text.
[[nodiscard]] inline std::string cpp_launcher_name(const Kernel& kernel, const Task& task) {
  auto name = "launch_" + launcher_suffix(task);
  while (kernel.source.find(name) != std::string::npos) name += '_';
  return name;
}

/// "void launch_gemm(const float* A, ...)".
[[nodiscard]] inline std::string cpp_launcher_declaration(const Kernel& kernel, const Task& task,
                                                          const LauncherSizes& sizes) {
  std::vector<std::string> parameters;
  for (const auto& argument : task.arguments) {
    const bool buffer = argument.role != ArgumentRole::scalar;
    parameters.push_back((argument.role == ArgumentRole::input ? "const " : "") +
                         launcher_type(argument.type, buffer) + (buffer ? "* " : " ") + argument.name);
  }
  parameters.insert(parameters.end(), sizes.parameters.begin(), sizes.parameters.end());
  return "void " + cpp_launcher_name(kernel, task) + '(' + joined(parameters) + ')';
}

/// The call of one launch line.
[[nodiscard]] inline std::string cpp_launcher_call(const LaunchLine& launch, const LaunchLines& lines,
                                                   const Task& task) {
  std::vector<std::string> arguments;
  for (const auto& argument : launch.arguments) {
    const auto* known = task.find_argument(argument);
    if (is_scratch(lines, argument))
      arguments.push_back("mtmc_launcher::Pointer{mtmc_scratch_" + argument + '}');
    else if (known != nullptr && known->role != ArgumentRole::scalar)
      arguments.push_back("mtmc_launcher::Pointer{" + argument + '}');
    else if (known != nullptr)
      arguments.push_back("mtmc_launcher::Scalar<" + launcher_type(known->type, false) + ">{" + argument +
                          '}');
    else
      arguments.push_back("mtmc_launcher::Scalar<std::int64_t>{" + launcher_expression(argument) + '}');
  }
  return "  " + std::string(launcher_kernel_namespace) + "::" + launch.entry + '(' + joined(arguments) +
         ");\n";
}

[[nodiscard]] inline std::string cpp_launcher_source(const Kernel& kernel, const Task& task,
                                                     int compute_units, const LauncherEvidence& evidence) {
  const auto lines = parse_launch_lines(kernel);
  const auto sizes = launcher_sizes(lines, task, compute_units);
  std::set<std::string, std::less<>> entries;
  for (const auto& launch : lines.launches) entries.insert(launch.entry);
  const auto source = normalize_text(kernel.source);
  const LauncherKernel own(source, entries);

  const auto command = evidence.compile_command.empty() ? std::string("c++ -O3 -march=native -fPIC") +
                                                              (own.uses_openmp() ? " -fopenmp" : "")
                                                        : evidence.compile_command;
  auto how = comment_line("Compile", command + " -c launcher.cpp");
  if (own.uses_openmp()) {
    how += comment_line("Link", "with -fopenmp");
    if (!evidence.kernel_environment.empty()) how += comment_line("Run with", evidence.kernel_environment);
  }
  auto text = launcher_head(kernel, task, evidence, how);
  text += "#include <cstddef>\n#include <cstdint>\n#include <initializer_list>\n#include <new>\n";
  text += own.includes();
  if (own.uses_openmp())
    text += "\n#ifndef _OPENMP\n#error \"This kernel was measured with the threads of OpenMP: compile it as "
            "its head "
            "says, with -fopenmp\"\n#endif\n";
  // What a kernel leaves unused says nothing about the program that it is linked into.
  text += "\n#pragma GCC diagnostic push\n";
  for (const std::string_view unused : {"function", "variable", "const-variable"})
    text.append("#pragma GCC diagnostic ignored \"-Wunused-").append(unused).append("\"\n");
  text += own.namespaces();
  text += "#pragma GCC diagnostic pop\n";
  text.append("\nnamespace {\nstruct mtmc_launcher {\n")
      .append(launcher_functions)
      .append(cpp_launcher_support);
  text += '\n' + cpp_launcher_declaration(kernel, task, sizes) + " {\n" + sizes.statement;
  for (std::size_t i = 0; i < lines.scratch.size(); ++i)
    text += "  void* const mtmc_scratch_" + lines.scratch[i].name + " = mtmc_launcher::scratch<" +
            std::to_string(i) + ">(" + launcher_bytes(lines.scratch[i]) + ");\n";
  for (const auto& launch : lines.launches) text += cpp_launcher_call(launch, lines, task);
  return text + "}\n";
}

[[nodiscard]] inline std::string cpp_launcher_header(const Kernel& kernel, const Task& task,
                                                     const LauncherEvidence& evidence) {
  const auto sizes = launcher_sizes(parse_launch_lines(kernel), task, 1);
  return launcher_head(kernel, task, evidence, "// Of launcher.cpp, which has this head, too.\n") +
         "#pragma once\n#include <cstdint>\n\n// Calls the kernel and returns when it is done. Throws "
         "std::bad_alloc where its scratch memory cannot be had.\n" +
         cpp_launcher_declaration(kernel, task, sizes) + ";\n";
}

/// Throws where a kernel has no launcher.
inline void check_launcher(const Kernel& kernel, const Task& task) {
  if (kernel.language.name != languages::cuda.name && kernel.language.name != languages::cpp.name)
    throw Error(error_id::report_write,
                "a launcher can be written for C++ and CUDA kernels only, and this one is " +
                    kernel.language.name,
                "Use the launch plan (`Result::plan`) with the engine's own launches", "task " + task.name);
  if (parse_launch_lines(kernel).launches.empty())
    throw Error(error_id::launch_malformed, "the kernel has no launch line",
                "Add a comment line `//@ launch ENTRY(ARGUMENTS)`", "kernel of task " + task.name);
}

} // namespace detail

/// C++17 text that runs a kernel as its launch lines say and needs no part of this library. `compute_units`
/// is written in as a constant. Symbols that no scalar argument holds follow the task's arguments, which come
/// in their order, as `std::int64_t` parameters. Its head says how to compile it so that it is as fast as it
/// was measured, and what `evidence` knows.
///
/// Of a C++ kernel: a source file with the kernel's text and behind it `void launch_<task>(...)`, which
/// calls the launches in order. It may be called from several threads; each keeps its own scratch memory
/// until it ends. That function is all that can be seen from outside, so that a kernel's functions and types
/// clash with none of the program; for two kernels of one task give the tasks different names. Where the
/// kernel uses OpenMP, the file does not compile without it.
///
/// Of a CUDA kernel: a header for CUDA's driver API and NVRTC (link with -lcuda -lnvrtc) with a class
/// `launcher_<task>`, in an inline namespace of the kernel's own. It holds the kernel's text, compiles it
/// when it is made, for the device of the current context and with the options of the measurement, and is
/// then called with a stream, memory for the scratch buffers and the arguments, buffers as device addresses;
/// `scratch_bytes(...)` says how much memory.
///
/// Throws `Error`: `mtmc.report.001` for kernels of another language and for tensor maps, `mtmc.launch.001`
/// for malformed lines.
[[nodiscard]] inline std::string launcher_source(const Kernel& kernel, const Task& task, int compute_units,
                                                 const LauncherEvidence& evidence = {}) {
  detail::check_launcher(kernel, task);
  return kernel.language.name == languages::cuda.name
             ? detail::cuda_launcher_source(kernel, task, compute_units, evidence)
             : detail::cpp_launcher_source(kernel, task, compute_units, evidence);
}

/// The header that declares what `launcher_source` defines, with the same head; empty for CUDA kernels, whose
/// launcher is a header. Throws `Error` as `launcher_source`.
[[nodiscard]] inline std::string launcher_header(const Kernel& kernel, const Task& task,
                                                 const LauncherEvidence& evidence = {}) {
  detail::check_launcher(kernel, task);
  if (kernel.language.name == languages::cuda.name) return {};
  return detail::cpp_launcher_header(kernel, task, evidence);
}

} // namespace mtmc
