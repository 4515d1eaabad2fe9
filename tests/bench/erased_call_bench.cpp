// What erasing the backend costs: a call of `run` and of `time` through `AnyBackend` against the same call
// made directly, on a backend that does nothing, and beside the cheapest launch there is, an empty kernel on
// the processor. Exit code 1 if erasing adds more than a hundredth to that launch.
//
//   bench_erased_call          a few seconds

#include <mtmc/backend/cpu.hpp>
#include <mtmc/core/any.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

namespace {

struct IdleBackend {
  struct Program {
    int runs = 0;
  };
  struct Buffer {
    [[nodiscard]] std::uint64_t handle() const { return 0; }
  };
  mtmc::Device described;
  const mtmc::Device& device() { return described; }
  std::vector<mtmc::Diagnostic> screen(const mtmc::Kernel&) { return {}; }
  mtmc::CompileResult<Program> compile(const mtmc::Kernel&, const mtmc::CompileOptions&, std::stop_token) {
    mtmc::CompileResult<Program> result;
    result.program = std::make_shared<Program>();
    return result;
  }
  Buffer allocate(std::size_t) { return {}; }
  void upload(Buffer&, std::size_t, std::span<const std::byte>) {}
  void download(Buffer&, std::size_t, std::span<std::byte>) {}
  [[gnu::noinline]] mtmc::RunStatus run(Program& program, const mtmc::LaunchPlan&, mtmc::Deadline) {
    ++program.runs;
    return {};
  }
  [[gnu::noinline]] mtmc::TimedRun time(Program& program, std::span<const mtmc::LaunchPlan> group, bool,
                                        mtmc::Deadline) {
    ++program.runs;
    return {{}, static_cast<double>(group.size())};
  }
};

/// Nanoseconds of a call: the least of 51 turns, which are taken in alternation by the caller.
template <class Call> double turn(int calls, Call&& call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / calls;
}

} // namespace

int main() {
  IdleBackend backend;
  auto direct = backend.compile({}, {}, {});
  mtmc::AnyBackend erased(std::ref(backend));
  auto held = erased.compile({}, {}, {});
  mtmc::LaunchPlan plan;
  const std::span<const mtmc::LaunchPlan> group(&plan, 1);
  const auto deadline = mtmc::Deadline::max();

  std::array<double, 4> least{1e9, 1e9, 1e9, 1e9};
  for (int i = 0; i < 51; ++i) {
    least[0] = std::min(least[0], turn(10000, [&] { (void)backend.run(*direct.program, plan, deadline); }));
    least[1] = std::min(least[1], turn(10000, [&] { (void)erased.run(*held.program, plan, deadline); }));
    least[2] =
        std::min(least[2], turn(10000, [&] { (void)backend.time(*direct.program, group, true, deadline); }));
    least[3] =
        std::min(least[3], turn(10000, [&] { (void)erased.time(*held.program, group, true, deadline); }));
  }
  if (direct.program->runs != 51 * 2 * 10000) return 2;

  mtmc::Task task;
  task.name = "nothing";
  task.kernel = {mtmc::languages::cpp, "//@ launch nothing(y)\nvoid nothing(float*) {}\n", {}};
  task.arguments = {
      {.name = "y", .role = mtmc::ArgumentRole::output, .type = mtmc::DataType::f32, .shape = {"n"}}};
  mtmc::CpuBackend processor;
  auto launched = mtmc::plan_launches(task.kernel, task, {.symbols = {{"n", 1}}}, 1);
  const auto compiled = processor.compile(task.kernel, {.plan = launched}, {});
  if (!compiled.program) return 2;
  const auto memory = processor.allocate(4096);
  launched.launches[0].arguments[0].bound = {.handle = memory.handle(), .bytes = 4};
  const std::vector<mtmc::LaunchPlan> launches(1000, launched);
  double launch = 1e9;
  for (int i = 0; i < 11; ++i) {
    const auto timed = processor.time(*compiled.program, launches, false, deadline);
    if (!timed.status.finished()) return 2;
    launch = std::min(launch, timed.seconds * 1e9 / 1000);
  }

  const double run = least[1] - least[0];
  const double time = least[3] - least[2];
  std::printf("run   direct %6.1f ns   through AnyBackend %6.1f ns   %+.1f ns\n", least[0], least[1], run);
  std::printf("time  direct %6.1f ns   through AnyBackend %6.1f ns   %+.1f ns\n", least[2], least[3], time);
  std::printf(
      "an empty launch on the processor, in a group of 1000: %.0f ns; one call of `time` for the group "
      "adds %.5f of a launch\n",
      launch, time / 1000 / launch);
  return time / 1000 / launch > 0.01 ? 1 : 0;
}
