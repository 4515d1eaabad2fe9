#pragma once
/// Kernels in CUDA C++ on an NVIDIA GPU, through the driver's own interface.
///
/// A candidate is device code and a launch plan; it never runs host code. It does share the GPU context of
/// this process, so a kernel that crashes or never ends costs the process: judge kernels of unknown origin in
/// a worker (`CudaEvaluator` does).

#include <mtmc/backend/cuda/cache_sweep.hpp>
#include <mtmc/backend/cuda/compiler_service.hpp>
#include <mtmc/backend/cuda/context.hpp>
#include <mtmc/backend/cuda/cuda_buffer.hpp>
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/backend/cuda/cuda_launcher.hpp>
#include <mtmc/backend/cuda/cuda_program.hpp>
#include <mtmc/backend/cuda/management.hpp>
#include <mtmc/backend/cuda/options.hpp>
#include <mtmc/backend/cuda/profiler.hpp>
#include <mtmc/backend/cuda/residue.hpp>
#include <mtmc/backend/quiet_gate.hpp>
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

/// An NVIDIA GPU as a `Backend`. `compile` may be called from several threads, `run` and `time` one at a
/// time. Once a kernel has crashed or run past its deadline, the process can use the device no more: `spent`
/// says so, and everything throws `Error` (`mtmc.backend.004`).
class CudaBackend {
public:
  using Program = CudaProgram; ///< what `compile` answers
  using Buffer = CudaBuffer;   ///< what `allocate` answers

  /// How a worker is asked for it.
  static constexpr std::string_view name = "cuda";
  /// The judge's own kernel runs here (evaluator/content/device_kernel.hpp).
  static constexpr bool runs_judge_kernels = true;
  /// Its options have `device_lock_folder`, which a worker fills in.
  static constexpr bool takes_device_lock_folder = true;
  /// And `temporary_folder`.
  static constexpr bool takes_temporary_folder = true;
  /// And `expendable_process`.
  static constexpr bool takes_expendable_process = true;
  /// What a program with this backend can be started as, to compile: `CudaBackendOptions::compiler_command`.
  [[nodiscard]] static ProgramRole role() { return detail::cuda_compiler_role(); }
  /// From the JSON form of its options (backend/cuda/options_json.hpp). Throws `Error` (`mtmc.json.001`)
  /// where that is malformed, and what the constructor throws.
  [[nodiscard]] static CudaBackend from_json(const nlohmann::json& options);

  /// Opens driver, device and compiler. Throws `Error` (`mtmc.backend.004`, `.001`) where one is missing,
  /// with what was tried.
  explicit CudaBackend(CudaBackendOptions options = {})
      : state_(std::make_unique<State>(std::move(options))) {}

  /// The GPU. `measured` is filled in by `measure_ceilings`; a reference taken before keeps the old answer.
  [[nodiscard]] const Device& device() const noexcept { return *state_->shown.load(); }
  /// What results depend on besides kernel and task, for cache keys.
  [[nodiscard]] std::string identity() const;
  /// Whether a kernel has cost this process its context, so that it must be replaced.
  [[nodiscard]] bool spent() const { return state_->context->lost(); }

  /// What of a kernel's text is not allowed; none if all is well. What only the binary shows is found by
  /// `compile`.
  [[nodiscard]] std::vector<Diagnostic> screen(const Kernel& kernel) const;

  /// The kernel with every `float` made a `double` (backend/double_precision.hpp), or nothing.
  [[nodiscard]] std::optional<Kernel> in_double_precision(const Kernel& kernel) const;

  /// Compiles a kernel for the launches of `options.plan`, straight to machine code of this device.
  [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                               std::stop_token stop);

  /// Compiles a kernel with probes (`ShowsBranches`), for a debugger. The driver makes machine code of it.
  [[nodiscard]] CompileResult<Program> compile_probed(const Kernel& kernel, const CompileOptions& options,
                                                      std::stop_token stop);
  /// Which ways the branches of such a program have gone.
  [[nodiscard]] static std::vector<Branch> branches(Program& program) { return program.branches(); }

  /// Loads what was compiled elsewhere for this device and has passed the screens there; `plan` is one that
  /// will be run. Nothing, with the reason, where the driver hides a variable. Throws `Error`
  /// (`mtmc.backend.002`) where there is no memory for it.
  [[nodiscard]] CompileResult<Program> load_compiled(detail::CudaCompilation compilation,
                                                     const LaunchPlan& plan) const;

