// When a timing counts as disturbed, what is said of it, and that it changes no verdict.
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/evaluator/timing/timing_conditions.hpp>

#include <doctest/doctest.h>

#include <memory>

#include "../fake_backend.hpp"

using namespace mtmc;
using fake::Call;

namespace {

/// Readings over so many seconds on so many processors.
Conditions reading(double seconds, int processors, double others, double stolen = 0) {
  Conditions result;
  result.watched_seconds = seconds;
  result.processors = processors;
  result.others_seconds = others;
  result.stolen_seconds = stolen;
  return result;
}

Kernel kernel(const std::string& entry) {
  return {languages::cpp, "//@ launch " + entry + "(x, y, N)\n", {}};
}

struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task task{};

  Bench() {
    task.name = "double";
    task.kernel = kernel("start");
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}},
                      {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32}};
    task.sizes = {{.symbols = {{"N", 300}}}};
    const auto twice = [](const Call& call) {
      const auto x = call.buffer<const float>("x");
      const auto y = call.buffer<float>("y");
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
    };
    world->kernels["start"] = {twice};
    world->kernels["faster"] = {twice, 0.5e-3};
    world->kernels["wrong"] = {[](const Call& call) { call.buffer<float>("y")[0] = 7; }};
    world->device.software["compiler"] = "fake 1.0";
    world->device.clock_hz = 3e9;
  }
  [[nodiscard]] Evaluation judge(const std::string& entry, Purpose purpose = Purpose::explore) const {
    KernelEvaluatorOptions options{.seed = 42};
    options.defences.calls_in_a_row = false; // only timing is to make groups here
    KernelEvaluator<fake::Backend> evaluator(fake::Backend(world), options);
    return evaluator.evaluate({task, kernel(entry), task.kernel, purpose, {}}, {});
  }
};

static_assert(ReportsConditions<fake::Backend>);

} // namespace

TEST_CASE("others are too busy beyond a tenth of a processor, if the counters can tell") {
  struct Example {
    double seconds, others, variance;
    double busy;
    bool disturbed;
  };
  for (const auto& [seconds, others, variance, busy, disturbed] : {
           Example{1, 0.05, 0, 0.05, false},      // the usual background
           Example{1, 0.11, 0, 0.11, true},       //
           Example{1, 1.0, 0, 1.0, true},         // one other process
           Example{1, 0.11, 0.0016, 0.11, false}, // within three standard deviations of 0.04 s
           Example{1, 0.13, 0.0016, 0.13, true},  //
           Example{1, -0.01, 0, 0, false},        // coarse counters may run backwards
       }) {
    auto before = reading(5, 2, 3);
    auto after = reading(5 + seconds, 2, 3 + others);
    before.counter_variance = 1;
    after.counter_variance = 1 + variance;
    const auto met = conditions_between(before, after);
    CHECK(*met.others_busy == doctest::Approx(busy));
    CHECK(met.busy == disturbed);
    CHECK((disturbances(met) == "others_busy") == disturbed);
    CHECK(timing_warnings(met, true).size() == (disturbed ? 1 : 0));
  }
}

TEST_CASE("the hypervisor may take two per cent of the watched processors' time") {
  for (const auto& [stolen, disturbed] : {std::pair{0.07, false}, {0.09, true}}) {
    const auto met = conditions_between({}, reading(1, 4, 0, stolen));
    CHECK(*met.steal == doctest::Approx(stolen / 4));
    CHECK(met.stolen == disturbed);
    CHECK(timing_warnings(met, true).size() == (disturbed ? 1 : 0));
  }
}

