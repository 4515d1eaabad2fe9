// A kernel that reads where nothing lies is refused on a backend that maps such memory, even where what it
// reads changes no result; other backends say that they do not see it.
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/content/guarded_buffer.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "../fake_backend.hpp"
#include "../fake_gpu.hpp"

using namespace mtmc;
using fake::Call;

namespace {

/// What the kernels and the backend of a test share.
struct Memory {
  /// Sizes of allocations are multiples of it.
  std::size_t granularity = 2048;
  std::string missing{};
  /// Where nothing lies was read in the call under way.
  bool faulted = false;
  /// A fault has cost the backend its device.
  bool spent = false;
  int allocations = 0;
};

/// Maps memory with nothing beside it: a kernel that notes a fault has its run end so, and no other follows.
template <class Base> class Mapping : public Base {
public:
  using Program = typename Base::Program;
  using Buffer = typename Base::Buffer;
  Mapping(std::shared_ptr<fake::World> world, std::shared_ptr<Memory> memory)
      : Base(std::move(world)), memory_(std::move(memory)) {}

  [[nodiscard]] GuardedAllocation guarded_allocation() const {
    return {memory_->granularity, memory_->missing};
  }
  [[nodiscard]] Buffer allocate_guarded(std::size_t bytes) {
    CHECK(bytes % memory_->granularity == 0);
    ++memory_->allocations;
    return Base::allocate(bytes);
  }
  [[nodiscard]] RunStatus run(Program& program, const LaunchPlan& plan, Deadline deadline) {
    if (memory_->spent) throw Error(error_id::backend_device, "the device is lost", "Replace the process");
    auto status = Base::run(program, plan, deadline);
    if (!std::exchange(memory_->faulted, false)) return status;
    memory_->spent = true;
    return {RunOutcome::faulted, "an address where nothing lies"};
  }
  [[nodiscard]] bool spent() const { return memory_->spent; }

private:
  std::shared_ptr<Memory> memory_;
};

struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
  Task task{.name = "twice", .kernel = {languages::cpp, "//@ launch start(x, y)\n", {}}};

  Bench() {
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"N", 64}}}, {.symbols = {{"N", 19}}, .weight = 0}};
    world->kernels["start"] = {twice};
    world->kernels["candidate"] = world->kernels["start"];
  }
  static void twice(const Call& call) {
    const auto x = call.buffer<const float>("x");
    const auto y = call.buffer<float>("y");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
  }
  /// Looks at so many bytes from the first of `x` on, and uses nothing of them.
  void candidate_reads(std::ptrdiff_t from_first) {
    world->kernels["candidate"].body = [this, from_first](const Call& call) {
      twice(call);
      const auto* const at = static_cast<std::byte*>(call.address("x")) + from_first;
      auto found = world->memory->upper_bound(const_cast<std::byte*>(at));
      const bool there =
          found != world->memory->begin() && at < std::prev(found)->first + std::prev(found)->second;
      if (!there) memory->faulted = true;
    };
  }
  template <class B> [[nodiscard]] Evaluation judge(B backend, EvaluatorDefences defences = {}) {
    KernelEvaluator<B> evaluator(std::move(backend), {.seed = 7, .defences = defences});
    const Kernel candidate{languages::cpp, "//@ launch candidate(x, y)\n", {}};
    return evaluator.evaluate({task, candidate, task.kernel, Purpose::explore, {}}, {});
  }
};

} // namespace

TEST_CASE_TEMPLATE("a read behind an input is out of bounds, though it changes nothing and costs the device",
                   Base, fake::Backend, fake::Gpu) {
  Bench bench;
  bench.candidate_reads(64 * sizeof(float));
  const auto answer = bench.judge(Mapping<Base>(bench.world, bench.memory));
  CHECK(answer.verdict == Verdict::out_of_bounds);
  CHECK(answer.rule == refusal_rule::guard_pages);
  REQUIRE(!answer.diagnostics.empty());
  CHECK(answer.diagnostics[0].message.find("no memory behind its buffers") != std::string::npos);
  CHECK(answer.environment.at("guarded_allocation") == "observed");
  CHECK(bench.memory->spent);
}

TEST_CASE_TEMPLATE("so is one before it", Base, fake::Backend, fake::Gpu) {
  Bench bench;
  bench.candidate_reads(-4);
  const auto answer = bench.judge(Mapping<Base>(bench.world, bench.memory));
  CHECK(answer.verdict == Verdict::out_of_bounds);
  CHECK(answer.rule == refusal_rule::guard_pages);
  REQUIRE(!answer.diagnostics.empty());
  CHECK(answer.diagnostics[0].message.find("no memory before its buffers") != std::string::npos);
}

TEST_CASE("who stays inside is accepted, and each buffer was in such memory twice a size") {
  Bench bench;
  bench.candidate_reads(0);
  const auto answer = bench.judge(Mapping<fake::Backend>(bench.world, bench.memory));
  CHECK(answer.verdict == Verdict::correct);
  CHECK(bench.memory->allocations == 2 * 2 * 2);
}

TEST_CASE("without that defence, or where such memory is missing, it passes and the record says why") {
  Bench bench;
  bench.candidate_reads(64 * sizeof(float));
  EvaluatorDefences off;
  off.guard_pages = false;
  CHECK(bench.judge(Mapping<fake::Backend>(bench.world, bench.memory), off).verdict == Verdict::correct);
  CHECK(bench.memory->allocations == 0);
  const auto plain = bench.judge(fake::Backend(bench.world));
  CHECK(plain.verdict == Verdict::correct);
  CHECK(plain.environment.at("guarded_allocation") == "not observed");
  bench.memory->granularity = 0;
  bench.memory->missing = "no worker";
  const auto missing = bench.judge(Mapping<fake::Backend>(bench.world, bench.memory));
  CHECK(missing.verdict == Verdict::correct);
  CHECK(missing.environment.at("guarded_allocation") == "not observed: no worker");
}

TEST_CASE("in mapped memory a content ends or begins where the memory does, and all else is red zone") {
  constexpr std::size_t granule = 2 << 20;
  for (const std::size_t bytes :
       std::initializer_list<std::size_t>{0, 4, 76, 256, 4096, (2 << 20) - 4096, 2 << 20, (6 << 20) + 12}) {
    CAPTURE(bytes);
    const auto behind = mapped_layout(bytes, 4096, BufferGuard::page_behind, granule);
    CHECK(behind.bytes == bytes);
    CHECK(behind.total() % granule == 0);
    CHECK(behind.front % 256 == 0);
    CHECK(behind.front >= 4096 - 256);
    CHECK(behind.back < 256);
    CHECK((bytes % 256 != 0 || behind.back == 0));
    const auto before = mapped_layout(bytes, 4096, BufferGuard::page_before, granule);
    CHECK(before.front == 0);
    CHECK(before.total() == behind.total());
    CHECK(before.back >= 4096);
  }
}
