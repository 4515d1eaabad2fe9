#pragma once
/// Definitions of backend/cuda/cuda_backend.hpp.

#include <mtmc/backend/cuda/cache_sweep.hpp>
#include <mtmc/backend/cuda/ceilings_probe.hpp>
#include <mtmc/backend/cuda/compiler_service.hpp>
#include <mtmc/backend/cuda/context.hpp>
#include <mtmc/backend/cuda/cubin_screen.hpp>
#include <mtmc/backend/cuda/cuda_backend.hpp>
#include <mtmc/backend/cuda/cuda_buffer.hpp>
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/backend/cuda/cuda_device.hpp>
#include <mtmc/backend/cuda/cuda_launcher.hpp>
#include <mtmc/backend/cuda/cuda_program.hpp>
#include <mtmc/backend/cuda/management.hpp>
#include <mtmc/backend/cuda/options.hpp>
#include <mtmc/backend/cuda/options_json.hpp>
#include <mtmc/backend/cuda/profiler.hpp>
#include <mtmc/backend/cuda/residue.hpp>
#include <mtmc/backend/cuda/text_rules.hpp>
#include <mtmc/backend/double_precision.hpp>
#include <mtmc/backend/quiet_gate.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/support/os_random.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE CudaBackend CudaBackend::from_json(const nlohmann::json& options) {
  CudaBackendOptions read;
  detail::read_value(options, read, "backend_options");
  return CudaBackend{std::move(read)};
}

MTMC_INLINE std::string CudaBackend::identity() const {
  return "cuda: " + state_->device.name + "; " + state_->device.software.at("driver") + "; " +
         state_->compiler.version() + ' ' + state_->compiler.flags() +
         (state_->compiler.is_apart() ? "" : "; compiled without limits") +
         (state_->guarded.granularity > 0 ? "" : "; without guarded allocations");
}

MTMC_INLINE std::vector<Diagnostic> CudaBackend::screen(const Kernel& kernel) const {
  return detail::DirectiveScreen(detail::cuda_text_rules).screen(normalize_text(kernel.source));
}

MTMC_INLINE std::optional<Kernel> CudaBackend::in_double_precision(const Kernel& kernel) const {
  return detail::in_double_precision(kernel);
}

MTMC_INLINE CompileResult<CudaBackend::Program>
CudaBackend::compile(const Kernel& kernel, const CompileOptions& options, std::stop_token stop) {
  const auto begin = std::chrono::steady_clock::now();
  state_->context->demand_alive();
  auto result = load(state_->compiler.compile(kernel, options.plan, deadline_of(options), std::move(stop),
                                              options.memory_limit));
  look_at(result, options.plan);
  result.seconds = seconds_since(begin);
  return result;
}

MTMC_INLINE CompileResult<CudaBackend::Program>
CudaBackend::load_compiled(detail::CudaCompilation compilation, const LaunchPlan& plan) const {
  const auto begin = std::chrono::steady_clock::now();
  state_->context->demand_alive();
  auto result = load(std::move(compilation));
  look_at(result, plan);
  result.seconds = seconds_since(begin);
  return result;
}

MTMC_INLINE void CudaBackend::look_at(CompileResult<Program>& result, const LaunchPlan& plan) const {
  if (!result.program) return;
  if (!result.program->hidden_variables_.empty()) {
    result.diagnostics = {detail::hidden_variable(result.program->hidden_variables_.front())};
    result.refused = true;
    result.program.reset();
    return;
  }
  result.program->note_occupancy(state_->device.arch, plan);
  result.resources = result.program->resources();
}

MTMC_INLINE CompileResult<CudaBackend::Program>
CudaBackend::compile_probed(const Kernel& kernel, const CompileOptions& options, std::stop_token stop) {
  const auto begin = std::chrono::steady_clock::now();
  state_->context->demand_alive();
  auto result = load(state_->compiler.compile_probed(kernel, options.plan, deadline_of(options),
                                                     std::move(stop), options.memory_limit));
  result.seconds = seconds_since(begin);
  return result;
}

MTMC_INLINE Deadline CudaBackend::deadline_of(const CompileOptions& options) const {
  return options.deadline == Deadline::max()
             ? std::chrono::steady_clock::now() + state_->options.compile_timeout
             : options.deadline;
}

