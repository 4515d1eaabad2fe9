#include <mtmc/backend/device_presets.hpp>
#include <mtmc/observation/describe.hpp>

#include <doctest/doctest.h>

#include "../core/sample_nouns.hpp"

using namespace mtmc;

namespace {
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
} // namespace

TEST_CASE("an observation as text names task, hardware, kernel, regions and history") {
  auto seen = sample::observation();
  seen.task.flops = "2*M*K";
  const auto text = describe(seen);
  CHECK(contains(text, "gemm: C = A B"));
  CHECK(contains(text, "input A: f16[M, K] in [0, M - 1]"));
  CHECK(contains(text, "Sample 9000 (cpu, x86-64 avx2)"));
  CHECK(contains(text, "   1  void f(float* x) {}\n"));
  CHECK(contains(text, "- the i, j loop nest of f (line 2 to 5): i x17 parallel"));
  CHECK(contains(text, "a kernel may include <cstdint>, and nothing else"));
  CHECK(contains(text, "step 3 of at most 8"));
  CHECK(contains(text, "step 4: tiling the i loop -> no kernel (declined)"));
  CHECK(text == describe(seen));
}

TEST_CASE("old history is counted, not shown") {
  auto seen = sample::observation();
  seen.history.assign(5, sample::history_entry());
  const auto text = describe(seen, {.kernel = false, .history = 2});
  CHECK(contains(text, "(3 earlier ones left out)"));
  CHECK_FALSE(contains(text, "## Kernel"));
}

TEST_CASE("numbers are written for people") {
  CHECK(seconds_text(0.0123) == "12.3 ms");
  CHECK(seconds_text(8.5e-4) == "850 us");
  CHECK(seconds_text(1.5) == "1.5 s");
  CHECK(seconds_text(3e-9) == "3 ns");
  CHECK(speed_up_text({2.412, 2.361, 2.468}) == "2.41x [2.36, 2.47]");
}

TEST_CASE("no interval is shown where none is known") {
  CHECK(speed_up_text(SpeedUp::without_interval(0.2148)) == "0.215x");
  CHECK(speed_up_text(SpeedUp{}) == "1x");
}

TEST_CASE("a preset tells a prompt what the data sheet does, dense") {
  const auto text = describe(find_device_preset("A100")->device);
  CHECK(contains(text, "NVIDIA A100 80GB PCIe (gpu, sm_80)\n  compute units: 108, "));
  CHECK(contains(text, "  L2: 40 MiB, shared by 108\n  shared memory per unit: 164 KiB\n  memory: 80 GiB\n"));
  CHECK(contains(text, "  memory bandwidth (data sheet): 1.94 TB/s\n"));
  CHECK(contains(text, "  f16 peak (data sheet, dense): 312 TFLOP/s\n"));
  CHECK(contains(text, "  i8 peak (data sheet, dense): 624 TOP/s\n"));
}

TEST_CASE("lines are numbered from one, also without a final newline") {
  CHECK(with_line_numbers("a\nb") == "   1  a\n   2  b\n");
}

TEST_CASE("a region on a grid tells its threads, and how a warp makes each access") {
  Region region;
  region.label = "the k loop of gemm";
  region.first_line = 9;
  region.last_line = 11;
  region.facts.threads = {{"x", "j", "N", 64, 16, true, 1024}};
  region.facts.reductions = {"sum +"};
  AccessFacts access;
  access.array = "A";
  access.subscript = "K*i + k";
  access.lanes.emplace();
  access.lanes->pattern = LanePattern::broadcast;
  access.lanes->sectors = 2;
  access.lanes->least_sectors = 1;
  access.lanes->sharers = 16;
  access.lanes->same_along = "x";
  region.facts.accesses = {access};
  access.array = "tile";
  access.write = true;
  access.lanes = LaneFacts{true, LanePattern::strided, "32", 32};
  access.lanes->bank_ways = 32;
  region.facts.accesses.push_back(access);
  region.facts.shared_bytes = 4096;
  CHECK(describe(region) == "the k loop of gemm (line 9 to 11): x: j < N, 64 blocks of 16 threads; reduces "
                            "sum +; reads A[K*i + k]: "
                            "broadcast, 2 sectors a warp (1 needed), the same for 16 threads along x; writes "
                            "tile[K*i + k]: strided by 32, "
                            "32-way bank conflict; 4 KiB shared memory a block");
  region.kind = RegionKind::launch; // the function's regions tell it
  CHECK_FALSE(contains(describe(region), "sectors"));
}
