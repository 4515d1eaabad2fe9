#pragma once
/// What the judge has done on the device: jobs are put in a queue, and one launch does them all.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/own_kernel.hpp>
#include <mtmc/evaluator/comparison.hpp>
#include <mtmc/evaluator/device_kernel.hpp>
#include <mtmc/evaluator/input_generation.hpp>
#include <mtmc/evaluator/poison.hpp>

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

namespace mtmc {

/// A queue of jobs for the judge's kernel (`runs_judge_kernels`). Addresses are `Buffer::handle()` and a
/// distance from there. Nothing of a job, whose keys are secret, stays on the device once it is done. Not
/// thread-safe.
class DeviceWork {
public:
  /// Has the kernel compiled while its owner gets ready for other things.
  explicit DeviceWork(AnyBackend& backend) : backend_(backend) {
    if (runs_judge_kernels(backend) && concurrency_limit_of(backend) > 1) start_compiling();
  }

  /// Writes one byte `bytes` times.
  void write_byte(std::uint64_t address, std::size_t bytes, std::byte value) {
    auto job = at(detail::DeviceJobKind::write_byte, address, bytes);
    job.stream = std::to_integer<std::uint64_t>(value);
    add(job, bytes);
  }
  /// Writes what `fill_with_noise` does.
  void write_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key, std::uint64_t stream) {
    write_noise(address, bytes, key, stream, 0);
  }
  /// Writes what `fill_with_repeated_noise` does.
  void write_repeated_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key,
                            std::uint64_t stream) {
    write_noise(address, bytes, key, stream, detail::fill_chunk);
  }
  /// Writes the elements of a recipe, which if they are f32 may be stored as f64.
  void write_values(std::uint64_t address, const ContentRecipe& recipe, DataType stored) {
    add_values(detail::DeviceJobKind::write_values, address, recipe, stored);
  }
  void write_values(std::uint64_t address, const ContentRecipe& recipe) {
    write_values(address, recipe, recipe.type);
  }
  /// Copies bytes and puts the mask of `key` on them, or takes it off. Memory at both ends is 16-byte
  /// aligned.
  void write_masked(std::uint64_t target, std::uint64_t source, std::size_t bytes, std::uint64_t key) {
    auto job = at(detail::DeviceJobKind::write_masked, target, bytes);
    job.other = source;
    job.key = key;
    add(job, bytes);
  }

  /// Looks which bytes are not the noise of `write_noise`. This and the following answer the number under
  /// which `found` knows the job after `run`.
  std::size_t look_for_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key,
                             std::uint64_t stream) {
    auto job = at(detail::DeviceJobKind::look_for_noise, address, bytes);
    job.key = key;
    job.stream = stream;
    return add(job, bytes);
  }
  /// Looks which elements are not those of a recipe.
  std::size_t look_for_values(std::uint64_t address, const ContentRecipe& recipe) {
    return add_values(detail::DeviceJobKind::look_for_values, address, recipe, recipe.type);
  }
  /// Looks which elements have other bits than those kept at `masked` under `key`.
  std::size_t look_for_bits(std::uint64_t address, DataType type, std::int64_t elements, std::uint64_t masked,
                            std::uint64_t key) {
    return add_pair(detail::DeviceJobKind::look_for_bits, address, type, elements, masked, type, key, {});
  }
  /// Does what `compare_output` does, with the reference kept at `masked` under `key`. Its type may be
  /// another floating-point type than `type`.
  std::size_t compare(std::uint64_t address, DataType type, std::int64_t elements, std::uint64_t masked,
                      DataType masked_type, std::uint64_t key, const Tolerance& tolerance) {
    return add_pair(detail::DeviceJobKind::compare, address, type, elements, masked, masked_type, key,
                    tolerance);
  }
  /// Adds up what `output_scale` is made of; of a floating-point type.
  std::size_t add_magnitudes(std::uint64_t address, DataType type, std::int64_t elements) {
    return add_pair(detail::DeviceJobKind::add_magnitudes, address, type, elements, 0, type, 0, {});
  }

  /// Does all jobs of the queue, those that write before those that look only if they were queued in a run
  /// before: jobs of one run may happen in any order. Throws `Error` (`mtmc.backend.004`) if the device does
  /// not do them.
  void run() {
    if (jobs_.empty()) return;
    const std::size_t job_bytes = jobs_.size() * sizeof(detail::DeviceJob);
    const std::size_t finding_bytes =
        std::max<std::size_t>(1, blocks_of_findings_) * sizeof(detail::DeviceFinding);
    auto& job_buffer = job_room_.of(job_bytes, backend_);
    auto& finding_buffer = finding_room_.of(finding_bytes, backend_);
    if (!program_) take_program();
    backend_.upload(job_buffer, 0, std::as_bytes(std::span<const detail::DeviceJob>(jobs_)));
    std::uint32_t widest = 1;
    for (const auto& job : jobs_) widest = std::max(widest, job.blocks);
    auto& launch = plan_.launches.front();
    launch.grid = {widest, static_cast<std::int64_t>(jobs_.size()), 1};
    bind(launch.arguments[0], job_buffer, job_bytes);
    bind(launch.arguments[1], finding_buffer, finding_bytes);
    constexpr std::chrono::seconds ample{60};
    const auto status = backend_.run(*program_, plan_, std::chrono::steady_clock::now() + ample);
    if (!status.finished())
      throw Error(error_id::backend_device, "the judge's own kernel failed: " + status.message,
                  "Check the device and its driver, then start again");
    fill_buffer(backend_, job_buffer, 0, job_bytes, std::byte{0});
    gather(finding_buffer);
    forget();
  }

  /// Takes all jobs out of the queue again. Whoever begins must not find those of one who gave up: their
  /// memory may be gone.
  void forget() noexcept {
    jobs_.clear();
    blocks_of_findings_ = 0;
  }

  /// What a job of the last run found.
  [[nodiscard]] const detail::DeviceFinding& found(std::size_t number) const { return findings_.at(number); }
  /// The same as the answer of `compare_output`.
  [[nodiscard]] ComparisonResult comparison(std::size_t number, std::int64_t elements) const {
    const auto& all = found(number);
    ComparisonResult result;
    result.checked = static_cast<std::int64_t>(all.checked);
    result.total = elements;
    result.wrong = static_cast<std::int64_t>(all.wrong);
    result.first_wrong = all.wrong > 0 ? static_cast<std::int64_t>(all.first_wrong) : -1;
    result.largest_error = all.largest_error;
    return result;
  }
  /// The same as the answer of `output_scale`.
  [[nodiscard]] double scale(std::size_t number) const {
    const auto& all = found(number);
    return all.finite > 0 ? all.magnitudes / all.finite : 0;
  }

