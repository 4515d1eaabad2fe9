#include <mtmc/evaluator/content/comparison.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/tolerance.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace mtmc;

namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

std::vector<float> random_floats(std::size_t count, Distribution distribution, std::uint64_t key) {
  std::vector<float> values(count);
  fill_values(std::as_writable_bytes(std::span(values)), DataType::f32, distribution, key, 0);
  return values;
}

Tolerance tolerance_for(const std::vector<float>& wanted, double terms, double amplification = 1) {
  const Conditioning conditioning{terms, amplification};
  const double relative = relative_tolerance(DataType::f32, conditioning);
  return {relative, output_scale(bytes_of(wanted), DataType::f32),
          lower_precision_factor(DataType::f32, relative, conditioning)};
}

ComparisonResult compare(const std::vector<float>& got, const std::vector<float>& wanted,
                         const Tolerance& tolerance) {
  return compare_output(bytes_of(got), bytes_of(wanted), DataType::f32, tolerance);
}

float to_half(float value) { return half_to_float(float_to_half(value)); }

/// Sums of products of rows of `a` with `b`, added up in different honest and dishonest ways.
enum class Sum { sequential, backwards, pairwise, lanes, fused, half_inputs, half_accumulator, dropped };

float dot(const float* a, const float* b, std::size_t n, Sum how) {
  float total = 0;
  switch (how) {
  case Sum::sequential:
    for (std::size_t i = 0; i < n; ++i) total += a[i] * b[i];
    return total;
  case Sum::backwards:
    for (std::size_t i = n; i-- > 0;) total += a[i] * b[i];
    return total;
  case Sum::pairwise:
    if (n <= 8) return dot(a, b, n, Sum::sequential);
    return dot(a, b, n / 2, how) + dot(a + n / 2, b + n / 2, n - n / 2, how);
  case Sum::lanes: {
    float lane[8] = {};
    for (std::size_t i = 0; i < n; ++i) lane[i % 8] += a[i] * b[i];
    for (const float part : lane) total += part;
    return total;
  }
  case Sum::fused:
    for (std::size_t i = 0; i < n; ++i) total = std::fma(a[i], b[i], total);
    return total;
  case Sum::half_inputs:
    for (std::size_t i = 0; i < n; ++i) total += to_half(a[i]) * to_half(b[i]);
    return total;
  case Sum::half_accumulator:
    for (std::size_t i = 0; i < n; ++i) total = to_half(total + a[i] * b[i]);
    return total;
  case Sum::dropped:
    for (std::size_t i = 0; i + 1 < n; ++i) total += a[i] * b[i];
    return total;
  }
  return 0;
}

std::vector<float> dots(std::size_t rows, std::size_t n, Distribution distribution, Sum how) {
  const auto a = random_floats(rows * n, distribution, 11);
  const auto b = random_floats(n, distribution, 12);
  std::vector<float> result;
  for (std::size_t row = 0; row < rows; ++row) result.push_back(dot(a.data() + row * n, b.data(), n, how));
  return result;
}

} // namespace

TEST_CASE("sums of 768 products pass in any order, fused or not, on every distribution") {
  for (const auto distribution : all_distributions) {
    CAPTURE(to_string(distribution));
    const auto wanted = dots(200, 768, distribution, Sum::sequential);
    const auto tolerance = tolerance_for(wanted, 768);
    for (const auto how : {Sum::backwards, Sum::pairwise, Sum::lanes, Sum::fused}) {
      const auto result = compare(dots(200, 768, distribution, how), wanted, tolerance);
      CHECK(result.right());
      CHECK(result.largest_error < 0.5);
    }
  }
}

