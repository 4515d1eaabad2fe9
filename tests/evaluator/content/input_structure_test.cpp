// Inputs that have a structure as a whole.
#include <mtmc/evaluator/content/half_precision.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/input_structure.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

using namespace mtmc;
using detail::InputStructure;

namespace {

constexpr std::int64_t columns = 32;
constexpr std::int64_t rows = 96;

/// An input with a structure, and its elements by row and column.
struct Matrix {
  explicit Matrix(InputStructure structure, std::uint64_t stream = 3)
      : values(static_cast<std::size_t>(rows * columns)) {
    fill_values(std::as_writable_bytes(std::span(values)),
                ContentRecipe{DataType::f32, rows * columns, Distribution::structured, 7, stream,
                              std::nullopt, columns, static_cast<int>(structure)});
  }
  [[nodiscard]] float at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  /// Whether something holds for every row and column.
  template <class Holds> [[nodiscard]] bool all(Holds&& holds) const {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        if (!holds(row, column, at(row, column))) return false;
    return true;
  }
  [[nodiscard]] std::size_t different() const { return std::set<float>(values.begin(), values.end()).size(); }

  std::vector<float> values;
};

} // namespace

TEST_CASE("structures of parameters and of matrices are what their names say") {
  using Place = std::int64_t;
  CHECK(Matrix(InputStructure::ones).all([](Place, Place, float x) { return x == 1; }));
  CHECK(Matrix(InputStructure::zeros).all([](Place, Place, float x) { return x == 0; }));
  CHECK(Matrix(InputStructure::identity).all([](Place row, Place column, float x) {
    return x == (row % columns == column ? 1.0f : 0.0f);
  }));
  const Matrix symmetric(InputStructure::symmetric);
  CHECK(symmetric.all([&](Place row, Place column, float x) {
    return x == symmetric.at(row - row % columns + column, row % columns);
  }));
  CHECK(symmetric.different() > rows * columns / 3);
  const Matrix triangular(InputStructure::triangular);
  CHECK(triangular.all([](Place row, Place column, float x) { return column <= row % columns || x == 0; }));
  CHECK(triangular.different() > rows * columns / 3);
  const Matrix separable(InputStructure::separable);
  CHECK(separable.all([&](Place row, Place column, float x) {
    const float other = separable.at(0, column) * separable.at(row, 0);
    return std::abs(x * separable.at(0, 0) - other) <= 1e-6f * std::abs(other);
  }));
  CHECK(Matrix(InputStructure::homogeneous).all([](Place, Place column, float x) {
    return column != columns - 1 || x == 1;
  }));
}

TEST_CASE("structures of images, weights and masks are what their names say") {
  using Place = std::int64_t;
  const Matrix unit(InputStructure::unit_interval);
  CHECK(unit.all([](Place, Place, float x) { return x >= 0 && x < 1; }));
  const Matrix rectified(InputStructure::rectified);
  CHECK(rectified.all([](Place, Place, float x) { return x >= 0; }));
  CHECK(std::count(rectified.values.begin(), rectified.values.end(), 0.0f) > rows * columns / 3);
  CHECK(Matrix(InputStructure::bytes).all([](Place, Place, float x) {
    return x == std::round(x * 255) / 255.0f && x >= 0 && x <= 1;
  }));
  const Matrix halves(InputStructure::halves);
  CHECK(halves.all([](Place, Place, float x) { return half_to_float(float_to_half(x)) == x; }));
  CHECK(halves.different() > 500);
  const Matrix masked(InputStructure::masked);
  const auto hidden = std::count(masked.values.begin(), masked.values.end(), -10000.0f);
  CHECK(hidden > rows * columns / 5);
  CHECK(hidden < rows * columns / 3);
}

