#pragma once
/// A compiled kernel, and the calls its runner makes.

#include <mtmc/backend/cpu/runner.hpp>
#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/backend/cpu/trampolines.hpp>
#include <mtmc/core/branch.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A shared object on disk, removed with this object.
struct CompiledObject {
  TemporaryFolder folder;
  /// In the order of the plan's launches; the position is the trampoline's number.
  std::vector<LaunchSignature> signatures;
  /// SHA-256 of the file's content as the compiler left it, in hexadecimal digits.
  std::string hash;
  /// Of a program with probes: in the order of their stores. Its last trampoline hands out what these have
  /// left.
  std::vector<Branch> branches{};

  [[nodiscard]] std::size_t trampolines() const noexcept {
    return signatures.size() + (branches.empty() ? 0 : 1);
  }
  [[nodiscard]] std::string path() const { return folder.path() + "/program.so"; }
};

/// A group of plans as a runner is told of it.
struct BoundGroup {
  std::vector<RunnerLaunch> launches;
  /// For messages about the launch of the same position.
  std::vector<const Launch*> sources;
  std::map<std::uint64_t, std::shared_ptr<const SharedMemory>> buffers;
  /// What the launches read or write.
  std::vector<std::span<std::byte>> ranges;
};

[[nodiscard]] RunStatus launch_failed(std::string message);

/// The place a buffer argument is bound to. Throws `Error` (`mtmc.backend.002`) if that is none of a live
/// buffer.
void bind_buffer(const LaunchArgument& argument, const BufferRegistry& registry, BoundGroup& group,
                 RunnerArgument& bound);

/// Translates plans for a program of those signatures. Gives the reason if they do not belong together.
[[nodiscard]] std::optional<std::string> bind_plans(std::span<const LaunchPlan> plans,
                                                    const std::vector<LaunchSignature>& signatures,
                                                    const BufferRegistry& registry, BoundGroup& group);

/// The same bytes without overlaps, in order of address.
[[nodiscard]] std::vector<std::span<std::byte>> merged(std::vector<std::span<std::byte>> ranges);

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

/// A compiled kernel. A runner process of its own, started with the first run, loads it; every run and every
/// timed group is made by a fresh fork of that process, so that no state outlives it. The runner is given up
/// when a run ends `timed_out` or `faulted`; should the program be run again, a fresh one is started. May be
/// used from several threads, one call at a time goes through.
class CpuProgram {
public:
  /// Made by `CpuBackend::compile`. `backend` is kept as long as the program.
  CpuProgram(std::shared_ptr<const detail::CompiledObject> object, std::shared_ptr<const void> backend)
      : backend_(std::move(backend)), object_(std::move(object)) {}

  /// SHA-256 of the shared object that runners load, in 64 lower-case hexadecimal digits.
  [[nodiscard]] const std::string& binary_hash() const noexcept { return object_->hash; }

  /// Of a program that was compiled with probes: its branches, and which ways they have gone in calls that
  /// ended well. Else empty.
  [[nodiscard]] std::vector<Branch> branches();

  /// Ends the runner, if there is one. The next run starts a fresh one, with nothing left of earlier runs.
  void retire();

private:
  friend class CpuBackend;

  // Processor time of the present runner; 0 without one. To be called with the mutex held.
  [[nodiscard]] std::optional<double> runner_seconds() const noexcept;

  /// Puts right what others changed about the runner since it stopped, or gives it up where that is not
  /// possible.
  void restore_settings();

  /// Throws `Error` (`mtmc.backend.003`) if the object on disk is no longer what the compiler left there.
  void check_object() const;

  // Starts a runner and has it load the program.
  [[nodiscard]] RunStatus start(const detail::RunnerSetup& setup, Deadline deadline);

  // Gets a caller ready for `group`, on that processor if it has no threads; negative = on any.
  [[nodiscard]] RunStatus prepare(const detail::BoundGroup& group, int processor, Deadline deadline);

  /// What the answer of a program means that did not take a value.
  [[nodiscard]] static RunStatus misfit(const detail::BoundGroup& group, const detail::RunnerReply& prepared);

  [[nodiscard]] RunStatus go(const detail::BoundGroup& group, Deadline deadline, double& seconds);

  [[nodiscard]] RunStatus give_up(RunStatus status);

  /// Has the probes' stores handed out behind the calls of a group.
  void add_branches(detail::BoundGroup& group) const;

  // Keeps the backend's folder and settings alive; the object lies in that folder.
  std::shared_ptr<const void> backend_;
  std::shared_ptr<const detail::CompiledObject> object_;
  std::mutex mutex_;
  std::unique_ptr<detail::Runner> runner_;
  /// Whether a caller is used again for the calls that it was made for.
  bool keeps_state_ = false;
  std::vector<detail::RunnerLaunch> prepared_;
  /// Two bytes for each branch; nothing without probes.
  std::optional<CpuBuffer> ways_{};
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/cpu/cpu_program_inl.hpp>
#endif
