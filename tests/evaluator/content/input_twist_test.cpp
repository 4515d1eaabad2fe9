// What is done to the inputs of a far case after they were made.
#include <mtmc/evaluator/content/input_twist.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

using namespace mtmc;

namespace {

constexpr std::size_t rows = 64, columns = 96;

std::vector<float> bells(std::uint64_t key) {
  std::vector<float> values(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = detail::bell(static_cast<std::uint32_t>(detail::slice_hash(i, key, 9) >> 32));
  return values;
}

/// Two inputs of 64 rows, before and after.
struct Inputs {
  std::array<std::vector<float>, 2> before{bells(1), bells(2)};
  std::array<std::vector<float>, 2> after = before;

  Inputs(InputTwist twist, std::uint64_t hash, std::span<const double> numbers = {}) {
    const std::array<RelatedInput, 2> both{RelatedInput{after[0], {rows, columns}, 0},
                                           {after[1], {rows, columns}, 1}};
    apply_twist(twist, both, hash, numbers);
  }
  [[nodiscard]] bool changed(std::size_t i) const { return before[i] != after[i]; }
};

/// For some hashes.
template <class Check> void for_hashes(const Check& check) {
  for (std::uint64_t i = 0; i < 64; ++i) check(detail::slice_hash(i, 77, 1));
}

} // namespace

TEST_CASE("three of four cases are twisted, and every eighth gets a number where there are any") {
  std::map<InputTwist, int> without;
  std::map<InputTwist, int> with;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    ++without[draw_twist(detail::slice_hash(i, 5, 0), false)];
    ++with[draw_twist(detail::slice_hash(i, 5, 0), true)];
  }
  CHECK(without[InputTwist::planted] == 0);
  CHECK(std::abs(without[InputTwist::none] - 2500) < 300);
  CHECK(std::abs(with[InputTwist::planted] - 1250) < 300);
  for (auto twist = 1; twist < static_cast<int>(InputTwist::planted); ++twist) {
    CHECK(without[static_cast<InputTwist>(twist)] > 350);
    CHECK_FALSE(to_string(static_cast<InputTwist>(twist)).empty());
  }
}

TEST_CASE("one-sided inputs have one sign, one input alone or all, sometimes far from 1") {
  bool alone = false, together = false, huge = false;
  for_hashes([&](std::uint64_t hash) {
    const Inputs inputs(InputTwist::one_sided, hash);
    for (const std::size_t i : {0u, 1u}) {
      if (!inputs.changed(i)) continue;
      const auto& values = inputs.after[i];
      CHECK((std::all_of(values.begin(), values.end(), [](float v) { return v >= 0; }) ||
             std::all_of(values.begin(), values.end(), [](float v) { return v <= 0; })));
      for (const float value : values) huge = huge || std::abs(value) > 1e20f;
      for (const float value : values) CHECK(std::isfinite(value));
    }
    (inputs.changed(0) && inputs.changed(1) ? together : alone) = true;
  });
  CHECK(alone);
  CHECK(together);
  CHECK(huge);
}

TEST_CASE("what is graded in the columns of one input is graded the other way in the rows of the next") {
  int opposite = 0;
  for_hashes([&](std::uint64_t hash) {
    const Inputs inputs(InputTwist::graded, hash);
    std::vector<double> first(rows), second(rows);
    for (std::size_t k = 0; k < rows; ++k) {
      first[k] = std::log2(inputs.after[0][k] / inputs.before[0][k]);
      second[k] = std::log2(inputs.after[1][k * columns] / inputs.before[1][k * columns]);
      CHECK(std::abs(first[k]) <= 24);
    }
    bool all = true;
    for (std::size_t k = 0; k < rows; ++k) all = all && first[k] == -second[k];
    opposite += all ? 1 : 0;
  });
  CHECK(opposite > 32);
}

TEST_CASE(
    "holes are runs of zeros at multiples of their length; fences are first rows and columns of blocks") {
  for_hashes([&](std::uint64_t hash) {
    const Inputs holes(InputTwist::holes, hash);
    const auto& values = holes.after[holes.changed(0) ? 0 : 1];
    const auto zeros = std::count(values.begin(), values.end(), 0.0f);
    CHECK(zeros > 0);
    // A run of two is the shortest: zeros come in pairs from even places on.
    for (std::size_t i = 0; i < values.size(); i += 2) CHECK((values[i] == 0) == (values[i + 1] == 0));

    const Inputs fenced(InputTwist::fenced, hash);
    const auto& blocks = fenced.after[fenced.changed(0) ? 0 : 1];
    for (std::size_t i = 0; i < columns; ++i) CHECK(blocks[i] == 0);
    for (std::size_t i = 0; i < rows; ++i) CHECK(blocks[i * columns] == 0);
    CHECK(blocks[columns + 1] != 0);
  });
}

TEST_CASE("one input dominates, many elements are the largest, or one of each row sticks out") {
  for_hashes([&](std::uint64_t hash) {
    const Inputs dominated(InputTwist::dominated, hash);
    const bool first = std::abs(dominated.after[0][0]) > std::abs(dominated.after[1][0]);
    const auto& far = dominated.after[first ? 0 : 1];
    const auto [least, most] = std::minmax_element(far.begin(), far.end());
    CHECK(*most - *least < 0.1f);
    CHECK(std::abs(*most) > 0.3f);

    const Inputs tied(InputTwist::tied, hash);
    for (const auto& values : tied.after)
      CHECK(std::count(values.begin(), values.end(), *std::max_element(values.begin(), values.end())) > 50);

    const Inputs sharpened(InputTwist::sharpened, hash);
    for (std::size_t row = 0; row < rows; ++row) {
      int changed = 0;
      for (std::size_t i = row * columns; i < (row + 1) * columns; ++i)
        changed += sharpened.after[0][i] != sharpened.before[0][i] ? 1 : 0;
      CHECK(changed <= 1);
    }
  });
}

