// Which launch takes the time, and how far each is from what the device can.
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/observation/launch_shares.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// A cross entropy of two launches on a device of 1 TB/s: the second is one thread that adds up.
Observation cross_entropy() {
  Observation seen;
  seen.task.name = "loss";
  seen.task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"M", "N"}},
                         {.name = "loss", .role = ArgumentRole::output, .shape = {"1"}},
                         {.name = "M", .role = ArgumentRole::scalar, .type = DataType::i32},
                         {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32}};
  seen.task.sizes = {{{{"M", 16384}, {"N", 1000}}, 1}};
  seen.kernel = {languages::cuda,
                 "//@ scratch rows: f32[M]\n"
                 "//@ launch of_rows<<<ceil_div(M, 128), 128>>>(x, rows, M, N)\n"
                 "__global__ void of_rows(const float* x, float* rows, int M, int N) {\n"
                 "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "  if (i >= M) return;\n"
                 "  float sum = 0;\n"
                 "  for (int j = 0; j < N; ++j) sum += x[i * N + j];\n"
                 "  rows[i] = sum;\n"
                 "}\n"
                 "//@ launch add_up<<<1, 1>>>(rows, loss, M)\n"
                 "__global__ void add_up(const float* rows, float* loss, int M) {\n"
                 "  float sum = 0;\n"
                 "  for (int i = 0; i < M; ++i) sum += rows[i];\n"
                 "  loss[0] = sum / M;\n"
                 "}\n",
                 {}};
  seen.device = {.name = "sample", .kind = "gpu", .arch = "sm_90a", .compute_units = 132};
  seen.device.memory_bandwidth = 1e12;
  seen.device.peak_rates = {{"f32", 50e12}};
  seen.structure = AstRegionFinder{}.find(seen.task, seen.kernel);
  seen.evaluation.emplace();
  seen.evaluation->verdict = Verdict::correct;
  seen.evaluation->seconds = 468e-6;
  seen.evaluation->launches = {{"of_rows", 2, 98e-6, {}, {}}, {"add_up", 10, 370e-6, {}, {}}};
  return seen;
}

} // namespace

TEST_CASE("each launch has its share, its own bound, and what it fills of the device") {
  const auto seen = cross_entropy();
  const auto shares = launch_shares(seen);
  REQUIRE(shares.size() == 2);
  CHECK(shares[0].share == doctest::Approx(98.0 / 468));
  CHECK(shares[0].bytes == 4 * 16384 * 1001.0);
  CHECK(shares[0].roofline.memory_seconds == doctest::Approx(65.6e-6).epsilon(0.01));
  CHECK(shares[0].roofline.reached() == doctest::Approx(0.67).epsilon(0.01));
  CHECK(shares[0].blocks == 128);
  CHECK(shares[0].filled == doctest::Approx(128.0 / 132));
  CHECK(shares[1].bytes == 4 * 16385.0);
  CHECK(shares[1].roofline.reached() < 0.001);
  CHECK(shares[1].filled == doctest::Approx(1.0 / 132 / 32));
}

TEST_CASE("regions have the share of the launches that execute them") {
  const auto seen = cross_entropy();
  const auto shares = launch_shares(seen);
  const auto share = [&](const std::string& path) {
    const auto* region = seen.structure.find_region(path);
    REQUIRE_MESSAGE(region != nullptr, path);
    return share_of_time(*region, shares);
  };
  CHECK(share("launch:add_up") == doctest::Approx(370.0 / 468));
  CHECK(share("add_up/i") == doctest::Approx(370.0 / 468));
  CHECK(share("of_rows/j") == doctest::Approx(98.0 / 468));
  CHECK(share("launch:of_rows+launch:add_up") == doctest::Approx(1));
  Region helper;
  helper.path = "helper/i";
  CHECK_FALSE(share_of_time(helper, shares));
}

TEST_CASE("prompts tell where the time goes") {
  auto seen = cross_entropy();
  const auto text = describe(seen);
  CHECK(contains(text,
                 "  of_rows (line 2): 98 us, 21 % of the time; moves at least 65.6 MB: 65.6 us, 67 % of "
                 "what the device can\n"));
  CHECK(contains(text, "  add_up (line 10): 370 us, 79 % of the time; moves at least 65.5 kB: 65.5 ns, 0.018 "
                       "% of what the device can; 1 block of 1 thread for 132 units fill 0.024 % of the "
                       "device\n"));
  CHECK(contains(text, "the i loop of add_up"));
  CHECK(contains(text, "; 79 % of the time\n"));
  SUBCASE("and leave it out where there is one launch, or nothing is known") {
    seen.evaluation->launches.pop_back();
    CHECK_FALSE(contains(describe(seen), "of the time"));
    seen.evaluation->launches.clear();
    CHECK(launch_shares(seen).empty());
    CHECK(describe_launches(seen).empty());
  }
}

TEST_CASE("the last wave of a grid may be nearly empty") {
  auto seen = cross_entropy();
  const auto filled = [&](std::int64_t blocks, std::int64_t threads) {
    return detail::filled_part(seen.device, blocks, threads);
  };
  CHECK(filled(132 * 8, 256) == 1);
  CHECK(filled(132 * 8 + 1, 256) == doctest::Approx(0.5).epsilon(0.01));
  CHECK(filled(132 * 80, 256) == 1);
  CHECK(filled(200, 256) == 1);
  CHECK(filled(66, 256) == 0.5);
  CHECK(filled(1000, 1) == doctest::Approx(1.0 / 32));
  seen.device.kind = "cpu";
  CHECK(filled(1, 1) == 1);
}

TEST_CASE("regions within a launch whose parts were timed have the share of theirs") {
  auto seen = cross_entropy();
  seen.evaluation->launches.front().parts = {{4, 5, 1e-6, {}}, {6, 9, 3e-6, {}}};
  const auto shares = launch_shares(seen);
  const auto* loop = seen.structure.find_region("of_rows/j");
  REQUIRE(loop != nullptr);
  CHECK(share_of_time(*loop, shares) == doctest::Approx(0.75 * 98.0 / 468));
  const auto* launch = seen.structure.find_region("launch:of_rows");
  CHECK(share_of_time(*launch, shares) == doctest::Approx(98.0 / 468));
  CHECK(contains(describe(seen), "    line 6 to 9: 16 % of the time\n"));
  seen.evaluation->launches.pop_back();
  CHECK(tells_apart(launch_shares(seen)));
}
