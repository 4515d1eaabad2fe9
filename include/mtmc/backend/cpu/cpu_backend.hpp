#pragma once
/// Kernels in C++ on the processor of this machine.

#include <mtmc/backend/cpu/cache_eviction.hpp>
#include <mtmc/backend/cpu/compiler_diagnostics.hpp>
#include <mtmc/backend/cpu/cpp_compiler.hpp>
#include <mtmc/backend/cpu/cpu_program.hpp>
#include <mtmc/backend/cpu/device.hpp>
#include <mtmc/backend/cpu/options.hpp>
#include <mtmc/backend/cpu/quiet_gate.hpp>
#include <mtmc/backend/cpu/runner_source.hpp>
#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace mtmc {

/// The processor of this machine as a `Backend`.
class CpuBackend {
public:
  using Program = CpuProgram;
  using Buffer = CpuBuffer;

  explicit CpuBackend(CpuBackendOptions options = {}) : state_(std::make_shared<State>(std::move(options))) {}

  [[nodiscard]] const Device& device() const noexcept { return state_->device; }

  [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                               std::stop_token stop) {
    const auto begin = std::chrono::steady_clock::now();
    CompileResult<Program> result;
    auto folder = TemporaryFolder({.base = state_->folder.path(), .prefix = "program-"});
    auto signatures = detail::signatures_of(options.plan);
    write_file_atomic(folder.path() + "/kernel.cpp", normalize_text(kernel.source));
    write_file_atomic(folder.path() + "/program.cpp", detail::program_text(signatures));
    auto arguments = state_->compiler.remark_flags();
    arguments.insert(arguments.end(), state_->options.flags.begin(), state_->options.flags.end());
    arguments.insert(arguments.end(),
                     {"-shared", "-fPIC", "-Wl,-z,defs", "-Wl,-z,now", "-o", "program.so", "program.cpp"});
    const auto answer = state_->compiler.run(
        arguments, folder.path(),
        {.deadline = options.deadline, .memory = state_->options.compiler_memory_limit, .stop = stop});
    detail::CompilerReport report(answer.error, signatures, 1, folder.path());
    result.diagnostics = report.diagnostics(20);
    result.timed_out = answer.status == ProcessStatus::timed_out;
    if (answer.succeeded())
      result.program =
          std::make_shared<Program>(std::make_shared<detail::CompiledObject>(
                                        detail::CompiledObject{std::move(folder), std::move(signatures)}),
                                    state_);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
  }

  [[nodiscard]] Buffer allocate(std::size_t bytes) {
    return {state_->registry, std::make_shared<const detail::SharedMemory>(bytes)};
  }
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
    const auto target = detail_range(buffer, offset, content.size());
    if (!content.empty()) std::memcpy(target.data(), content.data(), content.size());
  }
  void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
    const auto content = detail_range(buffer, offset, target.size());
    if (!target.empty()) std::memcpy(target.data(), content.data(), target.size());
  }

  [[nodiscard]] RunStatus run(Program& program, const LaunchPlan& plan, Deadline deadline) {
    const auto hold = state_->gate.work();
    const std::scoped_lock lock(program.mutex_);
    double seconds = 0;
    return execute(program, {&plan, 1}, false, deadline, seconds);
  }
  [[nodiscard]] TimedRun time(Program& program, std::span<const LaunchPlan> group, bool cold,
                              Deadline deadline) {
    const auto hold = state_->gate.time();
    const std::scoped_lock lock(program.mutex_);
    TimedRun result;
    result.status = execute(program, group, cold, deadline, result.seconds);
    return result;
  }

private:
  struct State {
    explicit State(CpuBackendOptions given)
        : options(std::move(given)), compiler(options), device(discover_cpu_device()),
          folder({.base = options.temporary_folder}),
          evictor(device.caches.empty() ? 0 : device.caches.back().bytes) {
      const auto threads = options.threads > 0 ? options.threads : device.compute_units;
      setup.executable = folder.path() + "/runner";
      setup.environment = {"LC_ALL=C", "PATH=/usr/bin:/bin", "OMP_NUM_THREADS=" + std::to_string(threads),
                           "OMP_DYNAMIC=false"};
      setup.memory_limit = 8ull << 30;
      setup.address_space_limit = setup.memory_limit + static_cast<std::uint64_t>(device.memory_bytes);
      write_file_atomic(folder.path() + "/runner.cpp", detail::runner_source());
      const auto r =
          compiler.run({"-std=c++17", "-O1", "-o", "runner", "runner.cpp", "-ldl"}, folder.path(), {});
      if (!r.succeeded()) throw Error(error_id::backend_runner, r.error, "");
    }
    CpuBackendOptions options;
    detail::CppCompiler compiler;
    Device device;
    TemporaryFolder folder;
    detail::CacheEvictor evictor;
    detail::RunnerSetup setup;
    std::shared_ptr<detail::BufferRegistry> registry = std::make_shared<detail::BufferRegistry>();
    detail::QuietGate gate;
  };

  static std::span<std::byte> detail_range(Buffer& buffer, std::size_t offset, std::size_t bytes) {
    const auto content = buffer.content();
    if (offset > content.size() || bytes > content.size() - offset)
      throw std::out_of_range("bytes beyond the end of a CpuBuffer");
    return content.subspan(offset, bytes);
  }

  RunStatus execute(Program& program, std::span<const LaunchPlan> plans, bool cold, Deadline deadline,
                    double& seconds) {
    detail::BoundGroup group;
    if (auto reason = detail::bind_plans(plans, program.object_->signatures, *state_->registry, group))
      return detail::launch_failed(std::move(*reason));
    if (auto status = program.prepare(group, state_->setup, deadline); !status.finished()) return status;
    if (cold) state_->evictor.evict(group.ranges);
    return program.go(deadline, seconds);
  }

  std::shared_ptr<State> state_;
};

} // namespace mtmc
