#include <mtmc/evaluator/content/half_precision.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

using namespace mtmc;

namespace {

template <class T>
std::vector<T> filled(std::size_t count, DataType type, Distribution distribution, std::uint64_t key = 7,
                      std::optional<ValueRange> range = std::nullopt, std::uint64_t stream = 0) {
  std::vector<T> values(count);
  fill_values(std::as_writable_bytes(std::span(values)), type, distribution, key, stream, range);
  return values;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double largest = 0;
};

Moments moments_of(const std::vector<float>& values) {
  Moments result;
  for (const float value : values) {
    result.mean += static_cast<double>(value);
    result.largest = std::max(result.largest, std::abs(static_cast<double>(value)));
  }
  result.mean /= static_cast<double>(values.size());
  for (const float value : values) result.deviation += std::pow(static_cast<double>(value) - result.mean, 2);
  result.deviation = std::sqrt(result.deviation / static_cast<double>(values.size()));
  return result;
}

constexpr std::size_t many = 100'000;

} // namespace

TEST_CASE("the distributions look as documented") {
  const auto normal = moments_of(filled<float>(many, DataType::f32, Distribution::normal));
  CHECK(std::abs(normal.mean) < 0.02);
  CHECK(normal.deviation == doctest::Approx(1).epsilon(0.02));
  CHECK(normal.largest <= 3);

  const auto tail = moments_of(filled<float>(many, DataType::f32, Distribution::heavy_tail));
  CHECK(tail.largest > 40);
  CHECK(tail.largest <= 150);

  const auto offset = moments_of(filled<float>(many, DataType::f32, Distribution::large_offset));
  CHECK(offset.mean == doctest::Approx(16).epsilon(0.01));
  CHECK(offset.deviation == doctest::Approx(1).epsilon(0.02));

  const auto sparse = filled<float>(many, DataType::f32, Distribution::sparse_spikes);
  const auto spikes = std::count_if(sparse.begin(), sparse.end(), [](float v) { return std::abs(v) > 1; });
  CHECK(spikes > 1000);
  CHECK(spikes < 2000);

  std::set<float> integers;
  for (const float value : filled<float>(many, DataType::f32, Distribution::small_integers))
    integers.insert(value);
  CHECK(integers == std::set<float>{-2, -1, 0, 1, 2});

  for (const std::size_t count : {std::size_t{10'000}, many}) {
    const auto zeros = filled<float>(count, DataType::f32, Distribution::mostly_zero);
    const auto others = std::count_if(zeros.begin(), zeros.end(), [](float v) { return v != 0; });
    CHECK(others >= 1);
    CHECK(others <= 25);
  }
}

TEST_CASE("magnitudes are spread evenly over their powers of two") {
  const auto values = filled<float>(40000, DataType::f32, Distribution::magnitudes);
  int small = 0;
  int large = 0;
  for (const float value : values) {
    REQUIRE(std::isfinite(value));
    CHECK(std::abs(value) <= 3 * 0x1p24f);
    small += std::abs(value) < 0x1p-12f ? 1 : 0;
    large += std::abs(value) > 0x1p12f ? 1 : 0;
  }
  // A quarter each, were the bell a point.
  CHECK(small > 9000);
  CHECK(large > 7000);
}

TEST_CASE("slices near zero and far from it are of every kind that they are said to be of") {
  constexpr std::size_t length = 64;
  constexpr std::size_t count = 3000;
  struct Kinds {
    int zero = 0, repeated = 0, copies = 0, almost = 0, ascending = 0, signed_zeros = 0, pairs = 0, late = 0;
    int far = 0, wide = 0, steep = 0, early = 0, rectified = 0, pixels = 0;
  };
  const auto kinds_of = [&](Distribution distribution) {
    const auto all = filled<float>(length * count, DataType::f32, distribution);
    Kinds kinds;
    for (std::size_t slice = 1; slice < count; ++slice) {
      const auto* const x = all.data() + slice * length;
      const auto* const before = x - length;
      const std::vector<float> values(x, x + length);
      const auto equal = [&](float value) { return value == 0; };
      const bool zero = std::all_of(values.begin(), values.end(), equal);
      const auto same =
          std::count_if(values.begin(), values.end(), [&](float value) { return value == x[0]; });
      int unlike = 0;
      int neighbours = 0;
      int negative_zeros = 0;
      for (std::size_t i = 0; i < length; ++i) {
        unlike += x[i] != before[i] ? 1 : 0;
        neighbours += i % 2 == 1 && x[i] == x[i - 1] ? 1 : 0;
        negative_zeros += x[i] == 0 && std::signbit(x[i]) ? 1 : 0;
      }
      const auto moments = moments_of(values);
      kinds.zero += zero ? 1 : 0;
      kinds.repeated += !zero && same == length ? 1 : 0;
      kinds.copies += !zero && same < 20 && unlike == 0 ? 1 : 0;
      kinds.almost += !zero && unlike == 1 ? 1 : 0;
      const bool ascends = same < 3 && std::is_sorted(values.begin(), values.end());
      kinds.ascending += ascends && x[1] - x[0] < 0.1f ? 1 : 0;
      kinds.steep += ascends && x[1] - x[0] == 1 ? 1 : 0;
      kinds.signed_zeros += negative_zeros > 5 ? 1 : 0;
      kinds.pairs += !zero && same < 20 && neighbours == length / 2 ? 1 : 0;
      kinds.late += !zero && std::all_of(values.begin(), values.end() - length / 16, equal) ? 1 : 0;
      kinds.early += !zero && std::all_of(values.begin() + length / 2, values.end(), equal) ? 1 : 0;
      const bool negative = std::any_of(values.begin(), values.end(), [](float value) { return value < 0; });
      const bool whole =
          std::all_of(values.begin(), values.end(), [](float value) { return value == std::round(value); });
      const auto zeros = std::count_if(values.begin(), values.end(), equal);
      kinds.rectified += !negative && zeros > 16 && zeros < 50 ? 1 : 0;
      kinds.pixels += whole && !negative && moments.mean > 90 && moments.mean < 170 ? 1 : 0;
      kinds.far += std::abs(moments.mean) > 50 ? 1 : 0;
      kinds.wide += std::abs(moments.mean) < 50 && moments.deviation > 40 ? 1 : 0;
    }
    return kinds;
  };
  const auto near = kinds_of(Distribution::slices);
  for (const int kind : {near.zero, near.repeated, near.copies, near.almost, near.ascending,
                         near.signed_zeros, near.pairs, near.late})
    CHECK(kind > 50);
  CHECK(near.far == 0);
  CHECK(near.wide == 0);
  const auto far = kinds_of(Distribution::far_slices);
  for (const int kind : {far.repeated, far.copies, far.almost, far.far, far.wide, far.steep})
    CHECK(kind > 50);
  CHECK(far.zero == 0);
}

TEST_CASE("content depends on key, stream and place alone") {
  for (const auto distribution : all_distributions) {
    const auto once = filled<float>(1000, DataType::f32, distribution);
    CHECK(once == filled<float>(1000, DataType::f32, distribution));
    CHECK(once != filled<float>(1000, DataType::f32, distribution, 8));
    CHECK(once != filled<float>(1000, DataType::f32, distribution, 7, std::nullopt, 1));
    if (distribution == Distribution::mostly_zero) continue; // how many are not zero depends on the number
    const auto longer = filled<float>(3000, DataType::f32, distribution);
    CHECK(std::equal(once.begin(), once.end(), longer.begin()));
  }
}

TEST_CASE("f32 and f64 contents use the whole mantissa, so that lower precision shows") {
  int coarse = 0;
  for (const float value : filled<float>(1000, DataType::f32, Distribution::normal))
    coarse += value == half_to_float(float_to_half(value)) ? 1 : 0;
  CHECK(coarse < 5);
  coarse = 0;
  for (const double value : filled<double>(1000, DataType::f64, Distribution::normal))
    coarse += value == static_cast<double>(static_cast<float>(value)) ? 1 : 0;
  CHECK(coarse < 5);
}

TEST_CASE("16-bit contents are finite in every distribution") {
  for (const auto distribution : all_distributions) {
    for (const auto bits : filled<std::uint16_t>(many, DataType::f16, distribution))
      REQUIRE(std::abs(half_to_float(bits)) <= 255.0f);
    for (const auto bits : filled<std::uint16_t>(many, DataType::bf16, distribution))
      REQUIRE(std::isfinite(bfloat16_to_float(bits)));
  }
}

TEST_CASE("values stay inside a domain, also after rounding to the type") {
  // Bounds that no 16-bit format holds: rounding to the nearest would leave the domain.
  const ValueRange range{0.1001, 0.2999};
  for (const auto distribution : all_distributions) {
    for (const float v : filled<float>(5000, DataType::f32, distribution, 3, range)) {
      REQUIRE(static_cast<double>(v) >= range.low);
      REQUIRE(static_cast<double>(v) <= range.high);
    }
    for (const auto bits : filled<std::uint16_t>(5000, DataType::f16, distribution, 3, range)) {
      REQUIRE(static_cast<double>(half_to_float(bits)) >= range.low);
      REQUIRE(static_cast<double>(half_to_float(bits)) <= range.high);
    }
    for (const auto bits : filled<std::uint16_t>(5000, DataType::bf16, distribution, 3, range)) {
      REQUIRE(static_cast<double>(bfloat16_to_float(bits)) >= range.low);
      REQUIRE(static_cast<double>(bfloat16_to_float(bits)) <= range.high);
    }
  }
}

TEST_CASE("indices reach every row of their domain and nothing else") {
  const ValueRange rows{0, 9};
  for (const auto distribution : {Distribution::normal, Distribution::small_integers}) {
    std::set<std::int32_t> seen;
    for (const auto index : filled<std::int32_t>(2000, DataType::i32, distribution, 5, rows))
      seen.insert(index);
    CHECK(seen.size() == 10);
    CHECK(*seen.begin() == 0);
    CHECK(*seen.rbegin() == 9);
  }
  for (const auto distribution : all_distributions)
    for (const auto index : filled<std::int64_t>(2000, DataType::i64, distribution, 5, rows)) {
      REQUIRE(index >= 0);
      REQUIRE(index <= 9);
    }
  for (const auto only :
       filled<std::uint8_t>(100, DataType::u8, Distribution::heavy_tail, 5, ValueRange{7, 7}))
    REQUIRE(only == 7);
}

TEST_CASE("integers without a domain are small and fit their type") {
  for (const auto distribution : all_distributions) {
    for (const auto value : filled<std::int32_t>(many, DataType::i32, distribution))
      REQUIRE(std::abs(value) <= 1000);
    std::set<int> bytes;
    for (const auto value : filled<std::int8_t>(many, DataType::i8, distribution)) bytes.insert(value);
    CHECK(bytes.size() > 4);
    for (const auto value : filled<std::uint32_t>(many, DataType::u32, distribution)) REQUIRE(value <= 1000);
  }
}

TEST_CASE("a domain's bounds are expressions over the symbols") {
  Argument argument;
  argument.name = "index";
  argument.type = DataType::i32;
  argument.domain = ValueDomain{"0", "N - 1"};
  ProblemSize size;
  size.symbols = {{"N", 12}};
  CHECK(value_range(argument, size) == ValueRange{0, 11});
  argument.domain = ValueDomain{"0.2", "0.8"};
  CHECK_THROWS_WITH_AS((void)value_range(argument, size), doctest::Contains("no value lies in the domain"),
                       Error);
  argument.domain.reset();
  CHECK_FALSE(value_range(argument, size).has_value());
}

TEST_CASE("a generate hook replaces the built-in contents; what it throws names the hook") {
  Task task;
  Argument argument;
  argument.name = "x";
  ProblemSize size;
  task.generate = [](const Argument&, const ProblemSize&, std::uint64_t, std::span<std::byte> content) {
    std::fill(content.begin(), content.end(), std::byte{3});
  };
  std::vector<std::byte> content(8);
  generate_by_hook(task, argument, size, 1, 0, content);
  CHECK(content == std::vector<std::byte>(8, std::byte{3}));

  task.generate = [](const Argument&, const ProblemSize&, std::uint64_t, std::span<std::byte>) {
    throw std::runtime_error("no such file");
  };
  try {
    generate_by_hook(task, argument, size, 1, 0, content);
    FAIL("the hook's exception was lost");
  } catch (const Error& error) {
    CHECK(error.id() == error_id::evaluator_hook);
    CHECK(error.message().find("no such file") != std::string::npos);
  }
}
