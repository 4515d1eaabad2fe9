// What a block or a warp reads of its row several times waits in registers: legal, right at every size, and
// composed with what others make of rows.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "grid_variants.hpp"
#include "row_kernels.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// A block of 128 threads for each row, which does this.
Task block_for_a_row(const std::string& body) {
  return row_task("//@ launch rows<<<M, 128>>>(x, y, v, M, N)\n"
                  "__global__ void rows(float* x, float* y, const float* v, int M, int N) {\n"
                  "  int i = blockIdx.x;\n  int lane = threadIdx.x;\n" +
                      body + "}\n",
                  true);
}
std::string reason(const std::string& body) {
  const Task task = block_for_a_row(body);
  return grid_draft(task, task.kernel, "retention|rows/threads:x").message;
}
const std::string doubled = "  for (int j = lane; j < N; j += 128) y[i * N + j] = 2 * x[i * N + j];\n";
} // namespace

TEST_CASE("a row that fits is loaded once, by vectors, and what is dear is computed once") {
  const Task task = cuda_task("softmax");
  const std::string source =
      grid_source_after(task, {"parallelization|softmax/threads:x", "retention|softmax/threads:x"});
  CHECK(has(source, "    // Rows of up to 1024 elements wait in registers.\n"
                    "    if (N <= 1024 && N % 4 == 0 && reinterpret_cast<size_t>(x) % 16 == 0 && "
                    "reinterpret_cast<size_t>(y) % 16 == 0) {\n"
                    "      float4 kept_x[2];\n"
                    "      float4 kept_value[2];\n"
                    "      #pragma unroll\n"
                    "      for (int group = 0; group < 2; ++group) {\n"
                    "        const int first = 4 * (lane + 128 * group);\n"
                    "        if (first < N) {\n"
                    "          kept_x[group] = *reinterpret_cast<const float4*>(&x[i * N + first]);\n"));
  CHECK(has(source, "            four_y[neighbour] = four_values[neighbour] / total;\n"));
  CHECK(has(source, "    } else {\n      for (int j = 1 + lane; j < N; j += 128) {\n"));
  const std::string without =
      grid_source_after(task, {"parallelization|softmax/threads:x", "retention|softmax/threads:x@1"});
  CHECK_FALSE(has(without, "kept_value"));
}

TEST_CASE("what a later loop stores again is not stored by an earlier one") {
  const std::string source = grid_source_after(
      cuda_task("attention"), {"parallelization|soften/threads:x", "retention|soften/threads:x"});
  const std::string store = "*reinterpret_cast<float4*>(&scores[row * T + first]) = kept_scores;";
  CHECK(has(source, store));
  CHECK(source.find(store) == source.rfind(store));
}

TEST_CASE("rows of the tasks are kept in every shape, by blocks and by warps") {
  for (const auto& [name, spread] : std::vector<std::pair<std::string, std::string>>{
           {"softmax", "parallelization|softmax/threads:x"},
           {"softmax", "parallelization|softmax/threads:x@1"},
           {"layer_norm", "parallelization|layer_norm/threads:x"},
           {"rms_norm", "parallelization|rms_norm/threads:x"},
           {"attention", "parallelization|soften/threads:x"},
           {"attention", "parallelization|soften/threads:x@1"}}) {
    const auto& shown = spread;
    CAPTURE(shown);
    Task task = cuda_task(name);
    ProblemSize whole = task.sizes.back(); // one that vectors divide
    for (auto& [symbol, value] : whole.symbols)
      value = symbol == "N" ? 996 : symbol == "M" ? 3 : symbol == "T" ? 36 : value;
    task.sizes.push_back(whole);
    const Kernel kernel{languages::cuda, grid_source_after(task, {spread})};
    const std::size_t region = spread.find('|') + 1;
    const std::string function = spread.substr(region, spread.find('/') - region);
    CHECK(right_variants(task, kernel, "retention|" + function + "/threads:x") >= 2);
  }
}

