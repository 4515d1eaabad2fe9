#include <mtmc/core/any.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

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

struct PlainProgram {
  int number = 7;
};
struct RetiringProgram {
  int number = 7;
  void retire() { number = 0; }
  void reload() { number = 8; }
};

/// Memory is host memory; a program writes its number into the first byte of the first buffer.
template <class ProgramType> struct HostBackendOf {
  using Program = ProgramType;
  struct Buffer {
    std::unique_ptr<std::array<std::byte, 64>> memory;
    [[nodiscard]] std::uint64_t handle() const { return reinterpret_cast<std::uint64_t>(memory.get()); }
  };
  Device the_device = sample::device();
  const Device& device() { return the_device; }
  std::vector<Diagnostic> screen(const Kernel&) const { return {}; }
  CompileResult<Program> compile(const Kernel&, const CompileOptions&, std::stop_token) {
    CompileResult<Program> result;
    result.program = std::make_shared<Program>();
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

using HostBackend = HostBackendOf<PlainProgram>;
static_assert(declared_abilities<HostBackend>() == BackendAbilities{});

/// Has every optional ability, and writes down which was called.
struct AbleBackend : HostBackendOf<RetiringProgram> {
  static constexpr int max_concurrency = 3;
  static constexpr bool isolates_programs = true;
  static constexpr bool runs_judge_kernels = true;
  std::vector<std::string>* log;
  explicit AbleBackend(std::vector<std::string>& calls) : log(&calls) {}

  using HostBackendOf<RetiringProgram>::upload;
  [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                               std::stop_token stop) {
    auto result = HostBackendOf<RetiringProgram>::compile(kernel, options, stop);
    result.refused = kernel.source.empty();
    result.timed_out = stop.stop_requested();
    result.seconds = 0.5;
    return result;
  }
  [[nodiscard]] std::string identity() const { return "able"; }
  std::vector<Diagnostic> screen(const Kernel& kernel) const {
    Diagnostic diagnostic;
    diagnostic.message = kernel.source;
    return {diagnostic};
  }
  std::map<std::string, double> resources(Program& program) const {
    return {{"number", static_cast<double>(program.number)}};
  }
  void overwrite_residue(Program&) const { log->push_back("overwrite_residue"); }
  static std::string changed_state(Program& program) { return program.number == 7 ? "" : "number"; }
  void keep_state(Program&, bool keep) const { log->push_back(keep ? "keeps state" : "forgets state"); }
  static std::string binary_hash(const Program& program) { return program.number == 7 ? "seven" : "zero"; }
  [[nodiscard]] std::size_t guard_page_bytes() const { return 4096; }
  [[nodiscard]] static GuardedAllocation guarded_allocation() { return {128, {}}; }
  [[nodiscard]] Buffer allocate_guarded(std::size_t bytes) {
    log->push_back("allocate_guarded");
    return allocate(bytes);
  }
  std::span<const std::byte> view(Buffer& buffer, std::size_t offset, std::size_t bytes) const {
    return std::span<const std::byte>(*buffer.memory).subspan(offset, bytes);
  }
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
              const std::shared_ptr<const void>& owner) {
    log->push_back(owner != nullptr ? "upload of somebody's" : "upload of nobody's");
    upload(buffer, offset, content);
  }
  void fill(Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value) {
    log->push_back("fill");
    std::fill_n(buffer.memory->begin() + static_cast<std::ptrdiff_t>(offset), bytes, value);
  }
  void choose_place() { log->push_back("choose_place"); }
  static Conditions conditions() {
    Conditions reading;
    reading.processors = 2;
    return reading;
  }
  static Profile profile(Program&, const LaunchPlan& plan) {
    Profile result;
    result.reason = plan.launches.at(0).entry;
    return result;
  }
  [[nodiscard]] static std::optional<Kernel> in_double_precision(const Kernel& kernel) {
    return Kernel{kernel.language, kernel.source + " in double", {}};
  }
  [[nodiscard]] static std::optional<DividedKernel> divided(const Kernel& kernel) {
    return DividedKernel{kernel, {{"f", 2, 3}}};
  }
  [[nodiscard]] CompileResult<Program> compile_probed(const Kernel& kernel, const CompileOptions& options,
                                                      std::stop_token stop) {
    return compile(kernel, options, std::move(stop));
  }
  [[nodiscard]] static std::vector<Branch> branches(Program&) { return {{3, 1, true, false}}; }
  void measure_ceilings() { log->push_back("measure_ceilings"); }
  static double measure_read_bandwidth() { return 1e9; }
  [[nodiscard]] static bool spent() { return true; }
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

  struct Tiler {
    static Draft implement(const CodingRequest&, std::stop_token) { return {}; }
    [[nodiscard]] static bool writes(std::string_view optimization, const Language&) {
      return optimization == "tiling";
    }
    [[nodiscard]] static std::vector<Action> feasible_actions(const CodingRequest&,
                                                              std::vector<Action> actions) {
      actions.erase(actions.begin());
      return actions;
    }
  };
  AnyCoder tiler{Tiler{}};
  CHECK(tiler.feasible_actions({}, {Action::stop(), Action::stop()}).size() == 1);
  CHECK(AnyCoder{SerialCoder{}}.feasible_actions({}, {Action::stop()}).size() == 1);
  CHECK(tiler.writes("tiling", languages::cpp));
  CHECK_FALSE(tiler.writes("fusion", languages::cpp));
  CHECK(AnyCoder{SerialCoder{}}.writes("fusion", languages::cpp));

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

TEST_CASE("a backend's twin has every optional ability that the backend has") {
  std::vector<std::string> log;
  AbleBackend able(log);
  for (const auto& entry : enum_names(BackendAbility{})) {
    CAPTURE(entry.name);
    CHECK(has_ability(able, entry.value));
    CHECK_FALSE(declaration_of(entry.value).empty());
  }
  AnyBackend backend{std::ref(able)};
  CHECK(backend.abilities() == abilities_of(able));
  CHECK(backend.identity() == "able");
  CHECK(concurrency_limit_of(backend) == 3);
  CHECK(isolates_programs(backend));
  CHECK(runs_judge_kernels(backend));
  CHECK(backend.screen(sample::kernel()).at(0).message == sample::kernel().source);
  CHECK(guard_page_bytes_of(backend) == 4096);
  CHECK(guarded_allocation_of(backend) == GuardedAllocation{128, {}});
  CHECK(guards_buffers(backend));
  CHECK(conditions_of(backend).processors == 2);
  CHECK(divided_by(backend, sample::kernel())->parts.size() == 1);
  CHECK(double_twin_by(backend, sample::kernel())->source == sample::kernel().source + " in double");
  CHECK(read_bandwidth_again(backend) == 1e9);
  CHECK(is_spent(backend));
  choose_place_of(backend);
  measure_ceilings_of(backend);

  auto buffer = backend.allocate(64);
  const auto content = std::make_shared<std::vector<std::byte>>(2, std::byte{5});
  upload_shared(backend, buffer, 1, std::span<const std::byte>(*content), content);
  fill_buffer(backend, buffer, 2, 3, std::byte{9});
  const auto shown = view_of(backend, buffer, 1, 2);
  REQUIRE(shown.size() == 2);
  CHECK(shown[0] == std::byte{5});
  CHECK(shown[1] == std::byte{9});
  (void)allocate_guarded_by(backend, 128);
  CHECK(log == std::vector<std::string>{"choose_place", "measure_ceilings", "upload of somebody's", "fill",
                                        "allocate_guarded"});

  const auto compiled = backend.compile(sample::kernel(), {}, {});
  REQUIRE(compiled.program);
  CHECK(compiled.seconds == 0.5);
  const auto probed = compile_probed_by(backend, sample::kernel(), {}, {});
  REQUIRE(probed.program);
  CHECK(branches_of(backend, *probed.program) == std::vector<Branch>{{3, 1, true, false}});
  CHECK(profile_by(backend, *compiled.program, sample::plan())->reason == sample::plan().launches[0].entry);
  CHECK(resources_of(backend, *compiled.program).at("number") == 7);
  CHECK(changed_state_of(backend, *compiled.program).empty());
  CHECK(binary_hash_of(backend, *compiled.program) == "seven");
  overwrite_residue_by(backend, *compiled.program);
  CHECK(log.back() == "overwrite_residue");
  reload_program(*compiled.program);
  CHECK(resources_of(backend, *compiled.program).at("number") == 8);
  retire_program(*compiled.program);
  CHECK(resources_of(backend, *compiled.program).at("number") == 0);
  CHECK(changed_state_of(backend, *compiled.program) == "number");
  keep_state_of(backend, *compiled.program, true);
  CHECK(able.log->back() == "keeps state");
}

TEST_CASE("the compiler's whole answer goes through a backend's twin") {
  std::vector<std::string> log;
  AnyBackend backend{AbleBackend(log)};
  std::stop_source source;
  CHECK_FALSE(backend.compile(sample::kernel(), {}, {}).refused);
  CHECK(backend.compile({languages::cpp, "", {}}, {}, {}).refused);
  CHECK_FALSE(backend.compile(sample::kernel(), {}, source.get_token()).timed_out);
  source.request_stop();
  CHECK(backend.compile(sample::kernel(), {}, source.get_token()).timed_out);
}

TEST_CASE("a backend's twin lacks what the backend lacks, and does what is right without it") {
  AnyBackend backend{HostBackend{}};
  CHECK(backend.abilities() == BackendAbilities{});
  CHECK(backend.screen(sample::kernel()).empty());
  CHECK(guard_page_bytes_of(backend) == 0);
  CHECK(guarded_allocation_of(backend) == GuardedAllocation{});
  CHECK_FALSE(guards_buffers(backend));
  CHECK(allocate_guarded_by(backend, 64).handle() != 0);
  CHECK_FALSE(double_twin_by(backend, sample::kernel()));
  CHECK(compile_probed_by(backend, sample::kernel(), {}, {}).program == nullptr);
  CHECK_FALSE(read_bandwidth_again(backend));
  CHECK_FALSE(is_spent(backend));
  CHECK(concurrency_limit_of(backend) == unlimited_concurrency);
  choose_place_of(backend);
  measure_ceilings_of(backend);
  auto buffer = backend.allocate(64);
  const auto content = std::make_shared<std::vector<std::byte>>(2, std::byte{5});
  upload_shared(backend, buffer, 1, std::span<const std::byte>(*content), content);
  fill_buffer(backend, buffer, 2, 3, std::byte{9});
  CHECK(view_of(backend, buffer, 1, 2).empty());
  std::array<std::byte, 4> got{};
  backend.download(buffer, 1, got);
  CHECK(got == std::array{std::byte{5}, std::byte{9}, std::byte{9}, std::byte{9}});
  const auto compiled = backend.compile(sample::kernel(), {}, {});
  CHECK_FALSE(profile_by(backend, *compiled.program, sample::plan()));
  CHECK(resources_of(backend, *compiled.program).empty());
  CHECK(binary_hash_of(backend, *compiled.program).empty());
  overwrite_residue_by(backend, *compiled.program);
  reload_program(*compiled.program);
  retire_program(*compiled.program);

  SUBCASE("also where a twin holds a twin") {
    AnyBackend outer{std::ref(backend)};
    CHECK(outer.abilities() == BackendAbilities{});
    CHECK_FALSE(read_bandwidth_again(outer));
  }
}
