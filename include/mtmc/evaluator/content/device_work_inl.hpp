#pragma once
/// Definitions of evaluator/content/device_work.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/evaluator/content/device_kernel.hpp>
#include <mtmc/evaluator/content/device_work.hpp>
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

MTMC_INLINE DeviceWork::DeviceWork(AnyBackend& backend) : backend_(backend) {
  if (runs_judge_kernels(backend) && concurrency_limit_of(backend) > 1) start_compiling();
}

MTMC_INLINE void DeviceWork::write_byte(std::uint64_t address, std::size_t bytes, std::byte value) {
  auto job = at(detail::DeviceJobKind::write_byte, address, bytes);
  job.stream = std::to_integer<std::uint64_t>(value);
  add(job, bytes);
}

MTMC_INLINE void DeviceWork::write_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key,
                                         std::uint64_t stream) {
  write_noise(address, bytes, key, stream, 0);
}

MTMC_INLINE void DeviceWork::write_repeated_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key,
                                                  std::uint64_t stream) {
  write_noise(address, bytes, key, stream, detail::fill_chunk);
}

MTMC_INLINE void DeviceWork::write_values(std::uint64_t address, const ContentRecipe& recipe,
                                          DataType stored) {
  add_values(detail::DeviceJobKind::write_values, address, recipe, stored);
}

MTMC_INLINE void DeviceWork::write_values(std::uint64_t address, const ContentRecipe& recipe) {
  write_values(address, recipe, recipe.type);
}

MTMC_INLINE void DeviceWork::write_masked(std::uint64_t target, std::uint64_t source, std::size_t bytes,
                                          std::uint64_t key) {
  auto job = at(detail::DeviceJobKind::write_masked, target, bytes);
  job.other = source;
  job.key = key;
  add(job, bytes);
}

MTMC_INLINE std::size_t DeviceWork::look_for_noise(std::uint64_t address, std::size_t bytes,
                                                   std::uint64_t key, std::uint64_t stream) {
  auto job = at(detail::DeviceJobKind::look_for_noise, address, bytes);
  job.key = key;
  job.stream = stream;
  return add(job, bytes);
}

MTMC_INLINE std::size_t DeviceWork::look_for_values(std::uint64_t address, const ContentRecipe& recipe) {
  return add_values(detail::DeviceJobKind::look_for_values, address, recipe, recipe.type);
}

MTMC_INLINE std::size_t DeviceWork::look_for_bits(std::uint64_t address, DataType type, std::int64_t elements,
                                                  std::uint64_t masked, std::uint64_t key) {
  return add_pair(detail::DeviceJobKind::look_for_bits, address, type, elements, masked, type, key, {});
}

MTMC_INLINE std::size_t DeviceWork::compare(std::uint64_t address, DataType type, std::int64_t elements,
                                            std::uint64_t masked, DataType masked_type, std::uint64_t key,
                                            const Tolerance& tolerance) {
  return add_pair(detail::DeviceJobKind::compare, address, type, elements, masked, masked_type, key,
                  tolerance);
}

MTMC_INLINE std::size_t DeviceWork::add_magnitudes(std::uint64_t address, DataType type,
                                                   std::int64_t elements) {
  return add_pair(detail::DeviceJobKind::add_magnitudes, address, type, elements, 0, type, 0, {});
}

MTMC_INLINE void DeviceWork::run() {
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

MTMC_INLINE void DeviceWork::forget() noexcept {
  jobs_.clear();
  blocks_of_findings_ = 0;
}

MTMC_INLINE detail::DeviceJob DeviceWork::at(Kind kind, std::uint64_t address, std::size_t count) {
  detail::DeviceJob job;
  job.kind = kind;
  job.target = address;
  job.count = count;
  return job;
}

MTMC_INLINE void DeviceWork::write_noise(std::uint64_t address, std::size_t bytes, std::uint64_t key,
                                         std::uint64_t stream, std::size_t period) {
  auto job = at(Kind::write_noise, address, bytes);
  job.key = key;
  job.stream = stream;
  job.period = period;
  add(job, bytes);
}

MTMC_INLINE std::size_t DeviceWork::add_values(Kind kind, std::uint64_t address, const ContentRecipe& recipe,
                                               DataType stored) {
  auto job = at(kind, address, static_cast<std::size_t>(recipe.elements));
  job.type = recipe.type;
  job.other_type = stored;
  job.distribution = recipe.distribution;
  job.key = recipe.key;
  job.stream = recipe.stream;
  const auto shape = detail::shape_of(recipe);
  job.rare = shape.rare;
  job.slice = static_cast<std::uint64_t>(shape.slice);
  job.exponent = shape.exponent;
  if (recipe.range) {
    job.has_range = 1;
    job.low = recipe.range->low;
    job.high = recipe.range->high;
  }
  return add(job, recipe.bytes());
}

MTMC_INLINE std::size_t DeviceWork::add_pair(Kind kind, std::uint64_t address, DataType type,
                                             std::int64_t elements, std::uint64_t masked,
                                             DataType masked_type, std::uint64_t key,
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

MTMC_INLINE std::size_t DeviceWork::add(detail::DeviceJob job, std::size_t bytes) {
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

MTMC_INLINE AnyBackend::Buffer& DeviceWork::Room::of(std::size_t wanted, AnyBackend& backend) {
  if (buffer && bytes >= wanted) return *buffer;
  buffer.reset();
  bytes = std::max<std::size_t>(2 * wanted, std::size_t{1} << 14);
  return buffer.emplace(backend.allocate(bytes));
}

MTMC_INLINE void DeviceWork::bind(LaunchArgument& argument, const AnyBackend::Buffer& buffer,
                                  std::size_t bytes) {
  argument.bound = {static_cast<std::uint64_t>(buffer.handle()), 0, static_cast<std::int64_t>(bytes)};
}

MTMC_INLINE LaunchPlan DeviceWork::plan_of_kernel() {
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

MTMC_INLINE void DeviceWork::Compilation::run(AnyBackend& backend, const LaunchPlan& plan) noexcept {
  try {
    result =
        backend.compile({languages::cuda, std::string(detail::device_kernel_text), {}}, {.plan = plan}, {});
  } catch (...) {
    error = std::current_exception();
  }
}

MTMC_INLINE void DeviceWork::start_compiling() {
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

MTMC_INLINE void DeviceWork::take_program() {
  // After a failure: once more.
  if (!compilation_) start_compiling();
  const auto compilation = std::move(compilation_);
  if (compilation->thread.joinable()) compilation->thread.join();
  if (compilation->error) std::rethrow_exception(compilation->error);
  program_ = compilation->result.program_or_throw("judges");
}

MTMC_INLINE void DeviceWork::gather(AnyBackend::Buffer& finding_buffer) {
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

} // namespace mtmc
