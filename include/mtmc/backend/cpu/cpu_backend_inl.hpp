#pragma once
/// Definitions of backend/cpu/cpu_backend.hpp.

#include <mtmc/backend/cpu/cache_eviction.hpp>
#include <mtmc/backend/cpu/ceilings_probe.hpp>
#include <mtmc/backend/cpu/compilation_cache.hpp>
#include <mtmc/backend/cpu/conditions.hpp>
#include <mtmc/backend/cpu/cpu_backend.hpp>
#include <mtmc/backend/cpu/cpu_program.hpp>
#include <mtmc/backend/cpu/cpu_toolchain.hpp>
#include <mtmc/backend/cpu/device.hpp>
#include <mtmc/backend/cpu/launch_limits.hpp>
#include <mtmc/backend/cpu/memory_reserve.hpp>
#include <mtmc/backend/cpu/options.hpp>
#include <mtmc/backend/cpu/options_json.hpp>
#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/backend/cpu/text_screen.hpp>
#include <mtmc/backend/divided_kernel.hpp>
#include <mtmc/backend/double_precision.hpp>
#include <mtmc/backend/quiet_gate.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/support/device_lock.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <sched.h>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE CpuBackend CpuBackend::from_json(const nlohmann::json& options) {
  CpuBackendOptions read;
  detail::read_value(options, read, "backend_options");
  return CpuBackend{std::move(read)};
}

MTMC_INLINE std::vector<Diagnostic> CpuBackend::screen(const Kernel& kernel) const {
  if (!state_->options.defences.text_screen) return {};
  return detail::screen_text(normalize_text(kernel.source), state_->options.allowed_headers);
}

MTMC_INLINE std::optional<DividedKernel> CpuBackend::divided(const Kernel& kernel) const {
  return detail::divided_kernel(kernel);
}

MTMC_INLINE std::optional<Kernel> CpuBackend::in_double_precision(const Kernel& kernel) const {
  return detail::in_double_precision(kernel);
}

MTMC_INLINE CompileResult<CpuBackend::Program>
CpuBackend::compile(const Kernel& kernel, const CompileOptions& options, std::stop_token stop) {
  const auto begin = std::chrono::steady_clock::now();
  CompileResult<Program> result;
  result.diagnostics = detail::check_for_cpu(kernel, options.plan);
  if (result.diagnostics.empty()) compile_valid(kernel, options, stop, result);
  result.seconds = seconds_since(begin);
  return result;
}

MTMC_INLINE CompileResult<CpuBackend::Program>
CpuBackend::compile_probed(const Kernel& kernel, const CompileOptions& options, std::stop_token stop) {
  CompileResult<Program> result;
#ifdef __x86_64__
  const auto begin = std::chrono::steady_clock::now();
  result.diagnostics = detail::check_for_cpu(kernel, options.plan);
  if (!result.diagnostics.empty()) return result;
  const auto [deadline, memory] = limits_of(options);
  const auto compilation = [&, most = memory, until = deadline] {
    const auto hold = quietly([&] { return state_->gate.work(); });
    return state_->toolchain.compile_probed(
        kernel, detail::signatures_of(options.plan),
        {.deadline = detail::put_off(until, begin), .memory = most, .stop = stop}, result.timed_out);
  }();
  show_confinement();
  result.diagnostics = compilation.diagnostics;
  result.refused = compilation.refused;
  result.seconds = seconds_since(begin);
  if (!compilation.object) return result;
  (void)state_->toolchain.runner();
  result.program = std::make_shared<Program>(compilation.object, state_);
  if (const auto branches = compilation.object->branches.size(); branches > 0) {
    result.program->ways_.emplace(allocate(2 * branches));
    fill(*result.program->ways_, 0, 2 * branches, std::byte{0});
  }
#endif
  return result;
}

MTMC_INLINE std::pair<Deadline, std::int64_t> CpuBackend::limits_of(const CompileOptions& options) const {
  const auto memory = options.memory_limit > 0 ? options.memory_limit : state_->options.compiler_memory_limit;
  const auto deadline = options.deadline == Deadline::max()
                            ? std::chrono::steady_clock::now() + state_->options.compile_timeout
                            : options.deadline;
  return {deadline, memory};
}

MTMC_INLINE std::size_t CpuBackend::guard_page_bytes() const {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

MTMC_INLINE CpuBackend::Buffer CpuBackend::allocate(std::size_t bytes) {
  return {state_->registry, state_->reserve->allocate(bytes)};
}

MTMC_INLINE void CpuBackend::upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
  check_part(buffer, offset, content.size());
  buffer.memory_->stage(offset, content);
}

MTMC_INLINE void CpuBackend::upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
                                    std::shared_ptr<const void> owner) {
  check_part(buffer, offset, content.size());
  buffer.memory_->stage_shared(offset, content, std::move(owner));
}

