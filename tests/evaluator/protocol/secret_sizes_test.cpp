// Sizes that nobody was told: how they are drawn, and what they find.
#include <mtmc/evaluator/protocol/secret_sizes.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <vector>

using namespace mtmc;

namespace {

Task task_of(std::vector<Symbols> sizes) {
  Task task;
  for (auto& symbols : sizes) task.sizes.push_back({.symbols = std::move(symbols)});
  return task;
}

} // namespace

TEST_CASE("secret sizes are new, near the listed ones, and not timed") {
  const auto task = task_of({{{"M", 64}, {"N", 48}}, {{"M", 7}, {"N", 13}}, {{"M", 33}, {"N", 100}}});
  const auto drawn = draw_secret_sizes(task, 1, 12);
  CHECK(drawn.size() == 12);
  std::set<Symbols> seen;
  std::set<std::int64_t> remainders;
  for (const auto& size : drawn) {
    CHECK(size.weight == 0);
    for (const auto& listed : task.sizes) CHECK(size.symbols != listed.symbols);
    CHECK(seen.insert(size.symbols).second);
    for (const auto& [name, value] : size.symbols) {
      CHECK(value >= 1);
      CHECK(value <= 264);
    }
    remainders.insert(size.symbols.at("N") % 8);
  }
  CHECK(remainders.size() >= 4);
  CHECK(draw_secret_sizes(task, 1, 12) == drawn);
  CHECK(draw_secret_sizes(task, 2, 12) != drawn);
}

TEST_CASE("what all listed sizes have in common stays") {
  SUBCASE("constants and common divisors") {
    const auto task = task_of({{{"M", 64}, {"K", 3}}, {{"M", 48}, {"K", 3}}, {{"M", 400}, {"K", 3}}});
    for (const auto& size : draw_secret_sizes(task, 5, 10)) {
      CHECK(size.symbols.at("K") == 3);
      CHECK(size.symbols.at("M") % 16 == 0);
    }
  }
  SUBCASE("equal symbols") {
    const auto task = task_of({{{"M", 64}, {"N", 64}}, {{"M", 7}, {"N", 7}}, {{"M", 33}, {"N", 33}}});
    for (const auto& size : draw_secret_sizes(task, 5, 10))
      CHECK(size.symbols.at("M") == size.symbols.at("N"));
  }
  SUBCASE("ratios, differences, products and divisors: their symbols keep the values of a listed size") {
    for (const std::vector<std::int64_t>& others :
         {std::vector<std::int64_t>{32, 10, 66}, {18, 7, 35}, {32, 10, 99}, {495, 1584, 240}}) {
      const std::vector<std::int64_t> m{16, 5, 33};
      const auto task = task_of({{{"M", m[0]}, {"H", others[0]}, {"B", 7}},
                                 {{"M", m[1]}, {"H", others[1]}, {"B", 11}},
                                 {{"M", m[2]}, {"H", others[2]}, {"B", 2}}});
      const auto drawn = draw_secret_sizes(task, 9, 10);
      CHECK_FALSE(drawn.empty());
      for (const auto& size : drawn) {
        bool listed = false;
        for (std::size_t i = 0; i < m.size(); ++i)
          listed = listed || (size.symbols.at("M") == m[i] && size.symbols.at("H") == others[i]);
        CHECK(listed);
      }
    }
  }
  SUBCASE("two sizes have too much in common by chance") {
    CHECK(draw_secret_sizes(task_of({{{"M", 64}}, {{"M", 7}}}), 1, 10).empty());
  }
}

TEST_CASE("large sizes have few long rows and many short ones, as many bytes as are wanted") {
  const auto task = task_of({{{"M", 64}, {"N", 48}}, {{"M", 7}, {"N", 13}}, {{"M", 33}, {"N", 100}}});
  const auto product = [](const ProblemSize& size) { return size.symbols.at("M") * size.symbols.at("N"); };
  const auto wanted = [&](const ProblemSize& size) { return product(size) >= 200 && product(size) <= 4000; };
  const auto drawn = draw_large_sizes(task, task.sizes, 1, 40, wanted);
  CHECK(drawn.size() == 40);
  std::set<Symbols> seen;
  int wide = 0;
  int tall = 0;
  for (const auto& size : drawn) {
    CHECK(size.weight == 0);
    CHECK(wanted(size));
    CHECK(seen.insert(size.symbols).second);
    wide += size.symbols.at("N") > 8 * size.symbols.at("M") ? 1 : 0;
    tall += size.symbols.at("M") > 8 * size.symbols.at("N") ? 1 : 0;
  }
  CHECK(wide > 3);
  CHECK(tall > 3);
  CHECK(draw_large_sizes(task, task.sizes, 1, 40, wanted) == drawn);
  CHECK(draw_large_sizes(task, task.sizes, 2, 40, wanted) != drawn);
  CHECK(draw_large_sizes(task, task.sizes, 1, 40, [](const ProblemSize&) { return false; }).empty());
}

TEST_CASE("the nearest sizes are one or two more or less, or twice as much, of one symbol or of all") {
  const auto task = task_of({{{"M", 96}, {"N", 160}}, {{"M", 13}, {"N", 127}}, {{"M", 3}, {"N", 2}}});
  const auto all = [](const ProblemSize&) { return true; };
  const auto nearest = draw_nearest_sizes(task, task.sizes, 5, 1000, all);
  const auto has = [&](std::int64_t m, std::int64_t n) {
    return std::any_of(nearest.begin(), nearest.end(), [&](const ProblemSize& size) {
      return size.symbols == Symbols{{"M", m}, {"N", n}} && size.weight == 0;
    });
  };
  CHECK(has(97, 160));
  CHECK(has(96, 158));
  CHECK(has(5, 4));
  CHECK(has(26, 254));
  CHECK(has(1, 2));
  CHECK_FALSE(has(97, 158));
  CHECK_FALSE(has(13, 127));
  std::set<Symbols> seen;
  for (const auto& size : nearest) CHECK(seen.insert(size.symbols).second);

  const auto few = draw_nearest_sizes(task, task.sizes, 5, 7, all);
  CHECK(few.size() == 7);
  CHECK(draw_nearest_sizes(task, task.sizes, 6, 7, all) != few);
  for (const auto& size : draw_nearest_sizes(task, nearest, 5, 1000, all))
    CHECK(std::any_of(task.sizes.begin(), task.sizes.end(),
                      [&](const ProblemSize& listed) { return listed.symbols == size.symbols; }));
  CHECK(draw_nearest_sizes(task, task.sizes, 5, 1000, [](const ProblemSize&) { return false; }).empty());
}
