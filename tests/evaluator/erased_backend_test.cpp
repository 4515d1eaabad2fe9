// A backend is judged with in its type-erased form as it is in its own: the evaluator asks the same of it,
// and comes to the same verdicts for the same reasons.
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "fake_backend.hpp"
#include "fake_gpu.hpp"

using namespace mtmc;
using fake::Call;

namespace {

using Asked = std::shared_ptr<std::set<std::string>>;

/// Has every optional ability, and writes down which it was asked for.
template <class Base, bool isolates> class Able : public Base {
public:
  using Program = typename Base::Program;
  using Buffer = typename Base::Buffer;
  static constexpr bool isolates_programs = isolates;
  static constexpr int max_concurrency = 2;

  Able(std::shared_ptr<fake::World> world, Asked asked) : Base(std::move(world)), asked_(std::move(asked)) {}

  [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                               std::stop_token stop) {
    if (options.plan.launches.front().entry == "judge_work") note("judge's kernel");
    auto result = Base::compile(kernel, options, std::move(stop));
    if (kernel.source.find("forbidden") == std::string::npos) return result;
    result.program.reset();
    result.refused = true;
    Diagnostic diagnostic;
    diagnostic.message = "it holds what it must not";
    result.diagnostics = {diagnostic};
    return result;
  }
  [[nodiscard]] std::string identity() const { return "able"; }
  [[nodiscard]] std::vector<Diagnostic> screen(const Kernel& kernel) const {
    note("screen");
    return Base::screen(kernel);
  }
  [[nodiscard]] std::map<std::string, double> resources(Program&) const {
    note("resources");
    return {{"spills", 3}};
  }
  [[nodiscard]] std::size_t guard_page_bytes() const {
    note("guard_page_bytes");
    return 0;
  }
  [[nodiscard]] GuardedAllocation guarded_allocation() const {
    note("guarded_allocation");
    return {512, {}};
  }
  [[nodiscard]] Buffer allocate_guarded(std::size_t bytes) {
    note("allocate_guarded");
    return Base::allocate(bytes);
  }
  void overwrite_residue(Program&) { note("overwrite_residue"); }
  [[nodiscard]] std::string changed_state(Program&) {
    note("changed_state");
    return {};
  }
  void keep_state(Program&, bool) const { note("keep_state"); }
  [[nodiscard]] std::string binary_hash(const Program&) {
    note("binary_hash");
    return "hash";
  }
  using Base::upload;
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
              const std::shared_ptr<const void>& owner) {
    note(owner != nullptr ? "shared upload" : "shared upload of nobody's");
    upload(buffer, offset, content);
  }
  [[nodiscard]] std::span<const std::byte> view(Buffer& buffer, std::size_t offset, std::size_t bytes) const {
    note("view");
    return {buffer.data() + offset, bytes};
  }
  void fill(Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value) {
    note("fill");
    const std::vector<std::byte> content(bytes, value);
    upload(buffer, offset, content);
  }
  void choose_place() { note("choose_place"); }
  [[nodiscard]] Conditions conditions() const {
    note("conditions");
    return Base::conditions();
  }
  [[nodiscard]] Profile profile(Program& program, const LaunchPlan& plan) {
    note("profile");
    return Base::profile(program, plan);
  }
  [[nodiscard]] std::optional<Kernel> in_double_precision(const Kernel& kernel) const {
    note("in_double_precision");
    return Base::in_double_precision(kernel);
  }
  [[nodiscard]] std::optional<DividedKernel> divided(const Kernel&) const {
    note("divided");
    return std::nullopt;
  }
  [[nodiscard]] CompileResult<Program> compile_probed(const Kernel& kernel, const CompileOptions& options,
                                                      std::stop_token stop) {
    note("compile_probed");
    return Base::compile(kernel, options, std::move(stop));
  }
  [[nodiscard]] std::vector<Branch> branches(Program&) const {
    note("branches");
    return {{3, 1, true, true}};
  }
  void measure_ceilings() { note("measure_ceilings"); }
  [[nodiscard]] double measure_read_bandwidth() const {
    note("measure_read_bandwidth");
    return Base::measure_read_bandwidth();
  }

private:
  // Abilities are asked for by several threads at once.
  void note(const char* what) const {
    static std::mutex lock;
    const std::scoped_lock alone(lock);
    asked_->insert(what);
  }
  Asked asked_;
};

template <class T> void add(const Call& call) {
  const auto a = call.buffer<const T>("A");
  const auto c = call.buffer<T>("C");
  T sum = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    sum += a[i] * static_cast<T>(0.125);
    c[i] = sum;
  }
}

Kernel kernel(const std::string& entry, const std::string& more = {}) {
  return {languages::cpp, more + "//@ launch " + entry + "(A, C, n)\n", {}};
}

