#pragma once
/// What the judge has done on the device: jobs are put in a queue, and one launch does them all.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/evaluator/content/device_kernel.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/poison.hpp>
#include <mtmc/evaluator/content/tolerance.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A queue of jobs for the judge's kernel (`runs_judge_kernels`). Addresses are `Buffer::handle()` and a
/// distance from there. Nothing of a job, whose keys are secret, stays on the device once it is done. Not
/// thread-safe.
class DeviceWork {
public:
  /// Has the kernel compiled while its owner gets ready for other things.
  explicit DeviceWork(AnyBackend& backend);

  /// Writes one byte `bytes` times.
  void write_byte(std::uint64_t address, std::size_t bytes, std::byte value);
  /// Writes what `fill_with_noise` does.
  void write_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key, std::uint64_t stream);
  /// Writes what `fill_with_repeated_noise` does.
  void write_repeated_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key,
                            std::uint64_t stream);
  /// Writes the elements of a recipe, which if they are f32 may be stored as f64.
  void write_values(std::uint64_t address, const ContentRecipe& recipe, DataType stored);
  /// The same in the recipe's own type.
  void write_values(std::uint64_t address, const ContentRecipe& recipe);
  /// Copies bytes and puts the mask of `key` on them, or takes it off. Memory at both ends is 16-byte
  /// aligned.
  void write_masked(std::uint64_t target, std::uint64_t source, std::size_t bytes, std::uint64_t key);

  /// Looks which bytes are not the noise of `write_noise`. This and the following answer the number under
  /// which `found` knows the job after `run`.
  std::size_t look_for_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key,
                             std::uint64_t stream);
  /// Looks which elements are not those of a recipe.
  std::size_t look_for_values(std::uint64_t address, const ContentRecipe& recipe);
  /// Looks which elements have other bits than those kept at `masked` under `key`.
  std::size_t look_for_bits(std::uint64_t address, DataType type, std::int64_t elements, std::uint64_t masked,
                            std::uint64_t key);
  /// Does what `compare_output` does, with the reference kept at `masked` under `key`. Its type may be
  /// another floating-point type than `type`.
  std::size_t compare(std::uint64_t address, DataType type, std::int64_t elements, std::uint64_t masked,
                      DataType masked_type, std::uint64_t key, const Tolerance& tolerance);
  /// Adds up what `output_scale` is made of; of a floating-point type.
  std::size_t add_magnitudes(std::uint64_t address, DataType type, std::int64_t elements);

  /// Does all jobs of the queue, those that write before those that look only if they were queued in a run
  /// before: jobs of one run may happen in any order. Throws `Error` (`mtmc.backend.004`) if the device does
  /// not do them.
  void run();

  /// Takes all jobs out of the queue again. Whoever begins must not find those of one who gave up: their
  /// memory may be gone.
  void forget() noexcept;

  /// What a job of the last run found.
  [[nodiscard]] const detail::DeviceFinding& found(std::size_t number) const { return findings_.at(number); }

private:
  using Kind = detail::DeviceJobKind;

  [[nodiscard]] static detail::DeviceJob at(Kind kind, std::uint64_t address, std::size_t count);

  void write_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key, std::uint64_t stream,
                   std::size_t period);

  std::size_t add_values(Kind kind, std::uint64_t address, const ContentRecipe& recipe, DataType stored);

  std::size_t add_pair(Kind kind, std::uint64_t address, DataType type, std::int64_t elements,
                       std::uint64_t masked, DataType masked_type, std::uint64_t key,
                       const Tolerance& tolerance);

  /// A job of `bytes` bytes. Answers its number.
  std::size_t add(detail::DeviceJob job, std::size_t bytes);

  /// Memory that grows with what it is asked to hold.
  struct Room {
    std::optional<AnyBackend::Buffer> buffer;
    std::size_t bytes = 0;

    [[nodiscard]] AnyBackend::Buffer& of(std::size_t wanted, AnyBackend& backend);
  };

  static void bind(LaunchArgument& argument, const AnyBackend::Buffer& buffer, std::size_t bytes);

  [[nodiscard]] static LaunchPlan plan_of_kernel();

  /// A compilation that may take place in a thread of its own.
  struct Compilation {
    CompileResult<AnyBackend::Program> result;
    std::exception_ptr error;
    std::jthread thread;

    void run(AnyBackend& backend, const LaunchPlan& plan) noexcept;
  };

  void start_compiling();

  void take_program();

  /// Adds up what the blocks of each job found.
  void gather(AnyBackend::Buffer& finding_buffer);

  AnyBackend& backend_;
  std::unique_ptr<Compilation> compilation_;
  std::shared_ptr<AnyBackend::Program> program_;
  LaunchPlan plan_;
  std::vector<detail::DeviceJob> jobs_;
  std::size_t blocks_of_findings_ = 0;
  std::vector<detail::DeviceFinding> findings_;
  Room job_room_;
  Room finding_room_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/content/device_work_inl.hpp>
#endif
