// Sizes that nobody was told: how they are drawn, and what they find.
#include <mtmc/evaluator/protocol/secret_sizes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
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
  SUBCASE(
      "where one divides the other and mostly equals it, as the sides of a window do, both change alike") {
    const auto task = task_of({{{"R", 3}, {"S", 3}}, {{"R", 5}, {"S", 1}}, {{"R", 1}, {"S", 1}}});
    const auto drawn = draw_secret_sizes(task, 9, 10);
    bool other_window = false;
    for (const auto& size : drawn) {
      CHECK(size.symbols.at("R") % size.symbols.at("S") == 0);
      other_window =
          other_window || (size.symbols.at("R") == size.symbols.at("S") && size.symbols.at("S") > 3);
    }
    CHECK(other_window);
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

TEST_CASE("long sizes have one symbol far beyond what is listed, and small others") {
  const auto task = task_of({{{"M", 96}, {"N", 160}}, {{"M", 13}, {"N", 127}}, {{"M", 3}, {"N", 2}}});
  const auto few = [](const ProblemSize& size) {
    return size.symbols.at("M") * size.symbols.at("N") <= 100'000;
  };
  const auto drawn = draw_long_sizes(task, 3, 20, few);
  CHECK(drawn.size() == 20);
  std::int64_t longest = 0, tallest = 0;
  int powers = 0;
  for (const auto& size : drawn) {
    CHECK(size.weight == 0);
    CHECK(few(size));
    longest = std::max(longest, size.symbols.at("N"));
    tallest = std::max(tallest, size.symbols.at("M"));
    CHECK((size.symbols.at("N") >= 128 || size.symbols.at("M") >= 64));
    CHECK((size.symbols.at("N") <= 127 || size.symbols.at("M") <= 24));
    for (const auto& [name, value] : size.symbols)
      powers += value >= 64 && std::has_single_bit(static_cast<std::uint64_t>(value)) ? 1 : 0;
  }
  CHECK(powers > 4);
  CHECK(powers < 16);
  CHECK(longest > 8 * 160);
  CHECK(tallest > 8 * 96);
  CHECK(draw_long_sizes(task, 4, 20, few) != drawn);
}

TEST_CASE("vast sizes lie beyond 16 bits and beyond the integers of f32, where nothing that is listed does") {
  const auto task = task_of({{{"M", 96}, {"N", 160}}, {{"M", 13}, {"N", 127}}, {{"M", 3}, {"N", 2}}});
  const auto elements_at = [](const ProblemSize& size) {
    return static_cast<double>(size.symbols.at("M")) * static_cast<double>(size.symbols.at("N"));
  };
  const auto all = [](const ProblemSize&) { return true; };
  for (std::uint64_t key = 1; key <= 8; ++key) {
    const auto drawn = draw_vast_sizes(task, key, elements_at, all);
    REQUIRE(drawn.size() == 2);
    const auto& shorts = drawn[0].symbols;
    const auto longest = std::max(shorts.at("M"), shorts.at("N"));
    CHECK(longest > 1 << 16);
    CHECK(longest < 1 << 17);
    CHECK(std::min(shorts.at("M"), shorts.at("N")) <= 40);
    CHECK(elements_at(drawn[1]) > 0x1p24);
    CHECK(elements_at(drawn[1]) < 0x1.4p24);
    CHECK(drawn[0].weight == 0);
    CHECK(drawn[1].weight == 0);
  }
  CHECK(draw_vast_sizes(task, 1, elements_at, [](const ProblemSize&) { return false; }).empty());
  const auto large = task_of({{{"N", 1 << 25}}, {{"N", 127}}, {{"N", 2}}});
  const auto length = [](const ProblemSize& size) { return static_cast<double>(size.symbols.at("N")); };
  CHECK(draw_vast_sizes(large, 1, length, all).empty());
  CHECK(draw_vast_sizes(task_of({{{"N", 9}}, {{"N", 7}}}), 1, length, all).empty());
}

TEST_CASE("sizes with all symbols alike are listed values, small ones and any others") {
  const auto task = task_of({{{"M", 96}, {"N", 160}}, {{"M", 13}, {"N", 127}}, {{"M", 3}, {"N", 2}}});
  const auto all = [](const ProblemSize&) { return true; };
  const auto drawn = draw_alike_sizes(task, 3, 24, all);
  CHECK(drawn.size() == 24);
  int listed = 0, small = 0;
  for (const auto& size : drawn) {
    const auto value = size.symbols.at("M");
    CHECK(size.symbols.at("N") == value);
    CHECK(value <= 160);
    small += value <= 24 ? 1 : 0;
    for (const std::int64_t known : {96, 160, 13, 127, 3, 2}) listed += value == known ? 1 : 0;
  }
  CHECK(listed >= 4);
  CHECK(small >= 8);
  CHECK(draw_alike_sizes(task_of({{{"N", 9}}, {{"N", 4}}, {{"N", 700}}}), 3, 24, all).empty());
}

TEST_CASE("the sides of a window are exchanged, and nothing else is") {
  const auto all = [](const ProblemSize&) { return true; };
  const auto task = task_of(
      {{{"H", 31}, {"R", 3}, {"S", 3}}, {{"H", 17}, {"R", 5}, {"S", 1}}, {{"H", 4}, {"R", 1}, {"S", 1}}});
  const auto sizes = exchanged_sizes(task, all);
  REQUIRE(sizes.size() == 1);
  CHECK(sizes[0].symbols == Symbols{{"H", 17}, {"R", 1}, {"S", 5}});
  CHECK(sizes[0].weight == 0);
  const auto alike = exchanged_sizes(
      task_of(
          {{{"P", 3}, {"R", 3}, {"S", 3}}, {{"P", 5}, {"R", 5}, {"S", 1}}, {{"P", 1}, {"R", 1}, {"S", 1}}}),
      all);
  REQUIRE(alike.size() == 1);
  CHECK(alike[0].symbols == Symbols{{"P", 1}, {"R", 1}, {"S", 5}});
  CHECK(exchanged_sizes(task, [](const ProblemSize&) { return false; }).empty());
  CHECK(
      exchanged_sizes(task_of({{{"M", 96}, {"N", 160}}, {{"M", 13}, {"N", 127}}, {{"M", 3}, {"N", 2}}}), all)
          .empty());
}

TEST_CASE("sizes at a number are that number, its neighbours and multiples, alone and as products") {
  const auto task = task_of({{{"M", 96}, {"N", 160}}, {{"M", 13}, {"N", 127}}, {{"M", 3}, {"N", 2}}});
  const auto all = [](const ProblemSize&) { return true; };
  const std::vector<std::int64_t> numbers{50, 5000};
  const auto drawn = draw_sizes_at(task, numbers, 3, 1000, all);
  const auto any = [&](auto&& is_it) {
    return std::any_of(drawn.begin(), drawn.end(), [&](const ProblemSize& size) {
      return is_it(size.symbols.at("M"), size.symbols.at("N"));
    });
  };
  for (const std::int64_t wanted : {49, 50, 51, 100, 150, 151, 4999, 5000, 5001})
    CHECK(any([&](std::int64_t, std::int64_t n) { return n == wanted; }));
  CHECK(any([](std::int64_t m, std::int64_t) { return m == 5000; }));
  CHECK(any([](std::int64_t m, std::int64_t n) { return m == 50 && n == 50; }));
  CHECK(
      any([](std::int64_t m, std::int64_t n) { return m > 60 && n > 60 && m * n >= 5000 && m * n < 5100; }));
  // Of each some, before there are many of any.
  const auto first = draw_sizes_at(task, numbers, 3, 4, all);
  CHECK(first.size() == 4);
  CHECK(draw_sizes_at(task, {}, 3, 10, all).empty());
  CHECK(draw_sizes_at(task, numbers, 3, 10, [](const ProblemSize&) { return false; }).empty());
  // No symbol goes farther than 32 times what is listed; of a larger number there are products.
  for (const auto& size : draw_sizes_at(task, std::vector<std::int64_t>{2'000'000}, 3, 1000, all))
    CHECK(size.symbols.at("M") * size.symbols.at("N") > 100'000);
}