TEST_CASE("rows are kept as different people write them, and the action is on offer") {
  for (const RowKernel& row : row_kernels()) {
    if (row.name.find("product") == 0 || row.name.find("matrix") != std::string::npos) continue; // one loop
    CAPTURE(row.name);
    const Task task = row_task(row.source, row.with_vector);
    const Kernel kernel{languages::cuda, grid_source_after(task, row.before)};
    const auto actions = ActionSpace::extended().legal_actions(AstRegionFinder{}.find(task, kernel), h100());
    CHECK(std::any_of(actions.begin(), actions.end(),
                      [](const Action& action) { return action.key() == "retention|rows/threads:x"; }));
    CHECK(right_variants(task, kernel, "retention|rows/threads:x") >= 2);
  }
}

TEST_CASE("what cannot be kept is declined with the reason") {
  const std::string total = "  float total = 0.0f;\n"
                            "  for (int j = lane; j < N; j += 128) total += x[i * N + j];\n";
  CHECK(reason(doubled) == "no loop of a row reads what an earlier one had");
  CHECK(has(reason("  float own = v[lane % N];\n"
                   "  for (int j = lane; j < N; j += 128) x[i * N + j] += own;\n" +
                   doubled),
            "own depends on the thread that has the iteration"));
  CHECK(reason(total + "  for (int j = lane; j < N; j += 128) y[i * N + j] = x[i * N + j] - total;\n") ==
        "in the j loop the value of total depends on the thread that has the iteration");
  CHECK(reason("  for (int j = lane; j < N; j += 128) x[i * N + j] *= 2;\n"
               "  for (int j = lane; j < N; j += 128) y[i * N + j] = x[i * N + (j + 128) % N];\n") ==
        "other threads touch the elements of x that a thread has in the j loop, with no barrier between");
  CHECK(reason("  for (int j = 2 * lane; j < N; j += 256) x[i * N + j] = x[i * N + j] + 1;\n" + doubled) ==
        "neighbouring threads do not take neighbouring iterations of the j loop");
  CHECK(reason("  if (lane < 5) {\n" + doubled + doubled + "  }\n")
            .starts_with("not all threads of a row may come to line"));
  CHECK(reason("  for (i = blockIdx.x; i < M; i += gridDim.x) {\n" + doubled + doubled + "  }\n")
            .ends_with("is a loop around a row's work"));
  CHECK(reason(doubled + "  if (M == 7) return;\n" + doubled)
            .ends_with("ends a thread between the loops of its row"));
  const Task task = cuda_task("softmax");
  CHECK(has(grid_draft(task, task.kernel, "retention|softmax/threads:x").message,
            "neighbouring threads do not take neighbouring iterations of the j loop"));
  const Kernel kept{languages::cuda, grid_source_after(task, {"parallelization|softmax/threads:x",
                                                              "retention|softmax/threads:x"})};
  CHECK(has(grid_draft(task, kept, "retention|softmax/threads:x").message, "a faster way already"));
  Task longer = task;
  for (ProblemSize& size : longer.sizes)
    if (size.weight > 0) size.symbols["N"] = 1 << 15;
  const Kernel spread{languages::cuda, grid_source_after(longer, {"parallelization|softmax/threads:x"})};
  CHECK(grid_draft(longer, spread, "retention|softmax/threads:x").message ==
        "a row of 32768 elements is too long for 512 threads to keep");
}

TEST_CASE("an element before a loop's first one is not touched") {
  if (!mtmc_test::can_emulate) return;
  const Task task =
      block_for_a_row("  for (int j = lane + 1; j < N; j += 128) y[i * N + j] = x[i * N + j - 1];\n"
                      "  __syncthreads();\n"
                      "  for (int j = lane + 1; j < N; j += 128) y[i * N + j] += x[i * N + j - 1];\n");
  CHECK(right_variants(task, task.kernel, "retention|rows/threads:x") >= 1);
}