std::shared_ptr<fake::World> world() {
  auto world = std::make_shared<fake::World>();
  auto& kernels = world->kernels;
  kernels["start"] = {add<float>};
  kernels["twin"] = {add<double>};
  kernels["honest"] = {add<float>, 0.5e-3};
  kernels["wrong"] = {[](const Call& call) {
    add<float>(call);
    call.buffer<float>("C").back() += 1;
  }};
  // What a process remembers shows when there is a fresh one.
  kernels["forgetful"] = {[](const Call& call) {
    add<float>(call);
    if (call.earlier == 1) call.buffer<float>("C").front() += 1;
  }};
  kernels["too_fast"] = {add<float>, 1e-12, 0};
  Diagnostic banned;
  banned.message = "banned";
  world->screened[kernel("honest", "// banned\n").source] = {banned};
  world->in_double = [](const Kernel& from) -> std::optional<Kernel> {
    auto text = from.source;
    return Kernel{from.language, text.replace(text.find("start"), 5, "twin"), {}};
  };
  world->device.measured.read_bandwidth = 1e6;
  world->bandwidth_now = 2e6;
  world->conditions = [](int) {
    Conditions reading;
    reading.readings = {{"temperature_celsius", 61}};
    return reading;
  };
  return world;
}

Task task() {
  Task result;
  result.name = "sums";
  result.kernel = kernel("start");
  result.arguments = {{.name = "A", .role = ArgumentRole::input, .shape = {"n"}},
                      {.name = "C", .role = ArgumentRole::output, .shape = {"n"}},
                      {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32}};
  result.sizes = {{.symbols = {{"n", 300}}}, {.symbols = {{"n", 17}}, .weight = 0}};
  return result;
}

/// What can be said of an evaluation whatever the time of day.
struct Answer {
  Verdict verdict;
  std::string rule;
  std::vector<Diagnostic> diagnostics;
  Comparison comparison;
  std::string binary_hash;
  std::string incumbent_binary_hash;
  std::map<std::string, double> resources;
  std::optional<Profile> profile;
  std::string truth;
  std::string temperature;
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// All answers of an evaluator, and what its backend was asked for.
struct Outcome {
  std::string identity;
  std::vector<Answer> answers;
  std::set<std::string> asked;
};

template <class B> Outcome judge_all(B backend, const Asked& asked) {
  Outcome outcome;
  KernelEvaluatorOptions options;
  options.seed = 42;
  options.profile = true;
  KernelEvaluator<B> evaluator(std::move(backend), options);
  outcome.identity = evaluator.identity();
  for (const auto& candidate :
       {kernel("honest"), kernel("wrong"), kernel("forgetful"), kernel("honest", "// banned\n"),
        kernel("honest", "// forbidden\n"), kernel("too_fast"), kernel("undeclared")})
    for (const auto purpose : {Purpose::explore, Purpose::promote}) {
      const auto answer = evaluator.evaluate({task(), candidate, task().kernel, purpose, {}}, {});
      const auto said = [&](const char* key) {
        return answer.environment.contains(key) ? answer.environment.at(key) : "nothing";
      };
      outcome.answers.push_back({answer.verdict, answer.rule, answer.diagnostics, answer.comparison,
                                 answer.binary_hash, answer.incumbent_binary_hash, answer.resources,
                                 answer.profile, said("truth"), said("temperature_celsius")});
    }
  outcome.asked = *asked;
  return outcome;
}

template <class Base> struct Isolated {
  using Backend = Able<Base, true>;
};
template <class Base> struct Shared {
  using Backend = Able<Base, false>;
};

} // namespace

TEST_CASE_TEMPLATE("a backend with every ability is asked for all of them in either form", Kind,
                   Shared<fake::Backend>, Shared<fake::Gpu>, Isolated<fake::Backend>) {
  using B = typename Kind::Backend;
  const auto asked = std::make_shared<std::set<std::string>>();
  const auto direct = judge_all(B(world(), asked), asked);
  asked->clear();
  const auto erased = judge_all(AnyBackend(B(world(), asked)), asked);

  CHECK(direct.identity == erased.identity);
  CHECK(direct.asked == erased.asked);
  REQUIRE(direct.answers.size() == erased.answers.size());
  for (std::size_t i = 0; i < direct.answers.size(); ++i) {
    CAPTURE(i);
    CHECK(direct.answers[i].verdict == erased.answers[i].verdict);
    CHECK(direct.answers[i] == erased.answers[i]);
  }
  // And it is worth asking.
  CHECK(direct.answers[0].verdict == Verdict::correct);
  CHECK(direct.answers[0].truth == "f64");
  CHECK(direct.answers[0].temperature == "61");
  CHECK(direct.answers[0].resources.at("spills") == 3);
  CHECK(direct.answers[0].profile);
  CHECK(direct.answers[0].binary_hash == "hash");
  CHECK(direct.answers[0].incumbent_binary_hash == "hash");
  CHECK(direct.answers[2].verdict == Verdict::wrong_result);
  CHECK(direct.answers[6].verdict == Verdict::refused);
  CHECK(direct.answers[8].verdict == Verdict::refused);
  CHECK(direct.answers[10].verdict == Verdict::implausible);
  for (const auto* what : {"screen", "resources", "changed_state", "keep_state", "binary_hash",
                           "guarded_allocation", "allocate_guarded", "overwrite_residue", "choose_place",
                           "conditions", "profile", "in_double_precision", "divided", "compile_probed",
                           "branches", "measure_ceilings", "measure_read_bandwidth"}) {
    CAPTURE(what);
    CHECK(direct.asked.contains(what));
  }
  const bool on_device = has_ability(B(world(), asked), BackendAbility::runs_judge_kernels);
  for (const auto* what : {"view", "shared upload", "fill"}) {
    CAPTURE(what);
    CHECK((on_device || direct.asked.contains(what)));
  }
  CHECK(direct.asked.contains("judge's kernel") == on_device);
}