TEST_CASE("structures that repeat do, and orders are kept") {
  using Place = std::int64_t;
  const Matrix twins(InputStructure::twin_rows);
  CHECK(twins.all([&](Place row, Place column, float x) { return x == twins.at(row & ~Place{1}, column); }));
  CHECK(twins.at(0, 0) != twins.at(2, 0));
  const Matrix equal(InputStructure::equal_rows);
  CHECK(equal.all([&](Place, Place column, float x) { return x == equal.at(0, column); }));
  CHECK(equal.different() > columns / 2);
  const Matrix flat(InputStructure::flat_rows);
  CHECK(flat.all([&](Place row, Place, float x) { return x == flat.at(row, 0); }));
  CHECK(flat.different() > rows / 2);
  CHECK(Matrix(InputStructure::constant).different() == 1);
  CHECK(Matrix(InputStructure::constant).at(0, 0) != Matrix(InputStructure::constant, 4).at(0, 0));
  constexpr Place period = 16; // of key 7
  const Matrix tiled(InputStructure::tiled);
  CHECK(tiled.all([&](Place row, Place column, float x) {
    return x == tiled.values[static_cast<std::size_t>((row * columns + column) % period)];
  }));
  CHECK(Matrix(InputStructure::shared).values == Matrix(InputStructure::shared, 4).values);
  const Matrix descending(InputStructure::descending);
  CHECK(descending.all([&](Place row, Place column, float x) {
    return column == 0 || x == descending.at(row, column - 1) - 0.25f;
  }));
  const Matrix smooth(InputStructure::smooth);
  CHECK(smooth.all([&](Place row, Place column, float x) {
    return column == 0 || row == 0 || std::abs(x - smooth.at(row - 1, column - 1)) <= 1.0f / 2048;
  }));
  CHECK(Matrix(InputStructure::counting).all([](Place row, Place column, float x) {
    return x == static_cast<float>((row * columns + column) % 4096);
  }));
}

TEST_CASE("structures of scale and of order are what their names say") {
  using Place = std::int64_t;
  CHECK(Matrix(InputStructure::pixels).all([](Place, Place, float x) {
    return x == std::round(x) && x >= 0 && x <= 255;
  }));
  const Matrix palindrome(InputStructure::palindrome);
  CHECK(palindrome.all([&](Place row, Place column, float x) {
    return x == palindrome.at(rows - 1 - row, columns - 1 - column);
  }));
  CHECK(Matrix(InputStructure::thousands).all([](Place, Place, float x) { return x > 2000 && x < 6000; }));
  CHECK(Matrix(InputStructure::small).all([](Place, Place, float x) { return std::abs(x) < 0.01f; }));
  CHECK(Matrix(InputStructure::hundreds).all([](Place, Place, float x) { return x > 50 && x < 150; }));
  CHECK(Matrix(InputStructure::deep).all([](Place, Place, float x) { return x < -4990; }));
  const Matrix alternating(InputStructure::alternating);
  CHECK(alternating.all(
      [&](Place row, Place column, float x) { return x == alternating.at(row % 2, column); }));
  CHECK(alternating.at(0, 0) != alternating.at(1, 0));
  const Matrix unit(InputStructure::unit_triangular);
  CHECK(unit.all([](Place row, Place column, float x) {
    return column < row % columns || x == (column == row % columns ? 1.0f : 0.0f);
  }));
  CHECK(unit.different() > rows * columns / 3);
}

TEST_CASE(
    "infinities, NaN and denormal numbers are among special values, and nothing else than them is infinite") {
  const Matrix hidden(InputStructure::hidden);
  const auto hides = [](float x) { return x == -std::numeric_limits<float>::infinity(); };
  const auto count = std::count_if(hidden.values.begin(), hidden.values.end(), hides);
  CHECK(count > rows * columns / 5);
  CHECK(count < rows * columns / 3);
  const Matrix special(InputStructure::special);
  std::map<int, int> kinds;
  for (const float x : special.values) ++kinds[std::fpclassify(x)];
  for (const int kind : {FP_INFINITE, FP_NAN, FP_SUBNORMAL}) CHECK(kinds[kind] > 5);
  CHECK(kinds[FP_NORMAL] > rows * columns * 9 / 10);
  for (unsigned i = 0; i < detail::structure_count; ++i)
    if ((detail::all_structures >> i & 1u) != 0)
      CHECK(Matrix(static_cast<InputStructure>(i)).all([](std::int64_t, std::int64_t, float x) {
        return std::isfinite(x);
      }));
}