TEST_CASE("sums of 100,000 products pass in any order") {
  for (const auto distribution :
       {Distribution::normal, Distribution::heavy_tail, Distribution::large_offset}) {
    CAPTURE(to_string(distribution));
    const auto wanted = dots(8, 100'000, distribution, Sum::sequential);
    const auto tolerance = tolerance_for(wanted, 100'000);
    for (const auto how : {Sum::backwards, Sum::pairwise, Sum::lanes, Sum::fused})
      CHECK(compare(dots(8, 100'000, distribution, how), wanted, tolerance).right());
  }
}

TEST_CASE("half precision and a dropped term are refused") {
  const auto wanted = dots(200, 768, Distribution::normal, Sum::sequential);
  const auto tolerance = tolerance_for(wanted, 768);
  for (const auto how : {Sum::half_inputs, Sum::half_accumulator}) {
    const auto result = compare(dots(200, 768, Distribution::normal, how), wanted, tolerance);
    CHECK_FALSE(result.right());
    CHECK(looks_like_lower_precision(result, tolerance));
  }
  CHECK_FALSE(compare(dots(200, 768, Distribution::normal, Sum::dropped), wanted, tolerance).right());

  // One term of sixteen is more than lower precision could explain.
  const auto few = dots(200, 16, Distribution::normal, Sum::sequential);
  const auto dropped =
      compare(dots(200, 16, Distribution::normal, Sum::dropped), few, tolerance_for(few, 16));
  CHECK_FALSE(dropped.right());
  CHECK_FALSE(looks_like_lower_precision(dropped, tolerance_for(few, 16)));
}

TEST_CASE("elementary functions off by four units in the last place pass") {
  auto wanted = random_floats(10'000, Distribution::normal, 3);
  for (auto& value : wanted) value = std::exp(value);
  auto got = wanted;
  for (std::size_t i = 0; i < got.size(); ++i)
    for (int step = 0; step < 4; ++step) got[i] = std::nextafter(got[i], i % 2 == 0 ? 0.0f : 1e30f);
  const auto result = compare(got, wanted, tolerance_for(wanted, 1));
  CHECK(result.right());
  CHECK(result.checked == 10'000);
}

TEST_CASE("an output of tiny numbers is judged by its own scale") {
  // What a softmax over 100,000 columns gives: all zeros would pass any absolute tolerance of 1e-5.
  std::vector<float> wanted = random_floats(1000, Distribution::normal, 3);
  for (auto& value : wanted) value = 1e-5f * std::exp(value);
  const auto tolerance = tolerance_for(wanted, 1000);
  CHECK_FALSE(compare(std::vector<float>(1000, 0.0f), wanted, tolerance).right());
  CHECK_FALSE(compare(std::vector<float>(1000, 1e-5f), wanted, tolerance).right());
  CHECK(compare(wanted, wanted, tolerance).right());
}

TEST_CASE("NaN is right exactly where the reference has NaN, infinities must have the same sign") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  // Long enough that the vectorised path meets the special values as well as the remainder does.
  for (const std::size_t place : {std::size_t{5}, std::size_t{1020}}) {
    std::vector<float> wanted(1024, 1.0f);
    const auto with = [&](float value) {
      auto changed = wanted;
      changed[place] = value;
      return changed;
    };
    const Tolerance tolerance{1e-5, 1, 100};
    CHECK_FALSE(compare(with(nan), wanted, tolerance).right());
    CHECK_FALSE(compare(with(inf), wanted, tolerance).right());
    CHECK_FALSE(compare(wanted, with(nan), tolerance).right());
    CHECK_FALSE(compare(wanted, with(inf), tolerance).right());
    CHECK_FALSE(compare(with(-inf), with(inf), tolerance).right());
    CHECK_FALSE(compare(with(nan), with(inf), tolerance).right());
    CHECK(compare(with(nan), with(nan), tolerance).right());
    CHECK(compare(with(inf), with(inf), tolerance).right());
    CHECK(compare(with(nan), wanted, tolerance).first_wrong == static_cast<std::int64_t>(place));
    CHECK(std::isinf(compare(with(nan), wanted, tolerance).largest_error));
  }
}

TEST_CASE("every element is looked at: one wrong one is found at any place") {
  const std::vector<float> wanted(1500, 1.0f);
  const Tolerance tolerance{1e-5, 1, 1e9};
  for (std::size_t place = 0; place < wanted.size(); ++place) {
    auto got = wanted;
    got[place] = 1.001f;
    const auto result = compare(got, wanted, tolerance);
    REQUIRE(result.wrong == 1);
    REQUIRE(result.first_wrong == static_cast<std::int64_t>(place));
    REQUIRE(result.checked == result.total);
    REQUIRE(result.largest_error == doctest::Approx(100).epsilon(0.01));
  }
}

TEST_CASE("a result that is too short is not right, because elements stay unchecked") {
  const std::vector<float> wanted(100, 1.0f);
  const std::vector<float> got(99, 1.0f);
  const auto result = compare(got, wanted, {1e-5, 1, 1});
  CHECK(result.checked == 99);
  CHECK(result.total == 100);
  CHECK_FALSE(result.right());
}

TEST_CASE("integers must be equal") {
  const std::vector<std::int32_t> wanted{1, 2, 3};
  const std::vector<std::int32_t> got{1, 2, 4};
  const auto compare_integers = [&](const std::vector<std::int32_t>& values) {
    return compare_output(std::as_bytes(std::span(values)), std::as_bytes(std::span(wanted)), DataType::i32,
                          {0.5, 100, 1});
  };
  CHECK(compare_integers(wanted).right());
  CHECK(compare_integers(got).wrong == 1);
  CHECK(compare_integers(got).first_wrong == 2);
}

TEST_CASE("results of 16 bits may be rounded differently, not computed in 8 bits") {
  for (const auto type : {DataType::f16, DataType::bf16}) {
    CAPTURE(to_string(type));
    const auto plain = random_floats(4096, Distribution::normal, 5);
    std::vector<std::uint16_t> wanted, neighbour, coarse;
    for (const float value : plain) {
      const auto bits = type == DataType::f16 ? float_to_half(value) : float_to_bfloat16(value);
      wanted.push_back(bits);
      neighbour.push_back(static_cast<std::uint16_t>(bits + 1));
      // Four bits of mantissa are left of ten (or three of seven).
      const unsigned drop = type == DataType::f16 ? 7 : 4;
      coarse.push_back(static_cast<std::uint16_t>((bits + (1u << (drop - 1))) >> drop << drop));
    }
    const auto as_span = [](const std::vector<std::uint16_t>& v) { return std::as_bytes(std::span(v)); };
    const Tolerance tolerance{relative_tolerance(type, {768, 1}), output_scale(as_span(wanted), type), 1};
    CHECK(compare_output(as_span(neighbour), as_span(wanted), type, tolerance).right());
    CHECK_FALSE(compare_output(as_span(coarse), as_span(wanted), type, tolerance).right());
  }
}

TEST_CASE("the tolerance never reaches the next lower precision, however many terms there are") {
  for (const auto type : {DataType::f64, DataType::f32, DataType::f16, DataType::bf16})
    for (const double terms : {1.0, 1e3, 1e6, 1e12})
      for (const double amplification : {1.0, 1e2, 1e8})
        CHECK(relative_tolerance(type, {terms, amplification}) <= lower_epsilon(type) / 4);
  CHECK(relative_tolerance(DataType::i32, {1e6, 1e6}) == 0);
}

TEST_CASE("amplification follows the condition of the function, jumps do not count") {
  const auto measure = [](auto function) {
    auto inputs = random_floats(5000, Distribution::large_offset, 9);
    auto moved = inputs;
    perturb_last_place(std::as_writable_bytes(std::span(moved)), DataType::f32, 4);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      CHECK(moved[i] != inputs[i]);
      inputs[i] = function(inputs[i]);
      moved[i] = function(moved[i]);
    }
    return measured_amplification(bytes_of(inputs), bytes_of(moved), DataType::f32);
  };
  CHECK(measure([](float x) { return 3 * x; }) == doctest::Approx(1).epsilon(0.5));
  const double cancelling = measure([](float x) { return x - 16.0f; });
  CHECK(cancelling > 10);
  CHECK(cancelling < 40);
  CHECK(measure([](float x) { return x > 16 ? 1.0f : 0.0f; }) == 1);
}

TEST_CASE("what a look found answers as a comparison does: no place where nothing is wrong, and unchecked is "
          "not right") {
  CHECK(comparison_of({.checked = 7, .largest_error = 0.5}, 7).right());
  CHECK(comparison_of({.checked = 7}, 7).first_wrong == -1);
  CHECK_FALSE(comparison_of({.checked = 6}, 7).right());
  const auto wrong = comparison_of({.checked = 7, .wrong = 2, .first_wrong = 5, .largest_error = 3}, 7);
  CHECK(wrong.wrong == 2);
  CHECK(wrong.first_wrong == 5);
  CHECK(wrong.largest_error == 3);
  CHECK_FALSE(wrong.right());
}

TEST_CASE("perturbing leaves zeros, infinities, NaN and integers alone") {
  std::vector<float> values{0.0f, -0.0f, std::numeric_limits<float>::infinity(), 1e-40f};
  const auto before = values;
  perturb_last_place(std::as_writable_bytes(std::span(values)), DataType::f32, 1);
  CHECK(std::memcmp(values.data(), before.data(), sizeof(float) * values.size()) == 0);
  std::vector<std::int32_t> integers{1, 2, 3};
  perturb_last_place(std::as_writable_bytes(std::span(integers)), DataType::i32, 1);
  CHECK(integers == std::vector<std::int32_t>{1, 2, 3});
}
