#pragma once
/// Kernels in C++ on the processor of this machine.
///
/// The candidate's code never enters this process. It is compiled to a shared object, and a small runner
/// process of its own loads and calls it; that process has the argument buffers, which both share, and
/// nothing else: no keys, references, verdicts or clocks, no files to write to, no output anybody reads.

#include <mtmc/backend/cpu/cache_eviction.hpp>
#include <mtmc/backend/cpu/compilation_cache.hpp>
#include <mtmc/backend/cpu/conditions.hpp>
#include <mtmc/backend/cpu/cpu_program.hpp>
#include <mtmc/backend/cpu/cpu_toolchain.hpp>
#include <mtmc/backend/cpu/device.hpp>
#include <mtmc/backend/cpu/memory_reserve.hpp>
#include <mtmc/backend/cpu/options.hpp>
#include <mtmc/backend/cpu/options_json.hpp>
#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/backend/quiet_gate.hpp>
#include <mtmc/core/branch.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/support/device_lock.hpp>

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

/// The processor of this machine as a `Backend`.
///
/// All members may be called from several threads. `time` waits until no compilation or run of this backend
/// is under way and keeps others waiting meanwhile, so that they do not disturb each other. The deadline of a
/// run is for the kernel's calls alone: waiting, starting a runner and mapping buffers (10 s at most) are
/// added to it. Programs and buffers may outlive the backend. A host that handles SIGCHLD should do so with
/// SA_NOCLDSTOP, because runners are stopped and continued with every call.
class CpuBackend {
public:
  using Program = CpuProgram; ///< what `compile` answers
  using Buffer = CpuBuffer;   ///< what `allocate` answers

  /// A program lives in a process of its own, in which nothing but its own buffers is mapped.
  static constexpr bool isolates_programs = true;

  /// How a worker is asked for it.
  static constexpr std::string_view name = "cpu";
  /// Its options have `temporary_folder` and `device_lock_folder`, which a worker fills in.
  static constexpr bool takes_temporary_folder = true;
  /// A worker fills in `device_lock_folder`.
  static constexpr bool takes_device_lock_folder = true;
  /// From the JSON form of its options (backend/cpu/options_json.hpp). Throws `Error` (`mtmc.json.001`) where
  /// that is malformed, and what the constructor throws.
  [[nodiscard]] static CpuBackend from_json(const nlohmann::json& options);

  /// Finds compiler and processor; compiles nothing yet. Throws `Error` (`mtmc.backend.001`, `.003`) if there
  /// is no usable compiler or the private folder cannot be made.
  explicit CpuBackend(CpuBackendOptions options = {}) : state_(std::make_shared<State>(std::move(options))) {}

  /// The processor. `measured` is filled in by `measure_ceilings`; a reference taken before keeps the old
  /// answer.
  [[nodiscard]] const Device& device() const noexcept { return *state_->device.load(); }

  /// What results depend on besides kernel and task, for cache keys: processor, compiler, flags, threads.
  [[nodiscard]] std::string identity() const { return state_->identity; }

  /// What of a kernel's text is not allowed, before it is preprocessed; none if all is well. What its macros
  /// hide, and what only the compiled object shows, is found by `compile`.
  [[nodiscard]] std::vector<Diagnostic> screen(const Kernel& kernel) const;

  /// The kernel with every `float` made a `double` (backend/double_precision.hpp), or nothing.
  [[nodiscard]] std::optional<Kernel> in_double_precision(const Kernel& kernel) const;
  /// The kernel with a way out behind each outermost loop (`DividesKernels`).
  [[nodiscard]] std::optional<DividedKernel> divided(const Kernel& kernel) const;

  /// Compiles a kernel for the launches of `options.plan`. The same text with the same launches gives the
  /// same program as long as somebody holds it, and is not compiled again while it is among the last
  /// `CpuBackendOptions::cached_programs`. A stop request counts as `timed_out`. Throws `Error`
  /// (`mtmc.backend.001`) if the compiler fails for correct programs too.
  [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                               std::stop_token stop);

  /// Compiles a kernel with probes (`ShowsBranches`), always anew. On x86-64; elsewhere there is no program.
  [[nodiscard]] CompileResult<Program> compile_probed(const Kernel& kernel, const CompileOptions& options,
                                                      std::stop_token stop);
  /// Which ways the branches of such a program have gone.
  [[nodiscard]] static std::vector<Branch> branches(Program& program) { return program.branches(); }

  /// SHA-256 of the shared object that a program's runners load. A file with other bytes is not loaded: the
  /// next run that starts a runner throws `Error` (`mtmc.backend.003`).
  [[nodiscard]] static std::string binary_hash(const Program& program) { return program.binary_hash(); }

  /// Around each buffer a runner has a page of this many bytes that nothing can touch.
  [[nodiscard]] std::size_t guard_page_bytes() const;

