#include <mtmc/bench.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

using namespace mtmc;

namespace {

std::string names_of(const std::vector<BenchmarkProblem>& problems) {
  std::string names;
  for (const auto& problem : problems) names += problem.level + '/' + problem.name + ' ';
  return names;
}

/// A checkout with these files below `KernelBench`.
class Checkout {
public:
  explicit Checkout(std::vector<std::string> files) {
    for (const auto& file : files) {
      const auto path = std::filesystem::path(folder_.path()) / "KernelBench" / file;
      std::filesystem::create_directories(path.parent_path());
      write_file_atomic(path.string(), "pass\n");
    }
  }
  [[nodiscard]] const std::string& path() const { return folder_.path(); }

private:
  TemporaryFolder folder_;
};

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

} // namespace

TEST_SUITE("problems of KernelBench") {
  TEST_CASE("are found by level and number, and nothing else is") {
    const Checkout checkout({"level1/10_b.py", "level1/2_a.py", "level2/1_c.py", "level1/notes.py",
                             "level1/3_text.txt", "level4/1_model.py"});
    const auto problems = find_kernelbench(checkout.path());
    CHECK(names_of(problems) == "1/2_a 1/10_b 2/1_c ");
    CHECK(problems[1].number == 10);
    CHECK(names_of(find_kernelbench(checkout.path() + "/KernelBench")) == names_of(problems));
  }

  TEST_CASE("a folder without any is an error that says what was looked for") {
    const Checkout checkout({});
    try {
      (void)find_kernelbench(checkout.path());
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.id() == error_id::bench_files);
      CHECK(error.remedy().find("level1") != std::string::npos);
    }
  }

  TEST_CASE("shards are disjoint, as large as each other, and all of them together") {
    std::vector<BenchmarkProblem> problems(10);
    for (std::size_t i = 0; i < problems.size(); ++i) problems[i].number = static_cast<int>(i);
    std::vector<int> seen;
    for (int shard = 0; shard < 3; ++shard) {
      const auto part = shard_of(problems, shard, 3);
      CHECK((part.size() == 3 || part.size() == 4));
      for (const auto& problem : part) seen.push_back(problem.number);
    }
    std::sort(seen.begin(), seen.end());
    CHECK(seen == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  }

  TEST_CASE("known flaws name problems by level and number") {
    const auto flaws = known_kernelbench_flaws();
    CHECK(flaws.at("2/80") == "a tensor of zeros passes");
    CHECK(flaws.contains("1/23"));
    CHECK_FALSE(flaws.contains("1/1"));
  }
}

TEST_SUITE("the chart of speed-ups") {
  TEST_CASE("has a curve for each level under each of the rules, and says how many problems it is of") {
    std::vector<BenchmarkResult> results;
    for (const auto* level : {"1", "2"})
      for (const double seconds : {0.5, 2.0}) {
        BenchmarkResult result{.suite = "KernelBench", .level = level, .problem = "a"};
        for (const auto* rules : {"strict", "compatible"})
          result.rules[rules] = {
              .called = true, .correct = true, .seconds = seconds, .baselines = {{"eager", 1.0}}};
        results.push_back(result);
      }
    results.push_back({.suite = "KernelBench", .level = "3", .problem = "b", .skipped = "too large"});
    const auto chart = speed_up_chart(results);
    CHECK(count(chart, "<path") == 4);
    CHECK(count(chart, "level 1, strict (2)") == 1);
    CHECK(count(chart, "level 3") == 0);
    CHECK(count(chart, "NaN") + count(chart, "inf") == 0);
    CHECK(count(chart, ">16</text>") == 1);
    CHECK(count(chart, ">32</text>") == 0);
    results[0].rules["strict"].seconds = 1.0 / 29;
    CHECK(count(speed_up_chart(results), ">32</text>") == 1);
  }

  TEST_CASE("can be drawn of nothing") { CHECK(count(speed_up_chart({}), "</svg>") == 1); }
}
