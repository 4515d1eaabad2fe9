#pragma once
/// The fake backend as a device on which the judge's own kernel runs, emulated.

#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <utility>

#include "emulated_device.hpp"
#include "fake_backend.hpp"

namespace fake {

/// Judges as on a GPU: what the evaluator does by its own kernel passes through the emulated device; all else
/// is the fake backend, which counts nothing of it.
class Gpu : public Backend {
public:
  static constexpr bool runs_judge_kernels = mtmc_test::can_emulate;

  using Backend::Backend;

  [[nodiscard]] mtmc::CompileResult<Program>
  compile(const mtmc::Kernel& kernel, const mtmc::CompileOptions& options, std::stop_token stop) {
    if (!is_judges(options.plan)) return Backend::compile(kernel, options, std::move(stop));
    const std::scoped_lock lock(emulator().mutex);
    if (!emulator().program) {
      auto compiled = emulator().device.compile(kernel, options, {});
      if (!compiled.program) throw std::runtime_error(compiled.diagnostics.front().message);
      emulator().program = std::move(compiled.program);
    }
    mtmc::CompileResult<Program> result;
    result.program = std::make_shared<Program>();
    return result;
  }

  [[nodiscard]] mtmc::RunStatus run(Program& program, const mtmc::LaunchPlan& plan, mtmc::Deadline deadline) {
    if (!is_judges(plan)) return Backend::run(program, plan, deadline);
    const std::scoped_lock lock(emulator().mutex);
    return emulator().device.run(*emulator().program, plan, deadline);
  }

private:
  struct Emulator {
    mtmc_test::EmulatedDevice device;
    std::shared_ptr<mtmc_test::EmulatedProgram> program;
    std::mutex mutex;
  };
  [[nodiscard]] static Emulator& emulator() {
    static Emulator one;
    return one;
  }
  [[nodiscard]] static bool is_judges(const mtmc::LaunchPlan& plan) {
    return plan.launches.size() == 1 && plan.launches.front().entry == "judge_work";
  }
};

} // namespace fake