  /// Memory of the device. Throws `Error` (`mtmc.backend.002`) where it could not be allocated.
  [[nodiscard]] Buffer allocate(std::size_t bytes) { return {state_->context, bytes}; }
  /// Memory with nothing beside it, where the device maps it and this process may be lost to a fault.
  [[nodiscard]] GuardedAllocation guarded_allocation() const { return state_->guarded; }
  /// Such memory; `bytes` is a multiple of `guarded_allocation().granularity`. Throws `Error`
  /// (`mtmc.backend.002`) where there is none left.
  [[nodiscard]] Buffer allocate_guarded(std::size_t bytes) {
    return Buffer(std::make_unique<detail::CudaMapping>(state_->context, bytes));
  }
  /// Throws std::out_of_range if the content does not fit.
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content);
  /// Throws std::out_of_range if there is less.
  void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target);
  /// Writes `bytes` times the same byte.
  void fill(Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value);
  /// The first variable of a program that is not what it was when the program was loaded; empty if all are.
  [[nodiscard]] std::string changed_state(Program& program);
  /// Has the program's next run or timed group begin, before the clock starts, with random bytes in all
  /// shared memory and in as much local memory as its threads have. One launch, two where it uses local
  /// memory; frames of which there would be too many for the device's memory stay as they are.
  void overwrite_residue(Program& program);
  /// SHA-256 of the CUBIN that the driver loaded for a program.
  [[nodiscard]] static std::string binary_hash(const Program& program) { return program.binary_hash(); }
  /// That CUBIN, for a launcher that loads what was judged (`LauncherEvidence::binary`).
  [[nodiscard]] static ProgramBinary binary(const Program& program) { return program.binary(); }

  /// Launches a plan and waits. Throws `Error` (`mtmc.backend.002`) if a buffer is not bound.
  [[nodiscard]] RunStatus run(Program& program, const LaunchPlan& plan, Deadline deadline);

  /// Launches all plans of a group back to back. Measures by the device's own clock, from the first launch's
  /// start to the last one's end, with the stream held until all are queued, so that no gap between launches
  /// is the host's. With `cold` the second-level cache holds none of the buffers when the clock starts, and
  /// nothing that must be written back.
  [[nodiscard]] TimedRun time(Program& program, std::span<const LaunchPlan> group, bool cold,
                              Deadline deadline);

  /// Where the time of a plan goes whose buffers are bound: by counters where Nsight Compute is there and may
  /// read them, else by the compiler's report, with the reason. Runs the plan on copies, in another process,
  /// in some seconds.
  [[nodiscard]] Profile profile(Program& program, const LaunchPlan& plan,
                                const CudaProfilerOptions& profiler = {});

  /// Clocks, heat and power of the device, and how often it was slowed down for them; empty where NVIDIA's
  /// management library does not know it.
  [[nodiscard]] Conditions conditions() { return state_->watch.conditions(); }

  /// What all multiprocessors together reach, measured when first asked for (in less than 0.3 s) and shown by
  /// `device()` from then on. Throws `Error` (`mtmc.backend.002`) where a host leaves no memory for it.
  MeasuredCeilings measure_ceilings();
  /// The read bandwidth of the memory as it is at this moment, in bytes per second. Throws as
  /// `measure_ceilings`.
  [[nodiscard]] double measure_read_bandwidth();

private:
  struct State {
    explicit State(CudaBackendOptions given);
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State();

    CudaBackendOptions options;
    std::shared_ptr<detail::CudaContext> context;
    Device device;
    detail::CudaCompiler compiler;
    detail::QuietGate gate;
    detail::CudaConditionsWatch watch;
    detail::CudaLauncher launcher;
    GuardedAllocation guarded;
    detail::CudaHandle start = nullptr;
    detail::CudaHandle stop = nullptr;
    /// Holds the stream while it is 0; null where the driver cannot.
    volatile std::uint32_t* flag = nullptr;
    detail::CudaAddress flag_address = 0;
    /// Decides whether one launch more comes before a timed group.
    PhiloxEngine coin{random_key_from_os()};
    /// Made when a cache is first emptied.
    std::unique_ptr<detail::CudaCacheSweep<CudaBackend>> sweep;
    /// Made when residue is first overwritten.
    std::unique_ptr<detail::CudaResidue<CudaBackend>> residue;
    /// What ceilings are measured with, and the device with them.
    std::mutex measuring;
    std::shared_ptr<Program> probe;
    Device measured;
    std::atomic<const Device*> shown = &device;
  };

  /// What a group of launches is to meet.
  struct Manner {
    bool cold = false;
    bool hold = false;
  };
  /// A hold on the gate. Throws `Error` (`mtmc.backend.005`) if the lock across processes could not be taken.
  template <class Take> [[nodiscard]] static detail::QuietGate::Hold quietly(const Take& take) {
    return detail::hold_gate("CudaBackendOptions::device_lock_folder", take);
  }

  [[nodiscard]] Deadline deadline_of(const CompileOptions& options) const;
  /// What came of a compilation, with the program in the context.
  [[nodiscard]] CompileResult<Program> load(detail::CudaCompilation compilation) const;
  /// Refuses a program of which the driver hides a variable; else notes its resources for a plan.
  void look_at(CompileResult<Program>& result, const LaunchPlan& plan) const;

  static void check_part(const Buffer& buffer, std::size_t offset, std::size_t bytes);

  [[nodiscard]] TimedRun execute(Program& program, std::span<const LaunchPlan> group, const Manner& manner,
                                 Deadline deadline);

  [[nodiscard]] static TimedRun failed(std::string reason);

  /// Waits for all that is queued. `code`: what queueing it gave.
  [[nodiscard]] RunStatus wait(const detail::CudaTurn& turn, Deadline deadline, detail::CudaCode code);

  /// Queues the launches that overwrite what others left.
  void queue_noise(const detail::CudaTurn& turn, Program& program);

  /// Queues one launch that reads more than the second-level cache holds, or nothing.
  void sweep(const detail::CudaTurn& turn, bool whole);

  std::unique_ptr<State> state_;
};

static_assert(check_backend<CudaBackend>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/cuda/cuda_backend_inl.hpp>
#endif
