// How the 32 threads of a warp make an access: strides, sectors, sharing, windows, bank conflicts.

#include <doctest/doctest.h>

#include <string>

#include "../cuda_kernels.hpp"

using namespace cuda_kernels;
using mtmc::LanePattern;

namespace {

/// The first access to `in` of a kernel whose threads read `in[subscript]`.
mtmc::LaneFacts reading(const std::string& subscript, const std::string& block = "256",
                        const std::string& type = "float", const std::string& before = "") {
  const std::string source = "//@ launch f<<<(64, 64), " + block +
                             ">>>(in, out, M, N)\n__global__ void f(const " + type +
                             "* in, float* out, int M, int N) {\n" + before +
                             "  out[threadIdx.x] = (float)in[" + subscript + "];\n}\n";
  return lanes(region(structure_of(matrix_task(source, "in", "out")), "f"), "in");
}

/// The same for a tile of shared memory.
mtmc::LaneFacts tile(const std::string& extents, const std::string& subscripts,
                     const std::string& block = "(32, 8)", const std::string& type = "float") {
  const std::string source =
      "//@ launch f<<<64, " + block +
      ">>>(in, out, M, N)\n__global__ void f(const float* in, float* out, int M, int N) {\n  "
      "__shared__ " +
      type + " s" + extents + ";\n  out[threadIdx.x] = (float)s" + subscripts + ";\n}\n";
  return lanes(region(structure_of(matrix_task(source, "in", "out")), "f"), "s");
}

} // namespace

TEST_CASE("neighbouring threads on neighbouring elements: as few sectors as there are bytes") {
  const auto facts = reading("blockIdx.x * blockDim.x + threadIdx.x");
  CHECK(facts.pattern == LanePattern::coalesced);
  CHECK(facts.stride == "1");
  CHECK(facts.sectors == 4);
  CHECK(facts.least_sectors == 4);
  CHECK(facts.sharers == 1);
  CHECK(reading("threadIdx.x", "256", "double").sectors == 8);
  CHECK(reading("threadIdx.x", "256", "signed char").sectors == 1);
  CHECK(reading("threadIdx.x", "256", "__half").sectors == 2);
}

TEST_CASE("one element off the sector's border costs one sector more") {
  CHECK(reading("threadIdx.x + 1").sectors == 5);
  CHECK(reading("threadIdx.x + 1").pattern == LanePattern::coalesced);
  CHECK(reading("M * N - 1 - threadIdx.x").pattern == LanePattern::coalesced); // backwards is as good
  CHECK(reading("M * N - 1 - threadIdx.x").sectors == 4);
}

TEST_CASE("a row for each thread: a sector for each thread") {
  const auto facts = reading("threadIdx.x * N");
  CHECK(facts.pattern == LanePattern::strided);
  CHECK(facts.stride == "N");
  CHECK(facts.elements == 1024);
  CHECK(facts.sectors == 32);
  CHECK(facts.least_sectors == 4);
}

TEST_CASE("a small stride wastes part of each sector") {
  CHECK(reading("2 * threadIdx.x").sectors == 8);
  CHECK(reading("2 * threadIdx.x").elements == 2);
}

TEST_CASE("an access without the thread's index is one element for all of the block") {
  const auto facts = reading("blockIdx.x");
  CHECK(facts.pattern == LanePattern::broadcast);
  CHECK(facts.sectors == 1);
  CHECK(facts.same_along == "x");
  CHECK(facts.sharers == 256);
}

TEST_CASE("a warp of a narrow block is made of several rows") {
  const auto facts =
      reading("(blockIdx.y * 16 + threadIdx.y) * N + blockIdx.x * 16 + threadIdx.x", "(16, 16)");
  CHECK(facts.pattern == LanePattern::coalesced);
  CHECK(facts.sectors == 4); // two rows of 64 bytes
  const auto row = reading("threadIdx.y * N", "(16, 16)");
  CHECK(row.pattern == LanePattern::broadcast);
  CHECK(row.sectors == 2);
  CHECK(row.same_along == "x");
  CHECK(row.sharers == 16);
  CHECK(reading("threadIdx.x", "(16, 16)").same_along == "y");
}