MTMC_INLINE void CpuBackend::fill(Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value) {
  check_part(buffer, offset, bytes);
  buffer.memory_->stage_fill(offset, bytes, value);
}

MTMC_INLINE std::span<const std::byte> CpuBackend::view(Buffer& buffer, std::size_t offset,
                                                        std::size_t bytes) {
  check_part(buffer, offset, bytes);
  if (!state_->options.defences.freeze) return {};
  return buffer.content().subspan(offset, bytes);
}

MTMC_INLINE void CpuBackend::download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
  check_part(buffer, offset, target.size());
  if (!target.empty()) std::memcpy(target.data(), buffer.content().data() + offset, target.size());
}

MTMC_INLINE RunStatus CpuBackend::run(Program& program, const LaunchPlan& plan, Deadline deadline) {
  const auto begin = std::chrono::steady_clock::now();
  const auto hold = quietly([&] { return state_->gate.work(); });
  const std::scoped_lock lock(program.mutex_);
  double seconds = 0;
  return execute(program, {&plan, 1}, Memory::uncached, anywhere, detail::put_off(deadline, begin), seconds);
}

MTMC_INLINE void CpuBackend::keep_state(Program& program, bool keep) {
  const std::scoped_lock lock(program.mutex_);
  program.keeps_state_ = keep;
}

MTMC_INLINE TimedRun CpuBackend::time(Program& program, std::span<const LaunchPlan> group, bool cold,
                                      Deadline deadline) {
  const auto begin = std::chrono::steady_clock::now();
  const auto hold = quietly([&] { return state_->gate.time(); });
  const std::scoped_lock lock(program.mutex_);
  TimedRun result;
  program.restore_settings();
  const auto before = state_->watch.read(program.runner_seconds());
  result.status = execute(program, group, cold ? Memory::evicted : Memory::cached, state_->place,
                          detail::put_off(deadline, begin), result.seconds);
  // The processor time of a runner that is lost is not known.
  if (result.status.finished()) state_->watch.add(before, state_->watch.read(program.runner_seconds()));
  return result;
}

MTMC_INLINE double CpuBackend::call_overhead() {
  const std::scoped_lock lock(state_->measuring);
  if (!state_->overhead) {
    const LaunchPlan plan{.size = {}, .launches = {Launch{.entry = "nothing", .line = 1}}};
    const auto program = compile_own("//@ launch nothing()\nvoid nothing() {}\n", plan);
    std::array<double, 101> samples{};
    for (auto& sample : samples) sample = time_own(*program, plan, false);
    std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
    state_->overhead = samples[samples.size() / 2];
  }
  return *state_->overhead;
}

MTMC_INLINE MeasuredCeilings CpuBackend::measure_ceilings() {
  const std::scoped_lock lock(state_->measuring);
  if (state_->device.load() != &state_->measured) {
    state_->measured = state_->discovered;
    state_->measured.measured = probe_ceilings();
    const std::scoped_lock isolation(state_->isolation_lock);
    state_->measured.software["isolation"] = state_->isolation;
    state_->measured.software[confinement_key] = state_->toolchain.confinement();
    state_->device.store(&state_->measured);
  }
  return state_->measured.measured;
}

MTMC_INLINE CpuBackend::State::State(CpuBackendOptions given)
    : options(std::move(given)), toolchain(options), discovered(discover_cpu_device()),
      cache(options.cached_programs), evictor(discovered.caches.empty() ? 0 : discovered.caches.back().bytes),
      gate(DeviceLock{options.device_lock_folder, "cpu"}) {
  const int threads = options.threads > 0 ? options.threads : discovered.compute_units;
  discovered.compute_units = std::min(threads, discovered.compute_units);
  discovered.software["compiler"] = toolchain.compiler().version();
  discovered.software[environment_key::compile_command] = toolchain.command();
  discovered.software[confinement_key] = toolchain.confinement();
  for (const auto& flag : options.flags)
    if (flag.starts_with("-fopenmp")) discovered.features.emplace_back("openmp");
  constexpr std::int64_t largest_default = std::int64_t{8} << 30;
  const auto memory = options.kernel_memory_limit > 0
                          ? options.kernel_memory_limit
                          : std::min(largest_default, discovered.memory_bytes / 2);
  runner.memory_limit = static_cast<std::uint64_t>(memory);
  runner.address_space_limit = static_cast<std::uint64_t>(memory + discovered.memory_bytes);
  runner.environment = {"LC_ALL=C",
                        "PATH=/usr/bin:/bin",
                        "OMP_DYNAMIC=false",
                        "OMP_NUM_THREADS=" + std::to_string(threads),
                        "OMP_PROC_BIND=spread",
                        "OMP_PLACES=cores"};
  for (const auto& entry : options.kernel_environment) {
    const auto variable = entry.substr(0, entry.find('=') + 1);
    std::erase_if(runner.environment, [&](const std::string& own) { return own.starts_with(variable); });
    runner.environment.push_back(entry);
  }
  auto& variables = discovered.software[environment_key::kernel_environment];
  for (const auto& entry : runner.environment)
    if (entry.starts_with("OMP_")) variables += (variables.empty() ? "" : " ") + entry;
  identity = "cpu: " + discovered.name + " (" + discovered.arch + "); " + toolchain.compiler().version() +
             "; " + toolchain.flags() + "; runner " + std::to_string(detail::runner_protocol::magic & 0xffff);
  for (const auto& entry : runner.environment) identity += ' ' + entry;
  for (const auto* const allowed : {&options.allowed_headers, &options.allowed_functions})
    for (const auto& entry : *allowed) identity += "; allows " + entry;
  runner.sandbox = options.defences.sandbox;
  runner.process_namespace = options.defences.process_namespace;
  runner.freeze = options.defences.freeze;
  discovered.software["isolation"] = isolation = detail::describe_isolation(
      runner, runner.process_namespace ? detail::why_no_process_namespace() : std::string{});
  if (options.defences != CpuDefences{})
    identity +=
        std::string("; locks ") + (options.defences.text_screen ? "text " : "") +
        (options.defences.object_screen ? "object " : "") +
        (options.defences.compiler_fence ? "fence " : "") + (options.defences.sandbox ? "sandbox " : "") +
        (options.defences.process_namespace ? "namespace " : "") + (options.defences.freeze ? "freeze" : "");
}

