// Candidates that ask for more than there is: each gets a verdict, and the next one is judged as if it had
// not been there.
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "fake_backend.hpp"
#include "fake_gpu.hpp"
#include "worker_tasks.hpp"

using namespace mtmc;
using fake::Call;

namespace {

constexpr std::size_t kibibyte = 1024;

void rows(const Call& call) {
  const auto a = call.buffer<const float>("A");
  const auto b = call.buffer<const float>("b");
  const auto c = call.buffer<float>("C");
  for (std::size_t i = 0; i < c.size(); ++i) {
    float total = 0;
    for (std::size_t j = 0; j < b.size(); ++j) total += a[i * b.size() + j] * b[j];
    c[i] = total;
  }
}

/// A device with 2.5 MiB of its 4 MiB left, so that a candidate may have 1 MiB of scratch.
template <class B> struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task work = worker_tasks::rows();
  KernelEvaluator<B> evaluator;

  Bench() : evaluator(B(prepared_world()), {.explore_pairs = 6, .promote_pairs = 6, .seed = 42}) {}

  [[nodiscard]] Evaluation judge(const std::string& lines, Purpose purpose = Purpose::explore) {
    return evaluator.evaluate({work, {languages::cpp, lines, {}}, work.kernel, purpose, {}}, {});
  }
  [[nodiscard]] Evaluation judge_honest(Purpose purpose = Purpose::explore) {
    return judge(worker_tasks::kernel("honest").source, purpose);
  }

private:
  std::shared_ptr<fake::World> prepared_world() {
    world->device.memory_bytes = 4096 * kibibyte;
    world->memory_limit = 2560 * kibibyte;
    world->kernels["start"] = {rows, 10e-6};
    world->kernels["honest"] = {rows, 5e-6};
    world->kernels["no_host_memory"] = {[](const Call&) { throw std::bad_alloc{}; }};
    world->kernels["no_launch"] = {rows, 1e-3, 0.02, RunOutcome::launch_failed};
    world->on_compile = [](const Kernel& kernel) {
      if (kernel.source.find("__device__ const float table[1 << 30]") == std::string::npos) return;
      throw Error(error_id::backend_memory, "the tables of a kernel do not fit into memory", "");
    };
    return world;
  }
};

std::string repeated(std::size_t times, const std::function<std::string(std::size_t)>& line) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += line(i);
  return text;
}

const std::string launch = "//@ launch honest(A, b, C, M, K)\n";
std::string scratch(const std::string& extents) { return "//@ scratch T: f32[" + extents + "]\n" + launch; }

struct Greedy {
  std::string what;
  std::string lines;
  /// What its verdict says.
  std::string words;
};

