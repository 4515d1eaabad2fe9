#pragma once
/// Compiles kernels of one task side by side and compares what they compute.

#include <mtmc/core/task.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/shared_library.hpp>
#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::testing {

/// Kernels of a task compiled together; kernel 0 is the task's own. Only f32 buffers.
class KernelRunner {
public:
  /// Throws std::runtime_error with the compiler's words if one does not compile without warnings.
  KernelRunner(const Task& task, std::vector<std::string> sources) : task_(task) {
    sources.insert(sources.begin(), task.kernel.source);
    std::string text =
        "#include <algorithm>\n#include <bit>\n#include <cmath>\n#include <cstddef>\n#include <cstdint>\n"
        "#include <omp.h>\nextern \"C\" void set_threads(int count) { omp_set_num_threads(count); }\n";
    for (std::size_t k = 0; k < sources.size(); ++k) {
      kernels_.push_back({task.kernel.language, sources[k]});
      const std::string name = "candidate_" + std::to_string(k);
      text += "namespace " + name + " {\n" + without_includes(sources[k]) + "}\n";
      text +=
          "extern \"C\" void run_" + std::to_string(k) + "(float* const* buffers, const double* scalars) {\n";
      std::size_t buffer = 0, scalar = 0;
      for (const Launch& launch : plan_launches(kernels_[k], task, task.sizes.front(), 2).launches) {
        text += "  " + name + "::" + launch.entry + '(';
        for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
          if (i > 0) text += ", ";
          const LaunchArgument& argument = launch.arguments[i];
          if (argument.kind == LaunchArgument::Kind::buffer)
            text += "buffers[" + std::to_string(buffer++) + ']';
          else
            text += std::string(argument.type == DataType::f32 ? "static_cast<float>" : "static_cast<int>") +
                    "(scalars[" + std::to_string(scalar++) + "])";
        }
        text += ");\n";
      }
      text += "  (void)buffers;\n  (void)scalars;\n}\n";
    }
    const std::string source = folder_.path() + "/kernels.cpp";
    const std::string library = folder_.path() + "/kernels.so";
    write_file_atomic(source, text);
    ProcessOptions options;
    options.arguments = {"g++",     "-std=c++20", "-O1",     "-fopenmp", "-shared", "-fPIC", "-Wall",
                         "-Wextra", "-Wshadow",   "-Werror", source,     "-o",      library};
    const ProcessResult result = run_process(options);
    if (!result.succeeded()) throw std::runtime_error(result.error + text);
    // OpenMP's threads must not lose the code under their feet
    library_ = SharedLibrary::open(std::vector<std::string>{library}, {.keep_loaded = true});
  }

  /// Outputs of a kernel at a size, one after the other, from inputs that depend on the size alone. Outputs
  /// and scratch buffers are poisoned before.
  [[nodiscard]] std::vector<float> run(std::size_t kernel, const ProblemSize& size, int threads = 2) const {
    const LaunchPlan plan = plan_launches(kernels_[kernel], task_, size, 2);
    std::vector<std::pair<std::string, std::vector<float>>> memory;
    for (const Argument& argument : task_.arguments) {
      if (argument.role == ArgumentRole::scalar) continue;
      std::size_t count = 1;
      for (const std::string& extent : argument.shape)
        count *= static_cast<std::size_t>(evaluate_expression(extent, size.symbols));
      memory.emplace_back(argument.name, values(count, argument.role != ArgumentRole::output, memory.size()));
    }
    for (const ScratchBuffer& scratch : plan.scratch)
      memory.emplace_back(scratch.name,
                          values(static_cast<std::size_t>(scratch.bytes()) / sizeof(float), false, 0));
    std::vector<float*> buffers;
    std::vector<double> scalars;
    for (const Launch& launch : plan.launches)
      for (const LaunchArgument& argument : launch.arguments) {
        if (argument.kind == LaunchArgument::Kind::buffer) {
          for (auto& [name, content] : memory)
            if (name == argument.name) buffers.push_back(content.data());
        } else {
          scalars.push_back(argument.type == DataType::f32 ? argument.real
                                                           : static_cast<double>(argument.integer));
        }
      }
    library_->symbol<void(int)>("set_threads")(threads);
    library_->symbol<void(float* const*, const double*)>("run_" + std::to_string(kernel))(buffers.data(),
                                                                                          scalars.data());
    std::vector<float> outputs;
    for (const Argument& argument : task_.arguments)
      if (argument.role == ArgumentRole::output || argument.role == ArgumentRole::inout)
        for (const auto& [name, content] : memory)
          if (name == argument.name) outputs.insert(outputs.end(), content.begin(), content.end());
    return outputs;
  }

  /// Largest difference between a kernel's outputs and those of the task's own, relative to the largest
  /// output.
  [[nodiscard]] double difference(std::size_t kernel, const ProblemSize& size, int threads = 2) const {
    const std::vector<float> wanted = run(0, size, 1);
    const std::vector<float> got = run(kernel, size, threads);
    double scale = 1e-30, worst = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      scale = std::max(scale, std::abs(static_cast<double>(wanted[i])));
      const double distance = std::abs(static_cast<double>(got[i]) - static_cast<double>(wanted[i]));
      worst = distance <= worst ? worst : distance; // a NaN is the worst of all
    }
    return worst / scale;
  }

private:
  [[nodiscard]] static std::string without_includes(const std::string& source) {
    std::string text, line;
    for (const char c : source) {
      line += c;
      if (c != '\n') continue;
      if (line.find("#include") == std::string::npos) text += line;
      line.clear();
    }
    return text + line + '\n';
  }
  [[nodiscard]] static std::vector<float> values(std::size_t count, bool filled, std::size_t seed) {
    std::vector<float> result(count, std::numeric_limits<float>::quiet_NaN());
    auto state = static_cast<std::uint32_t>(12345 + 977 * seed);
    if (filled)
      for (float& value : result) {
        state = state * 1664525U + 1013904223U;
        value = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
      }
    return result;
  }

  Task task_;
  std::vector<Kernel> kernels_;
  TemporaryFolder folder_{};
  std::optional<SharedLibrary> library_{};
};

} // namespace mtmc::testing
