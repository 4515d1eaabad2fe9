#pragma once
/// What the benchmarks of CUDA kernels share: tasks, kernels, the device or the word that there is none, and
/// kernels as files that other programs time.

#include <mtmc/actions/replay_file.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/cuda_evaluator.hpp>
#include <mtmc/evaluator/timing/timing_statistics.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/os_random.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../described_kernel.hpp"
#include "evaluations.hpp"

namespace bench {

/// A kernel of a task under a name for tables and files.
struct NamedKernel {
  std::string name;
  mtmc::Task task;
  mtmc::Kernel kernel;
};

[[nodiscard]] inline mtmc::Task cuda_task(const std::string& name) {
  return mtmc::load_task(std::string(MTMC_REPOSITORY) + "/examples/tasks/cuda/" + name + ".json");
}
/// A hand-made sequence, by the name of its task.
[[nodiscard]] inline mtmc::ReplaySequence cuda_sequence(const std::string& name) {
  return mtmc::load_replay_sequence(std::string(MTMC_REPOSITORY) + "/tests/data/sequences/cuda/" + name);
}
inline const std::vector<std::string> cuda_sequences{"gemm", "softmax", "gemm_bias_gelu"};

/// The task with another timed size; the sizes that are only checked stay.
[[nodiscard]] inline mtmc::Task with_size(mtmc::Task task,
                                          const std::map<std::string, std::int64_t>& symbols) {
  for (auto& size : task.sizes)
    if (size.weight > 0) size.symbols = {symbols.begin(), symbols.end()};
  return task;
}
/// C = A B of 4096 x 4096 matrices.
[[nodiscard]] inline mtmc::Task large_gemm() {
  return with_size(cuda_task("gemm"), {{"M", 4096}, {"N", 4096}, {"K", 4096}});
}

/// The start kernels of all CUDA tasks and all kernels of the sequences.
[[nodiscard]] inline std::vector<NamedKernel> all_cuda_kernels() {
  std::vector<NamedKernel> kernels;
  for (const auto& path : mtmc::find_task_files(std::string(MTMC_REPOSITORY) + "/examples/tasks/cuda")) {
    auto task = mtmc::load_task(path);
    kernels.push_back({task.name, task, task.kernel});
  }
  for (const auto& name : cuda_sequences) {
    int number = 0;
    for (const auto& step : cuda_sequence(name).steps)
      kernels.push_back({name + " step " + std::to_string(++number), cuda_task(name), *step.draft.kernel});
  }
  return kernels;
}

/// The device, or nothing, and the reason on standard output, where there is none.
[[nodiscard]] inline std::optional<mtmc::Device> cuda_device(mtmc::CudaEvaluator& evaluator) {
  try {
    return evaluator.device();
  } catch (const mtmc::Error& error) {
    if (error.id() != mtmc::error_id::backend_device && error.id() != mtmc::error_id::backend_compiler) throw;
    std::printf("SKIPPED: %s\n", error.message().c_str());
    return std::nullopt;
  }
}

/// A kernel at its task's main size as data (described_kernel.hpp), with its name and what it must move and
/// compute.
[[nodiscard]] inline nlohmann::json describe_kernel(const NamedKernel& named, int compute_units) {
  const auto* size = named.task.main_size();
  if (size == nullptr) throw std::runtime_error("the task " + named.task.name + " has no size that is timed");
  auto described = mtmc_test::describe_kernel(named.kernel, named.task, *size, compute_units);
  described["name"] = named.name;
  described["bytes"] = mtmc::least_bytes(named.task, *size);
  described["flops"] = mtmc::stated_flops(named.task, *size);
  return described;
}

/// The same with the kernel's binary, written to `<folder>/<file>`, and what its parameters take.
[[nodiscard]] inline nlohmann::json describe_binary(const NamedKernel& named, const mtmc::Device& device,
                                                    const mtmc::detail::CudaCompiler& compiler,
                                                    const std::string& folder, const std::string& file) {
  auto described = describe_kernel(named, device.compute_units);
  const auto plan =
      mtmc::plan_launches(named.kernel, named.task, *named.task.main_size(), device.compute_units);
  const auto compiled = compiler.compile(named.kernel, plan, mtmc::Deadline::max(), {});
  if (compiled.cubin.empty())
    throw std::runtime_error(named.name + " does not compile: " +
                             (compiled.diagnostics.empty() ? "" : compiled.diagnostics.front().message));
  mtmc::write_file_atomic(folder + '/' + file, compiled.cubin);
  described["cubin"] = file;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    described["launches"][i]["function"] = compiled.entries[i].name;
    for (std::size_t k = 0; k < plan.launches[i].arguments.size(); ++k) {
      auto& argument = described["launches"][i]["arguments"][k];
      if (argument.contains("buffer")) continue;
      const auto bits =
          mtmc::detail::cuda_parameter_bits(plan.launches[i].arguments[k], compiled.entries[i].parameters[k]);
      if (!bits) throw std::runtime_error(named.name + ": a number does not fit its parameter");
      argument["bits"] = *bits;
    }
  }
  return described;
}

} // namespace bench
