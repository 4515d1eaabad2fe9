#include <mtmc/core/any.hpp>

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <type_traits>

#include "sample_nouns.hpp"

using namespace mtmc;

namespace {

/// Move-only parts that count their calls; some with optional abilities, some without.
struct CountingPolicy {
  std::unique_ptr<int> calls = std::make_unique<int>(0);
  ActionDistribution distribution(const Observation&, std::span<const Action> legal, std::stop_token) {
    ++*calls;
    ActionDistribution answer;
    answer.probabilities.assign(legal.size(), 1.0 / static_cast<double>(legal.size()));
    return answer;
  }
  static std::string identity() { return "counting policy"; }
};

struct SerialCoder {
  static constexpr int max_concurrency = 1;
  std::unique_ptr<int> move_only;
  Draft implement(const CodingRequest& request, std::stop_token) {
    Draft draft;
    draft.message = request.action.key();
    return draft;
  }
};

struct EmptyFinder {
  Structure find(const Task&, const Kernel& kernel) const { return {kernel.id()}; }
};

struct PlainEvaluator {
  Device the_device = sample::device();
  const Device& device() const { return the_device; }
  Evaluation evaluate(const EvaluationRequest&, std::stop_token) { return sample::evaluation(); }
};

struct PreparingEvaluator : PlainEvaluator {
  std::string* prepared;
  explicit PreparingEvaluator(std::string& where) : prepared(&where) {}
  void prepare(const Task& task, std::stop_token) { *prepared = task.name; }
  [[nodiscard]] double start_seconds() const { return 30; }
};

/// Memory is host memory; a program writes its number into the first byte of the first buffer.
struct HostBackend {
  struct Program {
    int number;
  };
  struct Buffer {
    std::unique_ptr<std::array<std::byte, 64>> memory;
    [[nodiscard]] std::uint64_t handle() const { return reinterpret_cast<std::uint64_t>(memory.get()); }
  };
  Device the_device = sample::device();
  const Device& device() { return the_device; }
  CompileResult<Program> compile(const Kernel&, const CompileOptions&, std::stop_token) {
    CompileResult<Program> result;
    result.program = std::make_shared<Program>(Program{7});
    result.resources["number"] = 7;
    return result;
  }
  Buffer allocate(std::size_t) { return {std::make_unique<std::array<std::byte, 64>>()}; }
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
    std::copy(content.begin(), content.end(), buffer.memory->begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
    std::copy_n(buffer.memory->begin() + static_cast<std::ptrdiff_t>(offset), target.size(), target.begin());
  }
  RunStatus run(Program& program, const LaunchPlan& plan, Deadline) {
    auto* memory = reinterpret_cast<std::byte*>(plan.launches.at(0).arguments.at(0).bound.handle);
    *memory = static_cast<std::byte>(program.number);
    return {};
  }
  TimedRun time(Program&, std::span<const LaunchPlan> group, bool cold, Deadline) {
    return {{}, cold ? static_cast<double>(group.size()) : 0.0};
  }
};

static_assert(!std::is_copy_constructible_v<AnyPolicy> && !std::is_copy_constructible_v<AnyBackend>);
static_assert(!std::is_default_constructible_v<AnyEvaluator>, "a twin is never empty");
static_assert(!std::is_constructible_v<AnyPolicy, int>, "only policies fit");
static_assert(!PreparesTask<PlainEvaluator> && PreparesTask<PreparingEvaluator>);

} // namespace

TEST_CASE("twins hold move-only parts and forward their concept's functions") {
  AnyPolicy policy{CountingPolicy{}};
  const std::array legal{sample::action(), Action::stop()};
  CHECK(policy.distribution(sample::observation(), legal, {}).probabilities == std::vector<double>{0.5, 0.5});

  AnyCoder coder{SerialCoder{}};
  CHECK(coder.implement(sample::coding_request(), {}).message == "tiling|f/i");

  const AnyRegionFinder finder{EmptyFinder{}};
  CHECK(finder.find(sample::task(), sample::kernel()).kernel_id == sample::kernel().id());

  AnyEvaluator evaluator{PlainEvaluator{}};
  CHECK(evaluator.device() == sample::device());
  CHECK(evaluator.evaluate(sample::evaluation_request(), {}) == sample::evaluation());
}

TEST_CASE("optional abilities are forwarded where the part has them, harmless where not") {
  std::string prepared;
  AnyEvaluator preparing{PreparingEvaluator{prepared}};
  preparing.prepare(sample::task(), {});
  CHECK(prepared == "gemm");
  AnyEvaluator plain{PlainEvaluator{}};
  plain.prepare(sample::task(), {});
  CHECK(plain.identity().empty());
  CHECK(plain.start_seconds() == 0);
  CHECK(AnyEvaluator{PreparingEvaluator{prepared}}.start_seconds() == 30);
  CHECK(plain.concurrency_limit() == unlimited_concurrency);

  CHECK(AnyPolicy{CountingPolicy{}}.identity() == "counting policy");
  CHECK(AnyCoder{SerialCoder{}}.concurrency_limit() == 1);
  CHECK(concurrency_limit_of(AnyCoder{SerialCoder{}}) == 1);
}

TEST_CASE("a twin may hold a twin, and moving keeps what is held") {
  AnyPolicy inner{CountingPolicy{}};
  AnyPolicy moved = std::move(inner);
  CHECK(moved.identity() == "counting policy");
  // NOLINTNEXTLINE(bugprone-use-after-move): that it throws is the point
  CHECK_THROWS_AS((void)inner.identity(), Error);
}

TEST_CASE("a backend's programs and buffers go through its twin") {
  AnyBackend backend{HostBackend{}};
  const auto compiled = backend.compile(sample::kernel(), {}, {});
  REQUIRE(compiled.program);
  CHECK(compiled.resources.at("number") == 7);
  auto buffer = backend.allocate(64);
  LaunchPlan plan = sample::plan();
  plan.launches[0].arguments[0].bound.handle = buffer.handle();
  const std::array content{std::byte{1}, std::byte{2}};
  backend.upload(buffer, 0, content);
  CHECK(backend.run(*compiled.program, plan, Deadline::max()).finished());
  std::array<std::byte, 2> got{};
  backend.download(buffer, 0, got);
  CHECK(got == std::array{std::byte{7}, std::byte{2}});
  const std::array group{plan, plan};
  CHECK(backend.time(*compiled.program, group, true, Deadline::max()).seconds == 2);
  CHECK_FALSE(backend.conditions().others_seconds); // it cannot tell
  AnyBackend::Program none;
  CHECK_THROWS_AS((void)backend.run(none, plan, Deadline::max()), Error);
}
