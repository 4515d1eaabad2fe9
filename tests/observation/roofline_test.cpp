// The bound of a call: memory, ordinary units, and matrix units for who is faster than those.
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/observation/roofline.hpp>

#include <doctest/doctest.h>

using namespace mtmc;

namespace {

/// A product of 2048 cubed in this type on an H100, which takes so many seconds.
Observation product(DataType type, double seconds) {
  Observation seen;
  seen.task.name = "product";
  seen.task.arguments = {{.name = "A", .role = ArgumentRole::input, .type = type, .shape = {"N", "N"}},
                         {.name = "B", .role = ArgumentRole::input, .type = type, .shape = {"N", "N"}},
                         {.name = "C", .role = ArgumentRole::output, .type = type, .shape = {"N", "N"}}};
  seen.task.sizes = {{{{"N", 2048}}, 1}};
  seen.task.flops = "2*N*N*N";
  seen.device = find_device_preset("H100")->device;
  seen.evaluation.emplace();
  seen.evaluation->verdict = Verdict::correct;
  seen.evaluation->seconds = seconds;
  return seen;
}

constexpr double flops = 2.0 * 2048 * 2048 * 2048;

double peak(const char* name) { return find_device_preset("H100")->device.peak_rates.at(name); }

} // namespace

TEST_CASE("a kernel is measured by the ordinary units as long as they could be as fast") {
  const double least = flops / peak("f32");
  CHECK(roofline_of(product(DataType::f32, 2 * least)).reached() == doctest::Approx(0.5));
  CHECK(roofline_of(product(DataType::f32, 1.01 * least)).reached() == doctest::Approx(1 / 1.01));
}

TEST_CASE("who is faster than the ordinary units uses matrix units: three products of f16 are one of f32") {
  const double least = flops / peak("f32");
  const auto roofline = roofline_of(product(DataType::f32, least / 2));
  CHECK(roofline.compute_seconds == doctest::Approx(3 * flops / peak("f16")));
  CHECK(roofline.reached() == doctest::Approx(2 * 3 * peak("f32") / peak("f16")));
  CHECK(roofline_of(product(DataType::f16, least / 8)).compute_seconds ==
        doctest::Approx(flops / peak("f16")));
  CHECK(roofline_of(product(DataType::f64, flops / peak("f64") / 1.5)).compute_seconds ==
        doctest::Approx(flops / peak("f64_matrix")));
}

TEST_CASE("without matrix units nobody is held against them") {
  auto seen = product(DataType::f32, flops / peak("f32") / 1.2);
  seen.device.peak_rates = {{"f32", peak("f32")}};
  CHECK(roofline_of(seen).reached() == doctest::Approx(1));
}