TEST_CASE("integers and values of a domain have what repeats in a structure") {
  std::vector<std::int32_t> indices(static_cast<std::size_t>(rows * columns));
  const auto fill = [&](InputStructure structure) {
    fill_values(std::as_writable_bytes(std::span(indices)),
                ContentRecipe{DataType::i32, rows * columns, Distribution::structured, 7, 3,
                              ValueRange{0, 1000}, columns, static_cast<int>(structure)});
    for (const auto index : indices) REQUIRE((index >= 0 && index <= 1000));
    return std::set<std::int32_t>(indices.begin(), indices.end()).size();
  };
  CHECK(fill(InputStructure::constant) == 1);
  CHECK(fill(InputStructure::equal_rows) <= columns);
  CHECK(fill(InputStructure::identity) > 500);
}

TEST_CASE(
    "a case's structures: by turns one for all inputs, at times parameters never trained, or each its own") {
  const auto draw = [](std::uint32_t allowed, std::uint64_t key) {
    std::vector<std::optional<InputStructure>> inputs;
    for (std::uint64_t place = 0; place < 3; ++place)
      inputs.push_back(detail::draw_structure(allowed, key, detail::slice_hash(0, key, detail::shared_stream),
                                              detail::slice_hash(0, key, place), place == 0));
    return inputs;
  };
  std::map<std::optional<InputStructure>, int> drawn;
  int together = 0;
  int untrained = 0;
  constexpr int cases = 4000;
  for (std::uint64_t key = 0; key < cases; ++key) {
    const auto inputs = draw(detail::all_structures, key);
    ++drawn[inputs[0]];
    together += inputs[0] && inputs[0] == inputs[1] && inputs[1] == inputs[2] ? 1 : 0;
    untrained +=
        !inputs[0] && inputs[1] == InputStructure::ones && inputs[2] == InputStructure::zeros ? 1 : 0;
  }
  CHECK(drawn.size() == static_cast<std::size_t>(std::popcount(detail::all_structures)) + 1);
  for (const auto& [structure, times] : drawn) CHECK(times > cases / 50);
  CHECK(together > cases * 6 / 10);
  CHECK(untrained > cases / 50);
  SUBCASE("those that a task does not bear are not drawn") {
    for (std::uint64_t key = 0; key < 500; ++key)
      for (const auto& structure : draw(detail::mild_structures, key))
        if (structure) CHECK((detail::mild_structures >> static_cast<unsigned>(*structure) & 1u) == 1);
  }
  SUBCASE("where each input has its own, none is far larger or smaller than usual ones") {
    for (std::uint64_t key = 0; key < 4000; ++key) {
      const auto inputs = draw(detail::all_structures, key);
      if (inputs[0] == inputs[1] || !inputs[0] || *inputs[0] == InputStructure::small) continue;
      for (const auto& structure : inputs)
        if (structure && *structure != InputStructure::thousands)
          CHECK((detail::mixed_structures >> static_cast<unsigned>(*structure) & 1u) == 1);
    }
  }
  SUBCASE("a task's special values are there from the first turn on, and half of the time") {
    constexpr auto allowed = detail::all_structures | detail::special_structures;
    int special = 0;
    for (std::uint64_t key = 0; key < 400; ++key) {
      const auto inputs = draw(allowed, key);
      const bool is_special = inputs[0] && *inputs[0] >= InputStructure::hidden;
      special += is_special ? 1 : 0;
      if (key % 4 < 2) CHECK((is_special && inputs[1] == inputs[0] && inputs[2] == inputs[0]));
    }
    CHECK(draw(allowed, 0)[0] == InputStructure::special);
    CHECK(special >= 200);
    CHECK(special < 250);
  }
  SUBCASE("where one alone is allowed, all inputs have it; where none is, they are normal") {
    for (std::uint64_t key = 0; key < 100; ++key) {
      CHECK(draw(1u << 5, key) ==
            std::vector<std::optional<InputStructure>>(3, InputStructure::unit_interval));
      CHECK(draw(0, key) == std::vector<std::optional<InputStructure>>(3));
    }
  }
}