MTMC_INLINE CompileResult<CudaBackend::Program> CudaBackend::load(detail::CudaCompilation compilation) const {
  CompileResult<Program> result;
  result.timed_out = compilation.timed_out;
  result.refused = compilation.refused;
  result.diagnostics = compilation.diagnostics;
  if (!compilation.cubin.empty())
    result.program = std::make_shared<Program>(state_->context, std::move(compilation));
  return result;
}

MTMC_INLINE void CudaBackend::upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
  check_part(buffer, offset, content.size());
  if (content.empty()) return;
  const detail::CudaTurn turn(*state_->context);
  turn.demand(turn.driver.copy_in(buffer.handle() + offset, content.data(), content.size(), turn.stream),
              "cuMemcpyHtoDAsync");
}

MTMC_INLINE void CudaBackend::download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
  check_part(buffer, offset, target.size());
  if (target.empty()) return;
  const detail::CudaTurn turn(*state_->context);
  turn.demand(turn.driver.copy_out(target.data(), buffer.handle() + offset, target.size(), turn.stream),
              "cuMemcpyDtoHAsync");
  turn.demand(turn.driver.stream_synchronize(turn.stream), "cuStreamSynchronize");
}

MTMC_INLINE void CudaBackend::fill(Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value) {
  check_part(buffer, offset, bytes);
  if (bytes == 0) return;
  const detail::CudaTurn turn(*state_->context);
  turn.demand(turn.driver.fill_bytes(buffer.handle() + offset, std::to_integer<unsigned char>(value), bytes,
                                     turn.stream),
              "cuMemsetD8Async");
}

MTMC_INLINE std::string CudaBackend::changed_state(Program& program) { return program.changed_variable(); }

MTMC_INLINE void CudaBackend::overwrite_residue(Program& program) {
  // What takes long, before anybody waits for a deadline.
  if (!state_->residue)
    state_->residue = std::make_unique<detail::CudaResidue<CudaBackend>>(
        *this, state_->context->attribute(detail::DeviceAttribute::shared_bytes_of_a_block),
        state_->context->attribute(detail::DeviceAttribute::threads_of_a_unit));
  state_->residue->prepare(*this, program.local_bytes());
  program.overwrites_residue_ = true;
}

MTMC_INLINE RunStatus CudaBackend::run(Program& program, const LaunchPlan& plan, Deadline deadline) {
  const auto begin = std::chrono::steady_clock::now();
  const auto hold = quietly([&] { return state_->gate.work(); });
  return execute(program, {&plan, 1}, {}, detail::put_off(deadline, begin)).status;
}

MTMC_INLINE TimedRun CudaBackend::time(Program& program, std::span<const LaunchPlan> group, bool cold,
                                       Deadline deadline) {
  const auto begin = std::chrono::steady_clock::now();
  const auto hold = quietly([&] { return state_->gate.time(); });
  return execute(program, group, {.cold = cold, .hold = true}, detail::put_off(deadline, begin));
}

MTMC_INLINE Profile CudaBackend::profile(Program& program, const LaunchPlan& plan,
                                         const CudaProfilerOptions& profiler) {
  const auto hold = quietly([&] { return state_->gate.time(); });
  const auto read = [&](std::uint64_t address, std::span<std::byte> target) {
    const detail::CudaTurn turn(*state_->context);
    turn.demand(turn.driver.copy_out(target.data(), address, target.size(), turn.stream),
                "cuMemcpyDtoHAsync");
    turn.demand(turn.driver.stream_synchronize(turn.stream), "cuStreamSynchronize");
  };
  return detail::profile_cuda(profiler, state_->options, state_->compiler.toolkit(), program.compilation_,
                              plan, device(), read);
}

MTMC_INLINE MeasuredCeilings CudaBackend::measure_ceilings() {
  const std::scoped_lock lock(state_->measuring);
  if (state_->shown.load() != &state_->measured) {
    state_->measured = state_->device;
    state_->measured.measured = detail::CudaCeilingsProbe(*this, state_->probe).measure();
    state_->shown.store(&state_->measured);
  }
  return state_->measured.measured;
}

MTMC_INLINE double CudaBackend::measure_read_bandwidth() {
  const std::scoped_lock lock(state_->measuring);
  return detail::CudaCeilingsProbe(*this, state_->probe).measure_read_bandwidth();
}