private:
  using Kind = detail::DeviceJobKind;

  [[nodiscard]] static detail::DeviceJob at(Kind kind, std::uint64_t address, std::size_t count) {
    detail::DeviceJob job;
    job.kind = kind;
    job.target = address;
    job.count = count;
    return job;
  }

  void write_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key, std::uint64_t stream,
                   std::size_t period) {
    auto job = at(Kind::write_noise, address, bytes);
    job.key = key;
    job.stream = stream;
    job.period = period;
    add(job, bytes);
  }

  std::size_t add_values(Kind kind, std::uint64_t address, const ContentRecipe& recipe, DataType stored) {
    auto job = at(kind, address, static_cast<std::size_t>(recipe.elements));
    job.type = recipe.type;
    job.other_type = stored;
    job.distribution = recipe.distribution;
    job.key = recipe.key;
    job.stream = recipe.stream;
    job.rare = detail::rare_below(static_cast<std::size_t>(recipe.elements));
    if (recipe.range) {
      job.has_range = 1;
      job.low = recipe.range->low;
      job.high = recipe.range->high;
    }
    return add(job, recipe.bytes());
  }

  std::size_t add_pair(Kind kind, std::uint64_t address, DataType type, std::int64_t elements,
                       std::uint64_t masked, DataType masked_type, std::uint64_t key,
                       const Tolerance& tolerance) {
    auto job = at(kind, address, static_cast<std::size_t>(elements));
    job.type = type;
    job.other = masked;
    job.other_type = masked_type;
    job.key = key;
    job.low = tolerance.relative;
    job.high = tolerance.scale;
    return add(job, static_cast<std::size_t>(elements) * size_of(type));
  }

  /// A job of `bytes` bytes. Answers its number.
  std::size_t add(detail::DeviceJob job, std::size_t bytes) {
    // Enough for a bandwidth near the device's, few enough that their findings cost nothing.
    const auto most = std::max<std::size_t>(1, 4 * static_cast<std::size_t>(backend_.device().compute_units));
    constexpr std::size_t chunks_of_a_block =
        static_cast<std::size_t>(detail::device_kernel_threads) * detail::device_kernel_step;
    job.blocks = static_cast<std::uint32_t>(std::clamp<std::size_t>(bytes / chunks_of_a_block, 1, most));
    if (job.kind > Kind::write_masked) {
      job.first_finding = static_cast<std::uint32_t>(blocks_of_findings_);
      blocks_of_findings_ += job.blocks;
    }
    jobs_.push_back(job);
    return jobs_.size() - 1;
  }

  /// Memory that grows with what it is asked to hold.
  struct Room {
    std::optional<AnyBackend::Buffer> buffer;
    std::size_t bytes = 0;

    [[nodiscard]] AnyBackend::Buffer& of(std::size_t wanted, AnyBackend& backend) {
      if (buffer && bytes >= wanted) return *buffer;
      buffer.reset();
      bytes = std::max<std::size_t>(2 * wanted, std::size_t{1} << 14);
      return buffer.emplace(backend.allocate(bytes));
    }
  };

  static void bind(LaunchArgument& argument, const AnyBackend::Buffer& buffer, std::size_t bytes) {
    argument.bound = {static_cast<std::uint64_t>(buffer.handle()), 0, static_cast<std::int64_t>(bytes)};
  }

  [[nodiscard]] static LaunchPlan plan_of_kernel() {
    LaunchPlan plan;
    auto& launch = plan.launches.emplace_back();
    launch.entry = "judge_work";
    launch.line = 2;
    launch.block = {detail::device_kernel_threads, 1, 1};
    for (const char* name : {"jobs", "findings"}) {
      auto& argument = launch.arguments.emplace_back();
      argument.name = name;
      argument.type = DataType::u8;
      argument.writable = &argument != &launch.arguments.front();
    }
    return plan;
  }

  /// A compilation that may take place in a thread of its own.
  struct Compilation {
    CompileResult<AnyBackend::Program> result;
    std::exception_ptr error;
    std::jthread thread;

    void run(AnyBackend& backend, const LaunchPlan& plan) noexcept {
      try {
        result = backend.compile({languages::cuda, std::string(detail::device_kernel_text), {}},
                                 {.plan = plan}, {});
      } catch (...) {
        error = std::current_exception();
      }
    }
  };

  void start_compiling() {
    plan_ = plan_of_kernel();
    compilation_ = std::make_unique<Compilation>();
    const auto work = [compilation = compilation_.get(), &backend = backend_, plan = plan_] {
      compilation->run(backend, plan);
    };
    if (concurrency_limit_of(backend_) > 1)
      compilation_->thread = std::jthread(work);
    else
      work();
  }

  void take_program() {
    // After a failure: once more.
    if (!compilation_) start_compiling();
    const auto compilation = std::move(compilation_);
    if (compilation->thread.joinable()) compilation->thread.join();
    if (compilation->error) std::rethrow_exception(compilation->error);
    program_ = detail::own_program(std::move(compilation->result), "judges");
  }

  /// Adds up what the blocks of each job found.
  void gather(AnyBackend::Buffer& finding_buffer) {
    findings_.assign(jobs_.size(), {});
    if (blocks_of_findings_ == 0) return;
    std::vector<detail::DeviceFinding> blocks(blocks_of_findings_);
    backend_.download(finding_buffer, 0, std::as_writable_bytes(std::span(blocks)));
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].kind <= Kind::write_masked) continue;
      auto& all = findings_[i];
      for (const auto& block : std::span(blocks).subspan(jobs_[i].first_finding, jobs_[i].blocks)) {
        all.checked += block.checked;
        all.wrong += block.wrong;
        all.first_wrong = std::min(all.first_wrong, block.first_wrong);
        all.last_wrong = std::max(all.last_wrong, block.last_wrong);
        all.largest_error = std::max(all.largest_error, block.largest_error);
        all.magnitudes += block.magnitudes;
        all.finite += block.finite;
      }
    }
  }

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
