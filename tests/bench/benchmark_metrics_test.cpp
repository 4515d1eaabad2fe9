#include <mtmc/bench.hpp>
#include <mtmc/core/error.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace mtmc;

namespace {

/// A problem whose candidate took that long where eager took 1 s; 0: it is wrong; below: it was not even
/// called.
BenchmarkResult result(std::string problem, double seconds, std::string level = "1", std::string flaw = {}) {
  BenchmarkResult one{.suite = "KernelBench",
                      .level = std::move(level),
                      .problem = std::move(problem),
                      .flaw = std::move(flaw)};
  one.rules["strict"] = {.called = seconds >= 0,
                         .correct = seconds > 0,
                         .seconds = seconds > 0 ? seconds : 0,
                         .baselines = {{"eager", 1.0}, {"compile", 0.5}},
                         .library_share = 0.5};
  return one;
}

std::vector<BenchmarkResult> five() {
  return {result("a", 0.25), result("b", 0.5), result("c", 1.0, "2"), result("d", 0, "2", "zeros pass"),
          result("e", -1, "2")};
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

} // namespace

TEST_SUITE("metrics of a benchmark") {
  TEST_CASE("accuracies, fast_p and means are counted over all problems, failures as 0") {
    const auto metrics = benchmark_metrics(five());
    CHECK(metrics.problems == 5);
    CHECK(metrics.timed == 3);
    CHECK(metrics.flawed == 1);
    CHECK(metrics.call_accuracy.value == 4.0 / 5);
    CHECK(metrics.execute_accuracy.value == 3.0 / 5);
    REQUIRE(metrics.fast.size() == 2);
    CHECK(metrics.fast[0].second.value == 2.0 / 5); // 1.0 is not more than 1
    CHECK(metrics.fast[1].second.value == 1.0 / 5); // nor is 2.0 more than 2
    CHECK(metrics.mean.value == (4.0 + 2.0 + 1.0) / 5);
    CHECK(metrics.geometric_mean.value == doctest::Approx(2.0));
    CHECK(metrics.median.value == 2.0);
    CHECK(metrics.library_share == 0.5);
  }

  TEST_CASE("over another baseline, and without problems whose rule tells nothing") {
    const auto metrics = benchmark_metrics(five(), {.baseline = "compile", .with_flawed = false});
    CHECK(metrics.problems == 4);
    CHECK(metrics.execute_accuracy.value == 3.0 / 4);
    CHECK(metrics.median.value == 1.0);
    CHECK(benchmark_metrics(five(), {.baseline = "nobody's"}).timed == 0);
    CHECK(benchmark_metrics(five(), {.rules = "compatible"}).problems == 0);
  }

  TEST_CASE("what was skipped counts nowhere") {
    auto results = five();
    results[0].skipped = "the reference raises";
    CHECK(benchmark_metrics(results).problems == 4);
    CHECK(benchmark_metrics(results).skipped == 1);
  }

  TEST_CASE("intervals hold the figure, are the same for the same seed, and are none without draws") {
    const auto metrics = benchmark_metrics(five(), {.seed = 7});
    CHECK(metrics.mean.low <= metrics.mean.value);
    CHECK(metrics.mean.high >= metrics.mean.value);
    CHECK(metrics.mean.low < metrics.mean.high);
    CHECK(benchmark_metrics(five(), {.seed = 7}).mean.low == metrics.mean.low);
    CHECK(benchmark_metrics(five(), {.draws = 0}).mean.low == benchmark_metrics(five()).mean.value);
    CHECK(benchmark_metrics({}).problems == 0);
  }

  TEST_CASE("an interval of speed-ups knows nothing of draws that have none") {
    const std::vector results{result("a", 0.5), result("b", 2.0), result("c", 0)};
    const auto metrics = benchmark_metrics(results);
    CHECK(metrics.geometric_mean.value == doctest::Approx(1.0));
    CHECK(metrics.geometric_mean.low == doctest::Approx(0.5));
    CHECK(metrics.geometric_mean.high == doctest::Approx(2.0));
    const std::vector none{result("c", 0)};
    CHECK(benchmark_metrics(none).median.high == 0);
  }

  TEST_CASE("times that are no times give no speed-up") {
    auto one = result("a", 1.0);
    one.rules["strict"].seconds = 0;
    one.rules["strict"].correct = true;
    CHECK(benchmark_metrics(std::vector{one}).timed == 0);
    CHECK(benchmark_metrics(std::vector{one}).execute_accuracy.value == 1);
  }

  TEST_CASE("the table has a row for each level and one for all, and names what is left out") {
    auto results = five();
    results.push_back(
        {.suite = "KernelBench", .level = "4", .problem = "gpt", .skipped = "needs | a network"});
    const auto table = benchmark_table(results, {.draws = 0});
    CHECK(has(table, "**Rules: strict, over compile**"));
    CHECK(has(table, "| level 1 | 2 | 1.00 | 1.00 | 1.00 | 0.50 | 3.00 | 2.83 | 3.00 | 0.50 |"));
    CHECK(has(table, "| all without flawed ones | 4 |"));
    CHECK(has(table, "- KernelBench level 4 gpt: needs   a network"));
    CHECK(has(table, "- KernelBench level 2 d: zeros pass"));
  }
}

TEST_SUITE("results of a benchmark as lines") {
  TEST_CASE("a line comes back as it was, and the last one of a problem counts") {
    auto again = result("a", 0.125);
    again.environment = {{"device", "NVIDIA H100"}};
    const auto results = read_benchmark_results(
        benchmark_line(five()[0]) + "\n\n" + benchmark_line(five()[1]) + '\n' + benchmark_line(again) + '\n');
    REQUIRE(results.size() == 2);
    CHECK(results[0] == again);
    CHECK(results[1] == five()[1]);
  }

  TEST_CASE("a last line that was cut off is left out, any other one is an error that names it") {
    const auto whole = benchmark_line(five()[0]) + '\n';
    CHECK(read_benchmark_results(whole + whole.substr(0, 20)).size() == 1);
    CHECK_THROWS_WITH_AS((void)read_benchmark_results(whole + "{\"suite\": 3}\n", "results.jsonl"),
                         doctest::Contains("results.jsonl, line 2"), Error);
    CHECK_THROWS_AS((void)read_benchmark_results("nonsense\n" + whole), Error);
    CHECK(read_benchmark_results("").empty());
  }
}
