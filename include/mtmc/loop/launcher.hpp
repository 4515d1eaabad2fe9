#pragma once
/// A kernel as plain C++ that calls it: what an engine compiles in, without the SDK.

#include <mtmc/loop/cuda_launcher.hpp>
#include <mtmc/loop/launcher_text.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc {

namespace detail {

/// Behind `launcher_functions`.
inline constexpr std::string_view cpp_launcher_support = R"(
  // Memory that only the kernel uses, freed at the end of the call.
  class Scratch {
  public:
    explicit Scratch(Number bytes)
        : memory_{::operator new(static_cast<std::size_t>(bytes), std::align_val_t{64})} {}
    ~Scratch() { ::operator delete(memory_, std::align_val_t{64}); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    void* get() const { return memory_; }

  private:
    void* memory_;
  };

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

[[nodiscard]] inline std::string cpp_launcher_source(const Kernel& kernel, const Task& task,
                                                     int compute_units) {
  const auto lines = parse_launch_lines(kernel);
  auto name = "launch_" + launcher_suffix(task);
  while (kernel.source.find(name) != std::string::npos) name += '_';

  std::vector<std::string> parameters;
  for (const auto& argument : task.arguments) {
    const bool buffer = argument.role != ArgumentRole::scalar;
    parameters.push_back((argument.role == ArgumentRole::input ? "const " : "") +
                         launcher_type(argument.type, buffer) + (buffer ? "* " : " ") + argument.name);
  }
  const auto sizes = launcher_sizes(lines, task, compute_units);
  parameters.insert(parameters.end(), sizes.parameters.begin(), sizes.parameters.end());

  std::string text = "// " + (task.summary.empty() ? task.name : task.summary) +
                     "\n// Compile it with optimisation and -fopenmp.\n#include <cstddef>\n#include "
                     "<cstdint>\n#include <initializer_list>\n#include <new>\n\n";
  text += kernel.source;
  if (!text.empty() && text.back() != '\n') text += '\n';
  text.append("\nnamespace {\nstruct mtmc_launcher {\n")
      .append(launcher_functions)
      .append(cpp_launcher_support);
  text += "\nvoid " + name + '(' + joined(parameters) + ") {\n" + sizes.statement;
  for (const auto& scratch : lines.scratch)
    text += "  const mtmc_launcher::Scratch mtmc_scratch_" + scratch.name + '{' + launcher_bytes(scratch) +
            "};\n";
  for (const auto& launch : lines.launches) {
    std::vector<std::string> arguments;
    for (const auto& argument : launch.arguments) {
      const auto* known = task.find_argument(argument);
      if (is_scratch(lines, argument))
        arguments.push_back("mtmc_launcher::Pointer{mtmc_scratch_" + argument + ".get()}");
      else if (known != nullptr && known->role != ArgumentRole::scalar)
        arguments.push_back("mtmc_launcher::Pointer{" + argument + '}');
      else if (known != nullptr)
        arguments.push_back("mtmc_launcher::Scalar<" + launcher_type(known->type, false) + ">{" + argument +
                            '}');
      else
        arguments.push_back("mtmc_launcher::Scalar<std::int64_t>{" + launcher_expression(argument) + '}');
    }
    text += "  " + launch.entry + '(' + joined(arguments) + ");\n";
  }
  return text + "}\n";
}

} // namespace detail

/// C++17 text that runs a kernel as its launch lines say and needs no part of this library. `compute_units`
/// is written in as a constant. Symbols that no scalar argument holds follow the task's arguments, which come
/// in their order, as `std::int64_t` parameters.
///
/// Of a C++ kernel: a source file with the kernel's text and behind it `void launch_<task>(...)`, which
/// allocates the scratch memory and calls the launches in order.
///
/// Of a CUDA kernel: a header for CUDA's driver API and NVRTC (link with -lcuda -lnvrtc) with a class
/// `launcher_<task>`. It holds the kernel's text, compiles it when it is made, for the device of the current
/// context, and is then called with a stream, memory for the scratch buffers and the arguments, buffers as
/// device addresses; `scratch_bytes(...)` says how much memory.
///
/// Throws `Error`: `mtmc.report.001` for kernels of another language and for tensor maps, `mtmc.launch.001`
/// for malformed lines.
[[nodiscard]] inline std::string launcher_source(const Kernel& kernel, const Task& task, int compute_units) {
  const bool cuda = kernel.language.name == languages::cuda.name;
  if (!cuda && kernel.language.name != languages::cpp.name)
    throw Error(error_id::report_write,
                "a launcher can be written for C++ and CUDA kernels only, and this one is " +
                    kernel.language.name,
                "Use the launch plan (`Result::plan`) with the engine's own launches", "task " + task.name);
  if (parse_launch_lines(kernel).launches.empty())
    throw Error(error_id::launch_malformed, "the kernel has no launch line",
                "Add a comment line `//@ launch ENTRY(ARGUMENTS)`", "kernel of task " + task.name);
  return cuda ? detail::cuda_launcher_source(kernel, task, compute_units)
              : detail::cpp_launcher_source(kernel, task, compute_units);
}

} // namespace mtmc