MTMC_INLINE CudaBackend::State::State(CudaBackendOptions given)
    : options(std::move(given)),
      context(std::make_shared<detail::CudaContext>(options.driver_library, options.device)),
      device(detail::read_cuda_device(*context)), compiler(options, device.arch, context->driver().version()),
      gate(DeviceLock{options.device_lock_folder, context->uuid()}), watch(context->uuid()),
      launcher(*context), guarded(detail::guarded_allocation_in(context, options.expendable_process)) {
  device.software["compiler"] = compiler.version();
  device.software[environment_key::compile_command] = compiler.command();
  device.software["compiler_files"] = compiler.confinement();
  device.features = {"cuda"};
  device.headers = compiler.headers();
  if (launcher.launches_clusters())
    device.features.emplace_back("clusters in launch lines: <<<..., cluster(x, y, z)>>>");
  if (launcher.reads_tensor_maps()) device.features.emplace_back("tensor_map(...) arguments");
  const detail::CudaContext::Use use(*context);
  const auto& driver = context->driver();
  for (auto* event : {&start, &stop}) driver.demand(driver.event_create(event, 0), "cuEventCreate");
  if (driver.stream_wait != nullptr) {
    constexpr unsigned mapped = 2;
    void* memory = nullptr;
    driver.demand(driver.host_allocate(&memory, sizeof(std::uint32_t), mapped), "cuMemHostAlloc");
    flag = static_cast<volatile std::uint32_t*>(memory);
    driver.demand(driver.host_address(&flag_address, memory, 0), "cuMemHostGetDevicePointer");
  }
}

MTMC_INLINE CudaBackend::State::~State() {
  if (context->lost()) return;
  try {
    const detail::CudaContext::Use use(*context);
    const auto& driver = context->driver();
    for (auto* event : {start, stop}) (void)driver.event_destroy(event);
    if (flag != nullptr) (void)driver.host_free(const_cast<std::uint32_t*>(flag));
  } catch (const Error&) {
    context->lose("the backend could not be closed");
  }
}

