#pragma once
/// Definitions of cuda_profiled.hpp.

#include <mtmc/backend/cuda.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/cuda_profiled.hpp>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {
namespace detail {

/// Does what the files in a folder say. Throws `Error` and std::system_error where it cannot.
inline RunStatus run_profiled_job(const std::string& folder) {
  ProfiledJob job;
  read_value(parse_json(read_file(job_file(folder)), job_file(folder)), job, "job");
  CudaCompilation compilation;
  compilation.cubin = read_file(binary_file(folder));
  compilation.signatures = signatures_of(job.plan);
  for (std::size_t i = 0; i < job.entries.size(); ++i) {
    auto& entry = compilation.entries.emplace_back();
    entry.name = job.entries[i];
    for (const auto kind : job.parameters.at(i)) entry.parameters.push_back(static_cast<CudaParameter>(kind));
  }
  CudaBackend backend(job.options);
  // The device's one context, as the backend has it.
  CudaProgram program(std::make_shared<CudaContext>(job.options.driver_library, job.options.device),
                      std::move(compilation));
  std::map<std::uint64_t, CudaBuffer> buffers;
  for (auto& launch : job.plan.launches)
    for (auto& argument : launch.arguments) {
      if (argument.kind == LaunchArgument::Kind::scalar) continue;
      const auto number = argument.bound.handle;
      if (!buffers.contains(number)) {
        const auto content = read_file(buffer_file(folder, static_cast<std::size_t>(number)));
        auto& buffer = buffers.emplace(number, backend.allocate(content.size())).first->second;
        backend.upload(buffer, 0, std::as_bytes(std::span(content)));
      }
      argument.bound.handle = buffers.at(number).handle();
    }
  return backend.run(program, job.plan, Deadline::max());
}

/// The exit code; what went wrong is left in the folder.
inline int play_profiled(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) {
    std::fprintf(stderr, "%s is how mtmc's CUDA backend has a kernel run under Nsight Compute\n",
                 std::string(profiled_argument).c_str());
    return 2;
  }
  const std::string& folder = arguments.front();
  std::string failure;
  try {
    failure = run_profiled_job(folder).message;
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (failure.empty()) return 0;
  try {
    write_file_atomic(failure_file(folder), failure);
  } catch (const std::exception&) {
    // The exit code has to do.
  }
  return 1;
}

} // namespace detail

MTMC_INLINE ProgramRole cuda_profiled_role() {
  return {std::string(detail::profiled_argument), detail::play_profiled};
}

} // namespace mtmc