  /// Memory to bind to arguments, page-aligned and all present. Throws `Error` (`mtmc.backend.002`) where it
  /// is not available.
  [[nodiscard]] Buffer allocate(std::size_t bytes);
  /// Copies `content` into a buffer; it appears there right before the next run. Throws std::out_of_range if
  /// it does not fit.
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content);
  /// The same without a copy before that run: until then `owner` keeps `content`, which nobody may change.
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
              std::shared_ptr<const void> owner);
  /// Uploads `bytes` times the same byte.
  void fill(Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value);
  /// A part of a buffer as the last run left it, which nothing changes before the next one: programs are
  /// stopped meanwhile. Nothing without the defence that stops them. Throws std::out_of_range if there is
  /// less.
  [[nodiscard]] std::span<const std::byte> view(Buffer& buffer, std::size_t offset, std::size_t bytes);
  /// Copies from a buffer into `target`. Throws std::out_of_range if there is less.
  void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target);

  /// Calls the launches of a plan, in order, and waits. The program's process runs only meanwhile. Throws
  /// `Error` with `mtmc.backend.002` if a buffer of the plan is not bound, with `mtmc.backend.003` if no
  /// process can be started.
  [[nodiscard]] RunStatus run(Program& program, const LaunchPlan& plan, Deadline deadline);

  /// Runs of a program take place in one process each; from `keep` on those of one plan in the same, until it
  /// is taken back.
  void keep_state(Program& program, bool keep);

  /// Calls the launches of all plans of a group, back to back, and measures the seconds from just before the
  /// runner learns of it until its answer is there, `call_overhead` included. With `cold` the bound parts of
  /// all buffers are in no cache when the clock starts, and none of them is waiting to be written back. Page
  /// faults of buffers are not timed: all their pages are present in the runner.
  [[nodiscard]] TimedRun time(Program& program, std::span<const LaunchPlan> group, bool cold,
                              Deadline deadline);

  /// What timed groups met so far on the processors that this process may use. Others are all but the runner
  /// and the thread that called `time`: threads of this process, too.
  [[nodiscard]] Conditions conditions() { return state_->watch.conditions(); }

  /// From now on kernels without threads are timed on the processor that this thread runs on. The system
  /// keeps each process where it was, so of two that take turns one may be on a busy processor for as long as
  /// they are compared.
  void choose_place() { state_->place = ::sched_getcpu(); }

  /// Seconds that `time` reports for a kernel that does nothing (median of 101 calls), measured when first
  /// asked for. It is part of every reported time and never subtracted.
  [[nodiscard]] double call_overhead();

  /// What all threads together reach on this very machine, measured when first asked for (in about 0.15 s and
  /// the compilation of a small program) and shown by `device()` from then on. Each figure is the best of
  /// several tries.
  MeasuredCeilings measure_ceilings();

private:
  /// Under which the environment record says what keeps the compiler from files (`CpuToolchain`).
  static constexpr const char* confinement_key = "compiler_files";

  struct State {
    explicit State(CpuBackendOptions given);

    CpuBackendOptions options;
    detail::CpuToolchain toolchain;
    Device discovered;
    detail::CompilationCache cache;
    detail::CacheEvictor evictor;
    detail::RunnerSetup runner;
    std::string identity;
    std::shared_ptr<detail::BufferRegistry> registry = std::make_shared<detail::BufferRegistry>();
    std::shared_ptr<detail::MemoryReserve> reserve =
        std::make_shared<detail::MemoryReserve>(options.defences.sandbox ? options.reserved_bytes : 0);
    detail::QuietGate gate;
    detail::ConditionsWatch watch;
    std::mutex isolation_lock;
    /// Of the runner that was started last; they are all alike.
    std::string isolation;
    std::mutex measuring;
    std::optional<double> overhead;
    /// The processor of timed kernels without threads.
    std::atomic<int> place = -1;
    std::once_flag unfenced_once;
    Device unfenced;
    Device measured;
    std::atomic<const Device*> device = &discovered;
  };

  /// Where the content of buffers is when a call begins: in the caches as far as there is room, elsewhere as
  /// far as that is cheap, or nowhere in them.
  enum class Memory { cached, uncached, evicted };

  static constexpr int anywhere = -1;
  // For starting a runner, mapping buffers, and forking a caller.
  static constexpr std::chrono::seconds preparation_patience{10};

  /// A hold on the gate. Throws `Error` (`mtmc.backend.005`) if the lock across processes could not be taken.
  template <class Take> [[nodiscard]] static detail::QuietGate::Hold quietly(const Take& take) {
    return detail::hold_gate("CpuBackendOptions::device_lock_folder", take);
  }

  static void check_part(const Buffer& buffer, std::size_t offset, std::size_t bytes);

  void compile_valid(const Kernel& kernel, const CompileOptions& options, const std::stop_token& stop,
                     CompileResult<Program>& result);

  /// The deadline and the memory of a compilation.
  [[nodiscard]] std::pair<Deadline, std::int64_t> limits_of(const CompileOptions& options) const;

  /// Has the device say so if the compiler turned out not to work behind its fence.
  void show_confinement();

  [[nodiscard]] RunStatus execute(Program& program, std::span<const LaunchPlan> plans, Memory memory,
                                  int processor, Deadline deadline, double& seconds);

  /// Compiles a kernel of this library's own, which must succeed.
  [[nodiscard]] std::shared_ptr<Program> compile_own(std::string_view text, const LaunchPlan& plan);

  /// Seconds of one call of a kernel of this library's own, which must succeed.
  [[nodiscard]] double time_own(Program& program, const LaunchPlan& plan, bool cold);

  [[nodiscard]] MeasuredCeilings probe_ceilings();

  std::shared_ptr<State> state_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/cpu/cpu_backend_inl.hpp>
#endif