TEST_CASE("planted numbers, their neighbours and multiples come up among elements or as scales") {
  const std::array numbers{1000.0};
  int exact = 0, changed = 0;
  for_hashes([&](std::uint64_t hash) {
    const Inputs inputs(InputTwist::planted, hash, numbers);
    for (const auto& values : inputs.after) exact += std::count(values.begin(), values.end(), 1000.0f) > 0;
    changed += inputs.changed(0) || inputs.changed(1) ? 1 : 0;
    CHECK_FALSE(Inputs(InputTwist::planted, hash).changed(0));
  });
  CHECK(exact > 16);
  CHECK(changed >= 60);
}

TEST_CASE("what follows a call differs from it by one element, a few, or all but the beginning or the end, "
          "or by the order") {
  std::map<std::size_t, int> changes;
  const auto before = bells(3);
  for_hashes([&](std::uint64_t hash) {
    auto after = before;
    change_some({after, {rows, columns}, 0}, hash);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < after.size(); ++i) changed += after[i] != before[i] ? 1 : 0;
    ++changes[changed];
    CHECK(changed >= 1);
    if (changed < after.size()) return;
    auto sorted = before;
    std::sort(sorted.begin(), sorted.end());
    std::sort(after.begin(), after.end());
    CHECK(after == sorted);
  });
  CHECK(changes[1] > 4);
  CHECK(changes.rbegin()->first > before.size() / 2);
}

TEST_CASE("relations hold within an input, and every fourth is broken somewhere") {
  const auto at = [](const std::vector<float>& values, std::size_t row, std::size_t column) {
    return values[row * columns + column];
  };
  std::map<InputTwist, int> holds;
  for_hashes([&](std::uint64_t hash) {
    const auto made = [&](InputTwist twist) {
      const Inputs inputs(twist, hash);
      return inputs.after[inputs.changed(0) ? 0 : 1];
    };
    const auto all = [&](InputTwist twist, auto&& is_so) {
      const auto values = made(twist);
      bool so = true;
      for (std::size_t i = 0; i < rows && so; ++i)
        for (std::size_t j = 0; j < columns && so; ++j) so = is_so(values, i, j);
      holds[twist] += so ? 1 : 0;
    };
    all(InputTwist::mirrored, [&](const auto& v, std::size_t i, std::size_t j) {
      return std::abs(at(v, i, j)) == std::abs(at(v, i, columns - 1 - j)) ||
             std::abs(at(v, i, j)) == std::abs(at(v, rows - 1 - i, j)) ||
             std::abs(at(v, i, j)) == std::abs(at(v, rows - 1 - i, columns - 1 - j)) || j >= rows ||
             std::abs(at(v, i, j)) == std::abs(at(v, j, i));
    });
    all(InputTwist::whole,
        [&](const auto& v, std::size_t i, std::size_t j) { return at(v, i, j) == std::round(at(v, i, j)); });
    all(InputTwist::permuted, [&](const auto& v, std::size_t i, std::size_t) {
      return std::count(v.begin() + static_cast<std::ptrdiff_t>(i * columns),
                        v.begin() + static_cast<std::ptrdiff_t>((i + 1) * columns), 0.0f) == columns - 1;
    });
    all(InputTwist::doubled, [&](const auto& v, std::size_t i, std::size_t j) {
      const auto is_small = [](float a, float b) { return a == b || a == -b || a == 2 * b || 2 * a == b; };
      return is_small(at(v, i, j), at(v, i, (j + columns / 2) % columns)) ||
             is_small(at(v, i, j), at(v, (i + rows / 2) % rows, j)) ||
             is_small(at(v, i, (j + columns / 2) % columns), at(v, i, j)) ||
             is_small(at(v, (i + rows / 2) % rows, j), at(v, i, j));
    });
    const auto pattern = made(InputTwist::pattern);
    CHECK(std::count(pattern.begin(), pattern.end(), 0.0f) > 0);
  });
  for (const auto& [twist, count] : holds) {
    const auto& shown = twist;
    CAPTURE(to_string(shown));
    CHECK(count > 32);
    CHECK(count < 64);
  }
}

TEST_CASE("inputs that are alike are the same, opposite, transposed or a multiple, at least in part") {
  int opposite = 0, transposed = 0, part = 0;
  for_hashes([&](std::uint64_t hash) {
    const Inputs inputs(InputTwist::alike, hash);
    const auto changed = inputs.changed(0) ? 0u : 1u;
    const auto& made = inputs.after[changed];
    const auto& from = inputs.after[1 - changed];
    std::size_t same = 0, negative = 0, moved = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      same += made[i] != inputs.before[changed][i] ? 1 : 0;
      negative += made[i] == -from[i] ? 1 : 0;
    }
    for (std::size_t i = 0; i < columns && i < rows; ++i) moved += made[i] == from[i * columns] ? 1 : 0;
    part += same <= 64 ? 1 : 0;
    opposite += negative > 1000 ? 1 : 0;
    transposed += moved > 32 ? 1 : 0;
  });
  CHECK(opposite > 2);
  CHECK(transposed > 2);
  CHECK(part > 16);
}