MTMC_INLINE void CpuBackend::check_part(const Buffer& buffer, std::size_t offset, std::size_t bytes) {
  const auto size = buffer.memory_->content().size();
  if (offset > size || bytes > size - offset)
    throw std::out_of_range("bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                            " of a CpuBuffer of " + std::to_string(size) + " bytes");
}

MTMC_INLINE void CpuBackend::compile_valid(const Kernel& kernel, const CompileOptions& options,
                                           const std::stop_token& stop, CompileResult<Program>& result) {
  auto signatures = detail::signatures_of(options.plan);
  const auto [deadline, memory] = limits_of(options);
  const auto key = sha256_hex(kernel.id() + state_->identity + ' ' + std::to_string(memory) + '\n' +
                              detail::describe(signatures));
  auto compilation = state_->cache.find_or_claim(key, deadline, stop, result.timed_out);
  if (result.timed_out) return;
  if (!compilation) {
    try {
      const auto begin = std::chrono::steady_clock::now();
      const auto hold = quietly([&] { return state_->gate.work(); });
      state_->toolchain.prepare();
      compilation = state_->toolchain.compile(
          kernel, std::move(signatures),
          {.deadline = detail::put_off(deadline, begin), .memory = memory, .stop = stop}, result.timed_out);
    } catch (...) {
      state_->cache.abandon(key);
      throw;
    }
    show_confinement();
    if (result.timed_out) return state_->cache.abandon(key);
    if (compilation->disturbed)
      state_->cache.abandon(key);
    else
      state_->cache.finish(key, *compilation);
  }
  result.diagnostics = compilation->diagnostics;
  result.refused = compilation->refused;
  result.resources = compilation->resources;
  if (!compilation->object) return;
  // Here, because it takes time that no deadline of a run foresees.
  (void)state_->toolchain.runner();
  result.program = state_->cache.program(key, compilation->object, state_);
}

MTMC_INLINE void CpuBackend::show_confinement() {
  if (state_->toolchain.confinement() == state_->discovered.software.at(confinement_key)) return;
  std::call_once(state_->unfenced_once, [this] {
    state_->unfenced = state_->discovered;
    state_->unfenced.software[confinement_key] = state_->toolchain.confinement();
    const Device* expected = &state_->discovered;
    state_->device.compare_exchange_strong(expected, &state_->unfenced);
  });
}

MTMC_INLINE RunStatus CpuBackend::execute(Program& program, std::span<const LaunchPlan> plans, Memory memory,
                                          int processor, Deadline deadline, double& seconds) {
  detail::BoundGroup group;
  if (auto reason = detail::bind_plans(plans, program.object_->signatures, *state_->registry, group))
    return detail::launch_failed(std::move(*reason));
  program.add_branches(group);
  const auto begin = std::chrono::steady_clock::now();
  if (program.runner_ == nullptr) {
    auto setup = state_->runner;
    setup.executable = state_->toolchain.runner();
    if (auto status = program.start(setup, begin + preparation_patience); !status.finished()) return status;
    const std::scoped_lock isolation(state_->isolation_lock);
    state_->isolation = detail::describe_isolation(
        setup, program.runner_->alone() ? std::string{} : program.runner_->why_not_alone());
  }
  if (auto status = program.prepare(group, processor, begin + preparation_patience); !status.finished())
    return status;
  // Only now, so that a candidate that got to run while it was prepared would find nothing to work on.
  std::vector<std::shared_ptr<const detail::SharedMemory>> buffers;
  for (const auto& [handle, buffer] : group.buffers) buffers.push_back(buffer);
  detail::settle_all(buffers, memory == Memory::cached);
  if (memory == Memory::evicted) state_->evictor.evict(detail::merged(std::move(group.ranges)));
  return program.go(group, detail::put_off(deadline, begin), seconds);
}

MTMC_INLINE std::shared_ptr<CpuBackend::Program> CpuBackend::compile_own(std::string_view text,
                                                                         const LaunchPlan& plan) {
  const Kernel kernel{languages::cpp, std::string(text), {}};
  auto result = compile(kernel, {.plan = plan}, {});
  if (result.program) return result.program;
  throw Error(error_id::backend_compiler,
              "a probe of this library cannot be compiled" +
                  (result.diagnostics.empty() ? " in time" : ": " + result.diagnostics.front().message),
              "Allow the compiler more time, or correct its flags")
      .about(result.diagnostics.empty() ? "CpuBackendOptions::compile_timeout" : "CpuBackendOptions::flags");
}

MTMC_INLINE double CpuBackend::time_own(Program& program, const LaunchPlan& plan, bool cold) {
  const auto timed =
      time(program, {&plan, 1}, cold, std::chrono::steady_clock::now() + std::chrono::seconds{20});
  if (timed.status.finished()) return timed.seconds;
  throw Error(error_id::backend_runner, "a probe of this library does not run: " + timed.status.message,
              "Check the environment of kernels, their threads, and the limit on their memory")
      .about("CpuBackendOptions::kernel_memory_limit");
}

MTMC_INLINE MeasuredCeilings CpuBackend::probe_ceilings() {
  const Device& device = state_->discovered;
  const auto cores = static_cast<std::int64_t>(device.compute_units);
  // Long enough for a call's overhead not to matter, also where memory is fast.
  constexpr std::int64_t megabyte = 1 << 20;
  const auto memory_bytes = std::clamp(8 * cores * megabyte, 64 * megabyte, 512 * megabyte);
  auto data = allocate(static_cast<std::size_t>(memory_bytes));
  auto sink = allocate(64);
  LaunchPlan plan = detail::probe_plan(data.handle(), memory_bytes, sink.handle());
  const auto program = compile_own(detail::probe_text, plan);
  const auto once = [&](std::int64_t bytes, std::int64_t repeats, int mode, bool cold) {
    auto& arguments = plan.launches.front().arguments;
    arguments[2].integer = bytes;
    arguments[3].integer = repeats;
    arguments[4].integer = mode;
    return time_own(*program, plan, cold);
  };
  // The least of several times, and of more where the machine is so busy that they go on getting better.
  const auto best = [&](std::int64_t bytes, std::int64_t repeats, int mode, bool cold) {
    constexpr int max_tries = 24;
    constexpr int last_without_progress = 4;
    double least = once(bytes, repeats, mode, cold);
    for (int i = 1, stale = 0; i < max_tries && stale < last_without_progress; ++i) {
      const double seconds = once(bytes, repeats, mode, cold);
      stale = seconds < 0.97 * least ? 0 : stale + 1;
      least = std::min(least, seconds);
    }
    return least;
  };
  MeasuredCeilings measured;
  measured.read_bandwidth =
      static_cast<double>(memory_bytes) / best(memory_bytes, 1, detail::probe_read, true);
  std::array<double, 2> said{};
  download(sink, 0, std::as_writable_bytes(std::span(said)));
  const double vector_bytes = said[0];
  const double threads = said[1];
  if (const auto cached = detail::probe_cache_bytes(device); cached > 0 && cached <= memory_bytes) {
    const auto repeats = std::max<std::int64_t>(1, memory_bytes / cached);
    (void)once(cached, 1, detail::probe_read, false);
    measured.cache_bandwidth =
        static_cast<double>(cached * repeats) / best(cached, repeats, detail::probe_read, false);
  }
  const auto rate = [&](int mode, double element_bytes) {
    constexpr double wanted_seconds = 0.003;
    constexpr std::int64_t few = 100'000;
    const auto repeats = static_cast<std::int64_t>(std::max(1.0, wanted_seconds / once(0, few, mode, false)) *
                                                   static_cast<double>(few));
    const double operations = 2 * detail::probe_chains * vector_bytes / element_bytes * threads;
    return operations * static_cast<double>(repeats) / best(0, repeats, mode, false);
  };
  measured.f32_rate = rate(detail::probe_f32, 4);
  measured.f64_rate = rate(detail::probe_f64, 8);
  return measured;
}

} // namespace mtmc