MTMC_INLINE void CudaBackend::check_part(const Buffer& buffer, std::size_t offset, std::size_t bytes) {
  if (offset > buffer.bytes() || bytes > buffer.bytes() - offset)
    throw std::out_of_range("bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                            " of a CudaBuffer of " + std::to_string(buffer.bytes()) + " bytes");
}

MTMC_INLINE TimedRun CudaBackend::execute(Program& program, std::span<const LaunchPlan> group,
                                          const Manner& manner, Deadline deadline) {
  const detail::CudaTurn turn(*state_->context);
  std::vector<detail::ReadyLaunch> launches;
  for (const auto& plan : group) {
    std::size_t place = 0;
    for (const auto& launch : plan.launches) {
      place = detail::place_of_call(launch, program.compilation_.signatures, place);
      if (place == program.compilation_.signatures.size())
        return failed("the launch in line " + std::to_string(launch.line) +
                      ": it has other arguments than the program was compiled for");
      if (auto reason = state_->launcher.prepare(turn, program, launch, place++, launches.emplace_back()))
        return failed("the launch in line " + std::to_string(launch.line) + ": " + *reason);
    }
  }
  if (std::exchange(program.overwrites_residue_, false)) queue_noise(turn, program);
  if (manner.cold) sweep(turn, true);
  // On an H100 every other submission takes 1 us longer. As many of them lie between two groups of a pair
  // as between any others, so one side of a comparison would always meet it.
  if (manner.hold && (state_->coin() & 1) != 0) sweep(turn, false);
  // A stream takes some thousand launches; whoever queues more waits for those before, which are held.
  constexpr std::size_t max_held = 512;
  // So does the driver, for ever, when a function's first launch needs more local memory than any before.
  const bool known =
      std::all_of(launches.begin(), launches.end(), [](const auto& ready) { return *ready.launched; });
  const bool held = manner.hold && state_->flag != nullptr && launches.size() <= max_held && known;
  if (held) {
    *state_->flag = 0;
    constexpr unsigned at_least = 0;
    turn.demand(turn.driver.stream_wait(turn.stream, state_->flag_address, 1, at_least),
                "cuStreamWaitValue32");
  }
  turn.demand(turn.driver.event_record(state_->start, turn.stream), "cuEventRecord");
  detail::CudaCode code = detail::cuda_code::success;
  for (const auto& ready : launches) {
    // What the driver would wait for inside of the launch has a deadline out here.
    if (!*ready.launched && &ready != &launches.front()) {
      code = turn.driver.event_record(state_->stop, turn.stream);
      if (auto status = wait(turn, deadline, code); !status.finished()) return {std::move(status), 0};
    }
    if (code = detail::CudaLauncher::queue(turn, ready); code != detail::cuda_code::success) break;
    *ready.launched = true;
  }
  const auto recorded = turn.driver.event_record(state_->stop, turn.stream);
  if (held) *state_->flag = 1;
  if (code == detail::cuda_code::success) code = recorded;
  if (auto status = wait(turn, deadline, code); !status.finished()) return {std::move(status), 0};
  float milliseconds = 0;
  turn.demand(turn.driver.event_seconds(&milliseconds, state_->start, state_->stop), "cuEventElapsedTime");
  return {{}, static_cast<double>(milliseconds) * 1e-3};
}

MTMC_INLINE TimedRun CudaBackend::failed(std::string reason) {
  return {{RunOutcome::launch_failed, std::move(reason)}, 0};
}

MTMC_INLINE RunStatus CudaBackend::wait(const detail::CudaTurn& turn, Deadline deadline,
                                        detail::CudaCode code) {
  using namespace detail::cuda_code;
  // A launch that was refused leaves the stream in order; what was queued before it still runs.
  const auto refused = code;
  const auto begin = std::chrono::steady_clock::now();
  constexpr std::chrono::microseconds watched{300};
  constexpr std::chrono::microseconds nap{50};
  for (;;) {
    code = turn.driver.event_query(state_->stop);
    if (code != not_ready) break;
    const auto now = std::chrono::steady_clock::now();
    if (now > deadline) {
      state_->context->lose("a kernel was still running at its deadline");
      return {RunOutcome::timed_out, "the kernel did not end before its deadline"};
    }
    if (now - begin > watched) std::this_thread::sleep_for(nap);
  }
  if (code == success && refused == success) return {};
  if (code == success)
    return {RunOutcome::launch_failed, "the driver refused it with " + turn.driver.describe(refused)};
  const auto words = turn.driver.describe(code);
  state_->context->lose("a kernel ended with " + words);
  const bool fault = code == illegal_address || code == launch_timeout ||
                     (code >= first_kernel_fault && code <= last_kernel_fault);
  return {fault ? RunOutcome::faulted : RunOutcome::device_lost, "the kernel ended with " + words};
}

MTMC_INLINE void CudaBackend::queue_noise(const detail::CudaTurn& turn, Program& program) {
  using Part = detail::CudaResidue<CudaBackend>::Part;
  auto& residue = *state_->residue;
  const auto queue = [&](Part& part) {
    detail::ReadyLaunch ready;
    if (const auto reason = state_->launcher.prepare(turn, *part.program, part.launch, 0, ready))
      throw Error(error_id::backend_device, "what kernels left cannot be overwritten: " + *reason,
                  "Report this");
    const auto code = detail::CudaLauncher::queue(turn, ready);
    if (code == detail::cuda_code::success) residue.queued(part);
    return code;
  };
  const auto key = [&] { return std::uint64_t{state_->coin()} << 32 | state_->coin(); };
  turn.demand(queue(residue.shared(key())), "cuLaunchKernel");
  auto* const local = residue.local(*this, program.local_bytes(), key());
  if (local == nullptr) return;
  // A kernel whose frames of all threads do not fit is launched with fewer of them, or not at all.
  const auto code = queue(*local);
  if (code != detail::cuda_code::out_of_memory && code != detail::cuda_code::out_of_resources)
    turn.demand(code, "cuLaunchKernel");
}

MTMC_INLINE void CudaBackend::sweep(const detail::CudaTurn& turn, bool whole) {
  if (!state_->sweep) state_->sweep = std::make_unique<detail::CudaCacheSweep<CudaBackend>>(*this);
  detail::ReadyLaunch ready;
  if (const auto reason =
          state_->launcher.prepare(turn, state_->sweep->program(), state_->sweep->launch(whole), 0, ready))
    throw Error(error_id::backend_device, "the cache cannot be emptied: " + *reason, "Report this");
  turn.demand(detail::CudaLauncher::queue(turn, ready), "cuLaunchKernel");
}

} // namespace mtmc