TEST_CASE("distances along all axes of the launch are told") {
  const auto facts = reading("threadIdx.y * N + 2 * threadIdx.x", "(16, 16)");
  REQUIRE(facts.axes.size() == 2);
  CHECK(facts.axes[0] == 2);
  CHECK(facts.axes[1] == 1024);
  // where a block is one thread thick, the next thread is in the next block
  CHECK(reading("blockIdx.y * N + threadIdx.x").axes[1] == 1024);
}

TEST_CASE("division and remainder count as they are") {
  CHECK(reading("threadIdx.x % 32").pattern == LanePattern::coalesced);
  CHECK(reading("threadIdx.x / 32").pattern == LanePattern::broadcast);
  const auto facts = reading("(threadIdx.x % 4) * N + threadIdx.x / 4");
  CHECK(facts.pattern == LanePattern::irregular);
  CHECK(facts.stride == "?");
  const auto group = reading("group", "256", "float", "  int group = threadIdx.x / 8 * 8;\n");
  CHECK(group.stride == "?");
  CHECK(group.pattern == LanePattern::irregular);
  CHECK(group.sectors == 4);
  CHECK(group.least_sectors == 1); // four elements
  CHECK(facts.sectors == 4);       // 4 rows of 8 elements: not neighbours, but nothing is wasted
}

TEST_CASE("an index that is loaded leaves the pattern open") {
  const auto facts = reading("index", "256", "float", "  int index = (int)out[threadIdx.x];\n");
  CHECK(facts.pattern == LanePattern::irregular);
  CHECK(facts.sectors == 0);
  CHECK(facts.sharers == 1);
}

TEST_CASE("threads that read their neighbours' elements in other iterations share a window") {
  const std::string loop = R"(
//@ launch f<<<64, 128>>>(in, out, M, N)
__global__ void f(const float* in, float* out, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 5; ++k) sum += in[SUBSCRIPT];
  out[i] = sum;
}
)";
  const auto window = [&loop](const std::string& subscript) {
    std::string source = loop;
    source.replace(source.find("SUBSCRIPT"), 9, subscript);
    return lanes(region(structure_of(matrix_task(source, "in", "out")), "f/k"), "in").window;
  };
  CHECK(window("i + k"));
  CHECK_FALSE(window("i * N + k"));
  CHECK_FALSE(window("k * N + i"));
  CHECK_FALSE(window("i + 128 * k"));
}

TEST_CASE("shared memory: rows have no conflicts, columns of 32 words meet in one bank, padding mends it") {
  CHECK(tile("[32][32]", "[threadIdx.y][threadIdx.x]").bank_ways == 1);
  CHECK(tile("[32][32]", "[threadIdx.x][threadIdx.y]").bank_ways == 32);
  CHECK(tile("[32][33]", "[threadIdx.x][threadIdx.y]").bank_ways == 1);
  CHECK(tile("[32][34]", "[threadIdx.x][threadIdx.y]").bank_ways == 2);
  CHECK(tile("[32][32]", "[threadIdx.y][0]").bank_ways == 1); // one word for all
  CHECK(tile("[1024]", "[4 * threadIdx.x]").bank_ways == 4);
  const auto facts = tile("[32][32]", "[threadIdx.x][threadIdx.y]");
  CHECK(facts.shared_memory);
  CHECK(facts.sectors == 0);
  CHECK(facts.elements == 32);
}

TEST_CASE("shared memory: wide elements go in several requests, narrow ones share words") {
  CHECK(tile("[1024]", "[threadIdx.x]", "256", "double").bank_ways == 1);
  CHECK(tile("[1024]", "[2 * threadIdx.x]", "256", "double").bank_ways == 2);
  CHECK(tile("[1024]", "[threadIdx.x]", "256", "__half").bank_ways == 1);
}

TEST_CASE("a block narrower than a warp conflicts between its rows") {
  CHECK(tile("[16][16]", "[threadIdx.x][threadIdx.y]", "(16, 16)").bank_ways == 8);
}