TEST_CASE("throttling is what was counted meanwhile, and any is worth a warning") {
  Conditions before;
  Conditions after;
  CHECK_FALSE(conditions_between(before, after).throttled);
  before.throttle_events = {{"core", 5}, {"package", 100}};
  after.throttle_events = before.throttle_events;
  CHECK(conditions_between(before, after).throttled == 0);
  CHECK(disturbances(conditions_between(before, after)).empty());
  after.throttle_events = {{"core", 7}, {"package", 101}};
  CHECK(conditions_between(before, after).throttled == 3);
  const auto met = conditions_between(before, after);
  CHECK(disturbances(met) == "throttled");
  Evaluation evaluation;
  record_conditions(met, true, evaluation);
  CHECK(evaluation.environment.at("throttled") == "3 (core, package)");
  REQUIRE(evaluation.diagnostics.size() == 1);
  CHECK(evaluation.diagnostics[0].message.starts_with(
      "the clock was lowered 3 times for heat or power (core, package) while this was timed"));
}

TEST_CASE("what else a device tells of the end of a timing is recorded as it is") {
  Conditions before;
  before.readings = {{"temperature_celsius", 40}};
  Conditions after;
  after.readings = {{"temperature_celsius", 61}, {"power_watts", 433.4}};
  Evaluation evaluation;
  record_conditions(conditions_between(before, after), true, evaluation);
  CHECK(evaluation.environment.at("temperature_celsius") == "61");
  CHECK(evaluation.environment.at("power_watts") == "433");
  CHECK(evaluation.diagnostics.empty());
}

TEST_CASE("without counters nothing is known and nothing is said") {
  const auto met = conditions_between({}, {});
  CHECK_FALSE(met.others_busy);
  CHECK_FALSE(met.steal);
  CHECK_FALSE(met.throttled);
  Evaluation evaluation;
  record_conditions(met, true, evaluation);
  CHECK(evaluation.environment == std::map<std::string, std::string>{{"drift", "1.000"}});
  CHECK(evaluation.diagnostics.empty());
}

TEST_CASE("drift counts beyond five per cent and beyond the spread of the times") {
  struct Example {
    std::vector<double> seconds;
    double drift;
    bool drifted;
  };
  for (const auto& [seconds, drift, drifted] : {
           Example{{1, 1, 1, 1.2, 1.2}, 1, false}, // too few to tell
           Example{{1, 1, 1, 1.04, 1.04, 1.04}, 1.04, false},
           Example{{1, 1, 1, 1.06, 1.06, 1.06}, 1.06, true},
           Example{{1.06, 1.06, 1.06, 1, 1, 1}, 1 / 1.06, true},
           Example{{1, 1.3, 0.8, 1.1, 1.4, 0.9}, 1.1, false}, // noise
           Example{{1, 1.01, 0.99, 1.1, 1.11, 1.09}, 1.1, true},
       }) {
    TimingConditions met;
    add_times(met, seconds);
    CHECK(met.drift == doctest::Approx(drift));
    CHECK(met.drifted == drifted);
  }
  TimingConditions several;
  add_times(several, std::vector<double>{1, 1, 1, 0.9, 0.9, 0.9});
  add_times(several, std::vector<double>{1, 1, 1, 1, 1, 1});
  CHECK(several.drift == doctest::Approx(0.9)); // the size where it is furthest from 1
}

TEST_CASE("warnings say what happened, what is uncertain, and what to do") {
  TimingConditions met;
  met.drift = 1.08;
  met.processors = 2;
  met.others_busy = 0.98;
  met.steal = 0.034;
  met.throttled = 1;
  met.drifted = met.busy = met.stolen = true;
  const auto warnings = timing_warnings(met, true);
  REQUIRE(warnings.size() == 4);
  CHECK(warnings[0].message ==
        "the machine got 8 % slower from the first half of the timing to the second; the speed-up compares "
        "kernels "
        "timed in turn, so what hits both mostly cancels, but its interval and the seconds are uncertain");
  CHECK(warnings[1].message.starts_with("others kept 1.0 of 2 processors busy while this was timed; "));
  CHECK(
      warnings[2].message.starts_with("the hypervisor gave 3.4 % of the processors' time to other machines"));
  CHECK(warnings[3].message.starts_with("the clock was lowered 1 time for heat or power"));
  for (const auto& warning : warnings) {
    CHECK(warning.severity == Severity::warning);
    CHECK_FALSE(warning.remedy.empty());
  }
  // Without an incumbent there is no ratio that could stand.
  for (const auto& warning : timing_warnings(met, false))
    CHECK(warning.message.find("speed-up") == std::string::npos);
  CHECK(disturbances(met) == "drift others_busy steal throttled");
}

