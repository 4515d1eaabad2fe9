// Nothing that a kernel left in shared or local memory of a real GPU is there when the next call begins;
// skipped where there is no GPU.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gpu.hpp"

using namespace mtmc;
using mtmc_test::gpu;

namespace {

/// Writes a mark to every word that `words` names or, with `leaves` 0, counts the marks that are there
/// already.
std::string kernel(const std::string& declaration, const std::string& words) {
  return "//@ launch mark<<<1, 1>>>(C, n, leaves)\n" + declaration +
         "__global__ void mark(unsigned* C, int n, int leaves) {\n" + words +
         "  unsigned found = 0;\n"
         "  for (int i = first; i < n; i += step) {\n"
         "    if (leaves) memory[i] = 0x5eed1234u;\n"
         "    else found += memory[i] == 0x5eed1234u;\n"
         "  }\n"
         "  if (found != 0) atomicAdd(C, found);\n"
         "  __syncthreads();\n}\n";
}
const std::string of_shared_memory =
    kernel("extern __shared__ unsigned words[];\n",
           "  volatile unsigned* memory = words;\n  const int first = threadIdx.x, step = blockDim.x;\n");
const std::string of_local_memory =
    kernel({}, "  volatile unsigned memory[1500];\n  const int first = 0, step = 1;\n");

/// A program, its plan, and the buffer for what it counts.
class Marks {
public:
  Marks(const std::string& text, std::int64_t grid, std::int64_t block, std::int64_t shared,
        std::int64_t words)
      : count_(gpu()->allocate(sizeof(std::uint32_t))) {
    auto& launch = plan_.launches.emplace_back();
    launch.entry = "mark";
    launch.line = 1;
    launch.grid = {grid, 1, 1};
    launch.block = {block, 1, 1};
    launch.shared_bytes = shared;
    launch.arguments = {
        {.name = "C", .type = DataType::u32, .bound = {count_.handle(), 0, sizeof(std::uint32_t)}},
        {.kind = LaunchArgument::Kind::scalar, .name = "n", .type = DataType::i32, .integer = words},
        {.kind = LaunchArgument::Kind::scalar, .name = "leaves", .type = DataType::i32}};
    auto compiled = gpu()->compile({languages::cuda, text, {}}, {.plan = plan_}, {});
    for (const auto& diagnostic : compiled.diagnostics) MESSAGE(diagnostic.message);
    REQUIRE(compiled.program);
    program_ = std::move(compiled.program);
  }
  void leave() { call(1); }
  [[nodiscard]] std::uint32_t count(bool overwritten) {
    gpu()->fill(count_, 0, count_.bytes(), std::byte{0});
    if (overwritten) gpu()->overwrite_residue(*program_);
    call(0);
    std::array<std::uint32_t, 1> found{};
    gpu()->download(count_, 0, std::as_writable_bytes(std::span(found)));
    return found[0];
  }
  void call(std::int64_t leaves) {
    plan_.launches[0].arguments[2].integer = leaves;
    const auto status =
        gpu()->run(*program_, plan_, std::chrono::steady_clock::now() + std::chrono::seconds{10});
    REQUIRE_MESSAGE(status.finished(), status.message);
  }
  [[nodiscard]] CudaBackend::Program& program() { return *program_; }

private:
  CudaBackend::Buffer count_;
  LaunchPlan plan_;
  std::shared_ptr<CudaBackend::Program> program_;
};

/// Noise is the mark by chance, too, once in 2^32 words: of 4 x 10^8, more than so many less than once in ten
/// million times.
constexpr std::uint32_t max_by_chance = 4;

/// The largest dynamic shared memory of a block that can be launched.
std::int64_t most_shared_bytes() {
  const auto& arch = gpu()->device().arch;
  const auto number = std::stoi(arch.substr(3));
  return number >= 90 && number < 120 ? 232448 : number == 80 || number == 87 ? 166912 : 64 << 10;
}

} // namespace

TEST_SUITE("residue on a GPU") {
  TEST_CASE("no word of shared memory that a kernel left on any multiprocessor is there in its next call") {
    if (gpu() == nullptr) return;
    const auto bytes = most_shared_bytes();
    const auto units = gpu()->device().compute_units;
    // As one block to a multiprocessor, as two, and as many small ones.
    for (const std::int64_t parts : {1, 2, 8}) {
      CAPTURE(parts);
      const auto share = bytes / parts / 1024 * 1024 - (parts > 1 ? 1024 : 0);
      Marks marks(of_shared_memory, parts * units, 256, share, share / 4);
      marks.leave();
      MESSAGE(marks.count(false), " of ", parts * units * share / 4, " words survive without");
      for (int i = 0; i < 5; ++i) {
        marks.leave();
        CHECK(marks.count(true) <= max_by_chance);
      }
    }
  }

  TEST_CASE("nor is one of local memory of any thread") {
    if (gpu() == nullptr) return;
    const auto units = gpu()->device().compute_units;
    for (const std::int64_t block : {128, 512, 1024}) {
      CAPTURE(block);
      Marks marks(of_local_memory, units * 2048 / block, block, 0, 1500);
      marks.leave();
      MESSAGE(marks.count(false), " of ", std::int64_t{1500} * units * 2048, " words survive without");
      for (int i = 0; i < 5; ++i) {
        marks.leave();
        CHECK(marks.count(true) <= max_by_chance);
      }
    }
  }

  TEST_CASE("what it costs a call is said, not judged") {
    if (gpu() == nullptr) return;
    for (const bool local : {false, true}) {
      Marks marks(local ? of_local_memory : of_shared_memory, 1, 32, local ? 0 : 1024, 256);
      for (const bool overwritten : {false, true}) {
        (void)marks.count(overwritten);
        const auto begin = std::chrono::steady_clock::now();
        constexpr int calls = 200;
        for (int i = 0; i < calls; ++i) {
          if (overwritten) gpu()->overwrite_residue(marks.program());
          marks.call(1);
        }
        const std::string what = (local ? "6 KB of local memory, " : "shared memory, ") +
                                 std::string(overwritten ? "overwritten: " : "as it is: ");
        MESSAGE(what, 1e6 * seconds_since(begin) / calls, " us a call");
      }
    }
  }
}
