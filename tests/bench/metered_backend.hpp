#pragma once
/// A backend that forwards to `CpuBackend` and adds up where the time goes.

#include <mtmc/backend/cpu.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "evaluations.hpp"

namespace bench {

/// Seconds inside the backend.
struct Meter {
  /// Screen of the text and compiler.
  double compile = 0;
  /// The kernels' own calls, by the backend's clock: candidate, incumbent and reference, warm-up included.
  double kernels = 0;
  /// What `run` and `time` take beyond that: starting and preparing processes, mapping buffers, making staged
  /// content appear, emptying caches.
  double around_kernels = 0;
  double allocate = 0;
  double upload = 0;
  double download = 0;
  /// Calls of kernels, plans of a timed group counted one by one.
  int calls = 0;

  [[nodiscard]] double inside() const noexcept {
    return compile + kernels + around_kernels + allocate + upload + download;
  }
};

/// Adds the seconds that `work` takes to `total` and gives back its result.
template <class Work> auto timed(double& total, const Work& work) {
  struct Watch {
    double& total;
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    ~Watch() { total += seconds_since(begin); }
  };
  const Watch watch{total};
  return work();
}

/// Models `Backend` as `CpuBackend` does, its optional abilities included.
class MeteredBackend {
public:
  using Program = mtmc::CpuBackend::Program;
  using Buffer = mtmc::CpuBackend::Buffer;

  static constexpr bool isolates_programs = mtmc::CpuBackend::isolates_programs;

  explicit MeteredBackend(std::shared_ptr<Meter> meter, mtmc::CpuBackendOptions options = {})
      : meter_(std::move(meter)), backend_(std::move(options)) {}

  [[nodiscard]] const mtmc::Device& device() const noexcept { return backend_.device(); }
  [[nodiscard]] std::string identity() const { return backend_.identity(); }
  mtmc::MeasuredCeilings measure_ceilings() { return backend_.measure_ceilings(); }

  [[nodiscard]] std::vector<mtmc::Diagnostic> screen(const mtmc::Kernel& kernel) const {
    return timed(meter_->compile, [&] { return backend_.screen(kernel); });
  }
  [[nodiscard]] mtmc::CompileResult<Program>
  compile(const mtmc::Kernel& kernel, const mtmc::CompileOptions& options, std::stop_token stop) {
    return timed(meter_->compile, [&] { return backend_.compile(kernel, options, std::move(stop)); });
  }
  [[nodiscard]] mtmc::CompileResult<Program>
  compile_probed(const mtmc::Kernel& kernel, const mtmc::CompileOptions& options, std::stop_token stop) {
    return timed(meter_->compile, [&] { return backend_.compile_probed(kernel, options, std::move(stop)); });
  }
  [[nodiscard]] static std::vector<mtmc::Branch> branches(Program& program) {
    return mtmc::CpuBackend::branches(program);
  }
  [[nodiscard]] std::optional<mtmc::DividedKernel> divided(const mtmc::Kernel& kernel) const {
    return backend_.divided(kernel);
  }
  [[nodiscard]] std::optional<mtmc::Kernel> in_double_precision(const mtmc::Kernel& kernel) const {
    return backend_.in_double_precision(kernel);
  }
  [[nodiscard]] static std::string binary_hash(const Program& program) {
    return mtmc::CpuBackend::binary_hash(program);
  }
  void keep_state(Program& program, bool keep) { backend_.keep_state(program, keep); }
  [[nodiscard]] std::size_t guard_page_bytes() const { return backend_.guard_page_bytes(); }
  [[nodiscard]] mtmc::Conditions conditions() { return backend_.conditions(); }
  void choose_place() { backend_.choose_place(); }
  [[nodiscard]] Buffer allocate(std::size_t bytes) {
    return timed(meter_->allocate, [&] { return backend_.allocate(bytes); });
  }
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
    timed(meter_->upload, [&] { backend_.upload(buffer, offset, content); });
  }
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
              std::shared_ptr<const void> owner) {
    timed(meter_->upload, [&] { backend_.upload(buffer, offset, content, std::move(owner)); });
  }
  void fill(Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value) {
    timed(meter_->upload, [&] { backend_.fill(buffer, offset, bytes, value); });
  }
  [[nodiscard]] std::span<const std::byte> view(Buffer& buffer, std::size_t offset, std::size_t bytes) {
    return timed(meter_->download, [&] { return backend_.view(buffer, offset, bytes); });
  }
  void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
    timed(meter_->download, [&] { backend_.download(buffer, offset, target); });
  }
  /// The same work as `CpuBackend::run`, by the one of its functions that says how long the kernel took.
  // By the clock of timed calls. Cold, because content of checked calls is written past the caches, too.
  [[nodiscard]] mtmc::RunStatus run(Program& program, const mtmc::LaunchPlan& plan, mtmc::Deadline deadline) {
    return time(program, {&plan, 1}, true, deadline).status;
  }
  [[nodiscard]] mtmc::TimedRun time(Program& program, std::span<const mtmc::LaunchPlan> group, bool cold,
                                    mtmc::Deadline deadline) {
    auto result =
        timed(meter_->around_kernels, [&] { return backend_.time(program, group, cold, deadline); });
    meter_->around_kernels -= result.seconds;
    meter_->kernels += result.seconds;
    meter_->calls += static_cast<int>(group.size());
    return result;
  }

private:
  std::shared_ptr<Meter> meter_;
  mtmc::CpuBackend backend_;
};

static_assert(mtmc::check_backend<MeteredBackend>());
static_assert(mtmc::declared_abilities<MeteredBackend>() == mtmc::declared_abilities<mtmc::CpuBackend>(),
              "every ability is to be forwarded");

} // namespace bench