TEST_CASE("a busy machine is recorded and warned of, and changes no verdict") {
  Bench bench;
  const auto quiet = bench.judge("faster");
  CHECK(quiet.verdict == Verdict::correct);
  CHECK(quiet.diagnostics.empty());
  CHECK_FALSE(quiet.environment.contains("disturbed_by"));
  CHECK_FALSE(quiet.environment.contains("others_busy"));
  CHECK(quiet.environment.at("clock_mhz") == "3000");

  bench.world->conditions = [](int groups) {
    auto now = reading(0.1 * groups, 4, 0.15 * groups, 0.001 * groups);
    now.throttle_events = {{"core", 0}};
    now.clock_hz = 2.5e9;
    return now;
  };
  const auto busy = bench.judge("faster");
  CHECK(busy.verdict == quiet.verdict);
  CHECK(busy.comparison == quiet.comparison);
  CHECK(busy.rule.empty());
  REQUIRE(busy.diagnostics.size() == 1);
  CHECK(busy.diagnostics[0].severity == Severity::warning);
  CHECK(busy.diagnostics[0].message.starts_with("others kept 1.5 of 4 processors busy"));
  CHECK(busy.environment.at("others_busy") == "1.50");
  CHECK(busy.environment.at("disturbed_by") == "others_busy");
  CHECK(busy.environment.at("steal") == "0.003"); // 0.0025, rounded
  CHECK(busy.environment.at("throttled") == "0");
  CHECK(busy.environment.at("clock_mhz") == "2500");
}

TEST_CASE("a machine that gets slower while it times is noticed, and the ratio stands") {
  Bench bench;
  // All kernels alike, after the warm-up and three pairs.
  for (auto& [entry, made] : bench.world->kernels) {
    auto body = made.body;
    const double seconds = made.seconds;
    auto* const world = bench.world.get();
    auto* const here = &made;
    made.noise = 0;
    made.body = [=](const Call& call) {
      body(call);
      here->seconds = world->timed_groups > 8 ? 1.5 * seconds : seconds;
    };
  }
  const auto answer = bench.judge("faster", Purpose::promote);
  CHECK(answer.verdict == Verdict::correct);
  REQUIRE(answer.speed_up);
  CHECK(answer.speed_up->value == doctest::Approx(2).epsilon(0.01));
  REQUIRE(answer.diagnostics.size() == 1);
  CHECK(answer.diagnostics[0].message.starts_with("the machine got 50 % slower"));
  CHECK(answer.environment.at("drift") == "1.500");
  CHECK(answer.environment.at("disturbed_by") == "drift");
}

TEST_CASE("every evaluation says what it was taken with, refused ones, too") {
  Bench bench;
  bench.world->conditions = [](int groups) { return reading(0.1 * groups, 4, 0.4 * groups); };
  const std::map<std::string, Verdict> expected{
      {"faster", Verdict::correct}, {"wrong", Verdict::wrong_result}, {"unheard_of", Verdict::compile_error}};
  for (const auto& example : expected) {
    const auto answer = bench.judge(example.first);
    CHECK_MESSAGE(answer.verdict == example.second, example.first);
    for (const char* key : {"protocol", "device", "arch", "compute_units", "compiler", "clock_mhz", "load"})
      CHECK_MESSAGE(answer.environment.contains(key), key);
    for (const char* key : {"drift", "others_busy", "steal"})
      CHECK_MESSAGE(answer.environment.contains(key) == answer.correct(), key);
    // A coder cannot mend the machine.
    if (!answer.correct())
      for (const auto& diagnostic : answer.diagnostics) CHECK(diagnostic.severity == Severity::error);
  }
}
