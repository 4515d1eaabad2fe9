// The dependence test and the answers about legality against what happens when small loop nests are executed.

#include <mtmc/analysis/dependence/dependence.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../analysed.hpp"
#include "../random_kernels.hpp"

using namespace random_kernels;

namespace {

const std::vector<std::string> names{"i", "j", "k"};

std::string function_of(const std::string& body) { return "void f(float* a, int N) {\n" + body + "}\n"; }

/// One access that was executed.
struct Executed {
  std::size_t access;
  std::vector<int> loops;
};

bool covers(mtmc::Directions set, int order) {
  const auto one = order > 0   ? mtmc::Directions::less
                   : order < 0 ? mtmc::Directions::greater
                               : mtmc::Directions::equal;
  return mtmc::detail::has(set, one);
}

} // namespace

TEST_CASE("dependence test: every dependence that happens is reported") {
  Random random{2024};
  int happened = 0;
  for (int round = 0; round < 400; ++round) {
    const Nest nest = random_nest(random, static_cast<std::size_t>(random.number(1, 3)), false);
    const std::string source = function_of(nest.text(names));
    const analysed::Text text(source);
    const auto& function = text.function();
    REQUIRE(function.accesses.size() == 2 * nest.statements.size());
    CAPTURE(source);
    for (int size = 1; size <= 4; ++size) {
      // Element to what touched it, in order.
      std::map<int, std::vector<Executed>> history;
      for (const auto& loops : nest.iterations(size))
        for (std::size_t s = 0; s < nest.statements.size(); ++s) {
          history[nest.statements[s].source.value(loops, size)].push_back({2 * s, loops});
          history[nest.statements[s].target.value(loops, size)].push_back({2 * s + 1, loops});
        }
      for (const auto& entry : history) {
        const auto& touched = entry.second;
        for (std::size_t y = 0; y < touched.size(); ++y)
          for (std::size_t x = 0; x < y; ++x) {
            const auto& source_access = function.accesses[touched[x].access];
            const auto& sink_access = function.accesses[touched[y].access];
            if (!source_access.write && !sink_access.write) continue;
            ++happened;
            const bool reported = std::any_of(
                function.dependences.begin(), function.dependences.end(), [&](const auto& dependence) {
                  if (dependence.source != &source_access || dependence.sink != &sink_access) return false;
                  for (std::size_t l = 0; l < nest.loops.size(); ++l) {
                    const int forward = touched[y].loops[l] - touched[x].loops[l];
                    const int order = nest.loops[l].down ? -forward : forward;
                    if (!covers(dependence.directions[l], order)) return false;
                    if (dependence.distances[l] && *dependence.distances[l] * nest.loops[l].step != order)
                      return false;
                  }
                  return true;
                });
            REQUIRE(reported);
          }
      }
    }
  }
  CHECK(happened > 10000);
}

TEST_CASE("legality: an order of loops that is called legal changes nothing") {
  Random random{7};
  int legal = 0;
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    const std::size_t depth = static_cast<std::size_t>(random.number(2, 3));
    const Nest nest = random_nest(random, depth, random.chance(80));
    const std::string source = function_of(nest.text(names));
    CAPTURE(source);
    const analysed::Text text(source);
    std::vector<std::size_t> order(depth);
    for (std::size_t l = 0; l < depth; ++l) order[l] = l;
    while (std::next_permutation(order.begin(), order.end())) {
      const bool allowed = mtmc::permutation_legal(text.nest("f/i"), 0, order).legal;
      ++(allowed ? legal : refused);
      if (!allowed) continue;
      for (int size = 1; size <= 4; ++size) {
        auto iterations = nest.iterations(size);
        Memory before;
        for (const auto& loops : iterations)
          for (const auto& statement : nest.statements) before.execute(statement, loops, size);
        std::stable_sort(iterations.begin(), iterations.end(), [&](const auto& a, const auto& b) {
          for (const std::size_t l : order)
            if (a[l] != b[l]) return nest.loops[l].down ? a[l] > b[l] : a[l] < b[l];
          return false;
        });
        Memory after;
        for (const auto& loops : iterations)
          for (const auto& statement : nest.statements) after.execute(statement, loops, size);
        REQUIRE(before == after);
      }
    }
  }
  CHECK(legal > 100);
  CHECK(refused > 100);
}