/// Refused as soon as the launch lines have been read.
const std::vector<Greedy> greedy_lines{
    {"more scratch than a quarter of the memory", scratch("327680"), "at most 1 MiB are allowed"},
    {"more in three buffers than in one",
     repeated(3, [](std::size_t i) { return "//@ scratch T" + std::to_string(i) + ": f64[65536]\n"; }) +
         launch,
     "at most 1 MiB are allowed"},
    {"an amount that is no expression", scratch("1 << 10"), "expression"},
    {"more at one size only", scratch("M * K * 400"), "M=64"},
    {"a terabyte", scratch("1000000, 1000000"), "are allowed"},
    {"more bytes than an address can name", scratch("4294967296, 4294967296"), "address can name"},
    {"an extent that overflows", scratch("9223372036854775807 * M"), "does not fit into 64 bits"},
    {"an extent that overflows by steps", scratch("(M + 2000000000) * 2000000000 * 2000000000"),
     "does not fit into 64 bits"},
    {"a negative extent", scratch("M - 1000000"), "is -"},
    {"an empty buffer", scratch("0 * M"), "is 0"},
    {"a division by zero", scratch("M / (K - K)"), "zero"},
    {"a remainder by zero", scratch("M % (K - K)"), "zero"},
    {"a symbol that there is not", scratch("lots"), "lots"},
    {"many scratch buffers",
     repeated(1000, [](std::size_t i) { return "//@ scratch T" + std::to_string(i) + ": i8[1]\n"; }) + launch,
     "at most 64"},
    {"many launches", repeated(100'000, [](std::size_t) { return launch; }), "at most 1024"},
    {"many arguments", "//@ launch honest(A, b, C" + repeated(300, [](std::size_t) { return ", M"; }) + ")\n",
     "at most 256"},
    {"many arguments of many launches",
     repeated(1000, [](std::size_t) { return "//@ launch honest(A, b, C, M, K, M, K, M, K)\n"; }),
     "at most 8192"},
    {"a negative amount of shared memory", "//@ launch honest<<<1, 1, -1>>>(A, b, C, M, K)\n", "negative"},
    {"a grid that overflows", "//@ launch honest<<<9223372036854775807 + M, 1>>>(A, b, C, M, K)\n",
     "does not fit into 64 bits"},
};

/// Refused by the compiler or the device.
const std::vector<Greedy> greedy_kernels{
    {"a launch that the device refuses", "//@ launch no_launch(A, b, C, M, K)\n", "as planned"},
    {"tables that do not fit", launch + "__device__ const float table[1 << 30] = {};\n", "do not fit"},
    {"memory of this process", "//@ launch no_host_memory(A, b, C, M, K)\n", "no memory left"},
};

} // namespace

/// Judges each, and an honest one after it.
template <class B> void judge_all(Bench<B>& bench, const std::vector<Greedy>& greedy) {
  REQUIRE(bench.judge_honest().correct());
  const auto used = bench.world->bytes_in_use();
  for (const auto& candidate : greedy) {
    CAPTURE(candidate.what);
    const auto answer = bench.judge(candidate.lines, Purpose::promote);
    CHECK(answer.verdict == Verdict::launch_error);
    REQUIRE_FALSE(answer.diagnostics.empty());
    const auto& said = answer.diagnostics.front();
    CHECK_MESSAGE(said.message.find(candidate.words) != std::string::npos, said.message);
    CHECK_FALSE(said.remedy.empty());
    const auto next = bench.judge_honest();
    CHECK(next.correct());
    CHECK(next.speed_up);
    // Results of the reference that are kept for the next candidate are little.
    CHECK(bench.world->bytes_in_use() < used + 200 * kibibyte);
  }
}

TEST_CASE("whatever launch lines ask for, they get a verdict and the next candidate is accepted") {
  Bench<fake::Backend> bench;
  judge_all(bench, greedy_lines);
}

TEST_CASE_TEMPLATE("whatever a kernel asks for, it gets a verdict and the next one is accepted", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  judge_all(bench, greedy_kernels);
}

TEST_CASE_TEMPLATE("a group of calls is as large as memory allows, scratch included", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  REQUIRE(bench.judge_honest().correct());
  const auto usual = bench.world->last_group.at("honest");
  CHECK(usual >= 8);
  struct Group {
    std::size_t scratch_kibibytes;
    std::size_t least;
    std::size_t most;
  };
  for (const auto& [kibibytes, least, most] : {Group{1, 8, usual}, Group{150, 4, 14}, Group{700, 1, 3}}) {
    const auto& shown = kibibytes;
    CAPTURE(shown);
    const auto answer = bench.judge(scratch(std::to_string(kibibytes) + " * 256"));
    CHECK(answer.correct());
    CHECK(answer.speed_up);
    CHECK(bench.world->last_group.at("honest") >= least);
    CHECK(bench.world->last_group.at("honest") <= most);
    CHECK(bench.judge_honest().correct());
    CHECK(bench.world->last_group.at("honest") == usual);
  }
}

TEST_CASE("an incumbent for which there is no memory beside the candidate is no fault of the candidate") {
  Bench<fake::Backend> bench;
  bench.world->kernels["best"] = {rows, 5e-6};
  const Kernel best{languages::cpp, "//@ scratch T: f32[262144]\n//@ launch best(A, b, C, M, K)\n", {}};
  bench.world->memory_limit = 1200 * kibibyte;
  const auto answer = bench.evaluator.evaluate(
      {bench.work, {languages::cpp, "//@ scratch T: f32[25600]\n" + launch, {}}, best, Purpose::explore, {}},
      {});
  CHECK(answer.correct());
  CHECK_FALSE(answer.speed_up);
  CHECK(answer.diagnostics.back().message.find("no memory for it beside the candidate") != std::string::npos);
}

TEST_CASE_TEMPLATE("sizes that fit one at a time are judged one at a time", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  for (int i = 1; i <= 6; ++i) bench.work.sizes.push_back({.symbols = {{"M", 3 + i}, {"K", 7}}, .weight = 0});
  // 1 MiB at each of eight sizes, in 2.5 MiB.
  const auto answer = bench.judge(scratch("262144"));
  CHECK(answer.correct());
  CHECK(answer.sizes.back().checked_elements == answer.sizes.back().total_elements);
}

TEST_CASE_TEMPLATE("what is allowed, but is not there, is the candidate's to do without", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  REQUIRE(bench.judge_honest().correct());
  const auto most = std::exchange(bench.world->memory_limit, 800 * kibibyte);
  const auto answer = bench.judge(scratch("262144"));
  CHECK(answer.verdict == Verdict::launch_error);
  CHECK(answer.rule == refusal_rule::memory);
  CHECK(answer.diagnostics.front().message.find("1 MiB") != std::string::npos);
  CHECK(bench.judge_honest().correct());
  bench.world->memory_limit = most;
  CHECK(bench.judge(scratch("262144")).correct());
}

TEST_CASE_TEMPLATE("buffers may be few, too, as where each costs a descriptor", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  REQUIRE(bench.judge_honest().correct());
  bench.world->buffer_limit = 60;
  const auto buffers = [](std::size_t count) {
    return repeated(count, [](std::size_t i) { return "//@ scratch T" + std::to_string(i) + ": i8[1]\n"; }) +
           launch;
  };
  CHECK(bench.judge(buffers(64)).verdict == Verdict::launch_error);
  CHECK(bench.judge_honest().correct());
  CHECK(bench.judge(buffers(20)).correct());
  CHECK(bench.judge_honest().correct());
}

TEST_CASE_TEMPLATE("where the task's own buffers do not fit, that is no verdict on a candidate", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  const auto error = [&] {
    try {
      (void)bench.judge_honest();
    } catch (const Error& thrown) {
      return thrown.id();
    }
    return std::string("none");
  };
  const auto most = std::exchange(bench.world->memory_limit, std::size_t{20'000});
  CHECK(error() == error_id::backend_memory);
  bench.world->memory_limit = most;
  CHECK(error() == "none");
  // When the task is ready, too, and with a candidate that asks for more besides.
  bench.world->memory_limit = 20'000;
  CHECK(error() == error_id::backend_memory);
  CHECK_THROWS_AS((void)bench.judge(scratch("4096")), Error);
  bench.world->memory_limit = most;
  CHECK(error() == "none");
}

TEST_CASE("buffers of tasks that wait make room for the one at hand") {
  Bench<fake::Backend> bench;
  auto large = worker_tasks::rows("large");
  large.sizes = {{.symbols = {{"M", 300}, {"K", 600}}}};
  for (int i = 0; i < 3; ++i) {
    // Each of them needs nearly half of the memory for two kernels.
    for (const auto* const task : {&large, &bench.work}) {
      const auto answer = bench.evaluator.evaluate(
          {*task, worker_tasks::kernel("honest"), task->kernel, Purpose::explore, {}}, {});
      CHECK(answer.correct());
    }
    large.name += "r";
  }
}
