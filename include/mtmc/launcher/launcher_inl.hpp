#pragma once
/// Definitions of launcher/launcher.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/launcher/cuda_launcher.hpp>
#include <mtmc/launcher/launcher.hpp>
#include <mtmc/launcher/launcher_evidence.hpp>
#include <mtmc/launcher/launcher_head.hpp>
#include <mtmc/launcher/launcher_kernel.hpp>
#include <mtmc/launcher/launcher_text.hpp>

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

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
  text += "#include <cstddef>\n#include <cstdint>\n#include <cstring>\n#include <initializer_list>\n#include "
          "<new>\n";
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
  for (std::size_t i = 0; i < lines.launches.size(); ++i) {
    for (const auto* scratch : filled_before(lines, i))
      text += "  mtmc_launcher::fill_with_zeros(mtmc_scratch_" + scratch->name + ", " +
              launcher_bytes(*scratch) + ");\n";
    text += cpp_launcher_call(lines.launches[i], lines, task);
  }
  return text + "}\n";
}

[[nodiscard]] inline std::string cpp_launcher_header(const Kernel& kernel, const Task& task,
                                                     const LauncherEvidence& evidence) {
  const auto sizes = launcher_sizes(parse_launch_lines(kernel), task, 1);
  return launcher_head(kernel, task, evidence, "// Of launcher.cpp, which has this head, too.\n") +
         "#pragma once\n#include <cstdint>\n\n// Calls the kernel and returns when it is done. Throws "
         "std::bad_alloc where its scratch memory could not be allocated.\n" +
         cpp_launcher_declaration(kernel, task, sizes) + ";\n";
}

/// Throws where a kernel has no launcher.
inline void check_launcher(const Kernel& kernel, const Task& task, const LauncherEvidence& evidence) {
  if (kernel.language.name != languages::cuda.name && kernel.language.name != languages::cpp.name)
    throw Error(error_id::report_write,
                "a launcher can be written for C++ and CUDA kernels only, and this one is " +
                    kernel.language.name,
                "Use the launch plan (`Result::plan`) with the engine's own launches", "task " + task.name);
  if (evidence.binary && kernel.language.name != languages::cuda.name)
    throw Error(error_id::report_write, "only the launcher of a CUDA kernel can hold a binary",
                "Leave LauncherEvidence::binary out; the head names the hash of the binary that was judged",
                "task " + task.name);
  if (parse_launch_lines(kernel).launches.empty())
    throw Error(error_id::launch_malformed, "the kernel has no launch line",
                "Add a comment line `//@ launch ENTRY(ARGUMENTS)`", "kernel of task " + task.name);
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string launcher_source(const Kernel& kernel, const Task& task, int compute_units,
                                        const LauncherEvidence& evidence) {
  detail::check_launcher(kernel, task, evidence);
  return kernel.language.name == languages::cuda.name
             ? detail::cuda_launcher_source(kernel, task, compute_units, evidence)
             : detail::cpp_launcher_source(kernel, task, compute_units, evidence);
}

MTMC_INLINE std::string launcher_header(const Kernel& kernel, const Task& task,
                                        const LauncherEvidence& evidence) {
  detail::check_launcher(kernel, task, evidence);
  if (kernel.language.name == languages::cuda.name) return {};
  return detail::cpp_launcher_header(kernel, task, evidence);
}

} // namespace mtmc