TEST_CASE("legality: tiling a band that is called permutable changes nothing") {
  Random random{99};
  int legal = 0;
  for (int round = 0; round < 500; ++round) {
    const Nest nest = random_nest(random, 2, true);
    const std::string source = function_of(nest.text(names));
    CAPTURE(source);
    const analysed::Text text(source);
    if (!mtmc::band_is_permutable(text.nest("f/i"), 0, 1)) continue;
    ++legal;
    for (int size = 1; size <= 5; ++size) {
      auto iterations = nest.iterations(size);
      Memory before;
      for (const auto& loops : iterations)
        for (const auto& statement : nest.statements) before.execute(statement, loops, size);
      const auto tile = [&](const std::vector<int>& loops, std::size_t l) {
        const int number = loops[l] - (nest.loops[l].down ? 100 : 0); // tiles of two values
        return nest.loops[l].down ? -((number - 1) / 2) : number / 2;
      };
      std::stable_sort(iterations.begin(), iterations.end(), [&](const auto& a, const auto& b) {
        return std::pair(tile(a, 0), tile(a, 1)) < std::pair(tile(b, 0), tile(b, 1));
      });
      Memory after;
      for (const auto& loops : iterations)
        for (const auto& statement : nest.statements) after.execute(statement, loops, size);
      REQUIRE(before == after);
    }
  }
  CHECK(legal > 50);
}

TEST_CASE("legality: iterations of a loop that is called parallel may run in any order") {
  Random random{5};
  int legal = 0;
  for (int round = 0; round < 500; ++round) {
    const Nest nest = random_nest(random, static_cast<std::size_t>(random.number(1, 3)), false);
    const std::string source = function_of(nest.text(names));
    CAPTURE(source);
    const analysed::Text text(source);
    if (!mtmc::loop_is_parallel(text.loop("f/i"))) continue;
    ++legal;
    for (int size = 1; size <= 4; ++size) {
      auto iterations = nest.iterations(size);
      Memory before;
      for (const auto& loops : iterations)
        for (const auto& statement : nest.statements) before.execute(statement, loops, size);
      std::stable_sort(iterations.begin(), iterations.end(), [&](const auto& a, const auto& b) {
        return nest.loops[0].down ? a[0] < b[0] : a[0] > b[0];
      });
      Memory after;
      for (const auto& loops : iterations)
        for (const auto& statement : nest.statements) after.execute(statement, loops, size);
      REQUIRE(before == after);
    }
  }
  CHECK(legal > 20);
}

TEST_CASE("legality: fusing two loops where that is called legal changes nothing") {
  Random random{31};
  int legal = 0;
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    Nest first = random_nest(random, static_cast<std::size_t>(random.number(1, 2)), true);
    Nest second = random_nest(random, static_cast<std::size_t>(random.number(1, 2)), true);
    second.loops[0] = first.loops[0];
    const std::string source = function_of(first.text(names) + second.text(names));
    CAPTURE(source);
    const analysed::Text text(source);
    const bool allowed = mtmc::fusion_legal(text.loop("f/i"), text.loop("f/i#2")).legal;
    ++(allowed ? legal : refused);
    if (!allowed) continue;
    for (int size = 1; size <= 4; ++size) {
      const auto a = first.iterations(size);
      const auto b = second.iterations(size);
      Memory before;
      for (const auto& loops : a)
        for (const auto& statement : first.statements) before.execute(statement, loops, size);
      for (const auto& loops : b)
        for (const auto& statement : second.statements) before.execute(statement, loops, size);
      Memory after;
      for (const int value : first.loops[0].values({}, size)) {
        for (const auto& loops : a)
          if (loops[0] == value)
            for (const auto& statement : first.statements) after.execute(statement, loops, size);
        for (const auto& loops : b)
          if (loops[0] == value)
            for (const auto& statement : second.statements) after.execute(statement, loops, size);
      }
      REQUIRE(before == after);
    }
  }
  CHECK(legal > 15);
  CHECK(refused > 30);
}

TEST_CASE("legality: unrolling and jamming where that is called legal changes nothing") {
  Random random{1234};
  int legal = 0;
  int refused = 0;
  for (int round = 0; round < 500; ++round) {
    const Nest nest = random_nest(random, static_cast<std::size_t>(random.number(2, 3)), random.chance(80));
    const std::string source = function_of(nest.text(names));
    CAPTURE(source);
    const analysed::Text text(source);
    const bool allowed = mtmc::unroll_and_jam_legal(text.nest("f/i"), 0).legal;
    ++(allowed ? legal : refused);
    if (!allowed) continue;
    for (int size = 1; size <= 4; ++size) {
      const auto iterations = nest.iterations(size);
      Memory before;
      for (const auto& loops : iterations)
        for (const auto& statement : nest.statements) before.execute(statement, loops, size);
      // Two values of i at a time; for each inner iteration first the one, then the other.
      Memory after;
      const auto outer = nest.loops[0].values({}, size);
      for (std::size_t at = 0; at < outer.size(); at += 2)
        for (const auto& loops : iterations) {
          if (loops[0] != outer[at]) continue;
          for (std::size_t copy = at; copy < std::min(at + 2, outer.size()); ++copy) {
            auto moved = loops;
            moved[0] = outer[copy];
            for (const auto& statement : nest.statements) after.execute(statement, moved, size);
          }
        }
      REQUIRE(before == after);
    }
  }
  CHECK(legal > 20);
  CHECK(refused > 20);
}
