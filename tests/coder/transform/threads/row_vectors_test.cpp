// Threads of a row load and store several neighbouring elements at once: legal, right at every size, and on
// offer for loops that threads share.

#include <mtmc/coder/transform/threads/vector_types.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "grid_variants.hpp"
#include "row_kernels.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
Draft draft(const std::string& body, const std::string& key = "vectorization|rows/threads:x") {
  const Task task = row_task("//@ launch rows<<<M, 128>>>(x, y, v, M, N)\n"
                             "__global__ void rows(float* x, float* y, const float* v, int M, int N) {\n"
                             "  int i = blockIdx.x;\n  int lane = threadIdx.x;\n" +
                                 body + "}\n",
                             true);
  return grid_draft(task, task.kernel, key);
}
std::string reason(const std::string& body) { return draft(body).message; }
} // namespace

TEST_CASE("vector types are those of at most 16 bytes") {
  CHECK(detail::vector_type("const float", 4)->name == "float4");
  CHECK(detail::vector_type("unsigned char", 4)->is_aligned("x") == "reinterpret_cast<size_t>(x) % 4 == 0");
  CHECK(detail::vector_type("double", 2)->of({"a", "b"}) == "make_double2(a, b)");
  CHECK_FALSE(detail::vector_type("double", 4));
  CHECK_FALSE(detail::vector_type("float", 3));
  CHECK_FALSE(detail::vector_type("__half", 2));
}

TEST_CASE("a sum of a row loads four elements at once, and several of those before it adds") {
  const Task task = cuda_task("row_sum");
  const std::string source =
      grid_source_after(task, {"parallelization|row_sum/j", "vectorization|row_sum/j@1"});
  CHECK(has(source, "    // Four neighbouring elements at once, where they are aligned.\n"
                    "    if (N % 4 == 0 && reinterpret_cast<size_t>(x) % 16 == 0) {\n"
                    "      for (int first = 4 * lane; first < N; first += 512) {\n"
                    "        const float4 loaded_x = *reinterpret_cast<const float4*>(&x[i * N + first]);\n"
                    "        const float four_x[4] = {loaded_x.x, loaded_x.y, loaded_x.z, loaded_x.w};\n"
                    "        #pragma unroll\n"
                    "        for (int neighbour = 0; neighbour < 4; ++neighbour) {\n"
                    "          sum += four_x[neighbour];\n"
                    "        }\n      }\n"
                    "    } else {\n"
                    "      for (int j = lane; j < N; j += 128) {\n"));
  const std::string more = grid_source_after(task, {"parallelization|row_sum/j", "vectorization|row_sum/j"});
  CHECK(has(more, "first_of_all += 1024"));
  CHECK(has(more, "loaded_x[group] = *reinterpret_cast<const float4*>(&x[i * N + first]);"));
  const std::string bytes = grid_source_after(
      cuda_task("dequantize_gemv"), {"parallelization|dequantize_gemv/k", "vectorization|dequantize_gemv/k"});
  CHECK(has(bytes, "loaded_Q[group] = *reinterpret_cast<const char4*>(&Q[i * K + first]);"));
}

TEST_CASE("vectors of rows are right at every size, in every shape, and on offer") {
  for (const auto& [name, spread, key] : std::vector<std::array<std::string, 3>>{
           {"row_sum", "parallelization|row_sum/j", "vectorization|row_sum/j"},
           {"dequantize_gemv", "parallelization|dequantize_gemv/k", "vectorization|dequantize_gemv/k"},
           {"softmax", "parallelization|softmax/threads:x", "vectorization|softmax/threads:x"},
           {"rms_norm", "parallelization|rms_norm/threads:x@1", "vectorization|rms_norm/j#2"}}) {
    const auto& shown = key;
    CAPTURE(shown);
    Task task = cuda_task(name);
    ProblemSize whole = task.sizes.back(); // one that vectors divide
    for (auto& [symbol, value] : whole.symbols) value = symbol == "M" ? 3 : 996;
    task.sizes.push_back(whole);
    const Kernel kernel{languages::cuda, grid_source_after(task, {spread})};
    CHECK(is_offered_on_grid(task, kernel, key));
    CHECK(right_variants(task, kernel, key) >= 3);
  }
}

TEST_CASE("rows are moved by vectors as different people write them") {
  for (const RowKernel& row : row_kernels()) {
    CAPTURE(row.name);
    const Task task = row_task(row.source, row.with_vector);
    const Kernel kernel{languages::cuda, grid_source_after(task, row.before)};
    const bool one = row.name.find("product") == 0 || row.name.find("matrix") != std::string::npos;
    const std::string variable = has(row.source, "int k = lane") ? "k" : "j";
    const std::string key = one ? "vectorization|rows/" + variable : "vectorization|rows/threads:x";
    CHECK(is_offered_on_grid(task, kernel, key));
    const Draft draft = grid_draft(task, kernel, key);
    REQUIRE_MESSAGE(draft.kernel, draft.message);
    if (mtmc_test::can_emulate)
      CHECK_MESSAGE(grid_difference(task, draft.kernel->source) < 2e-5, draft.kernel->source);
  }
}

TEST_CASE("a loop alone is not changed where others rely on who has its elements") {
  const std::string both = "  for (int j = lane; j < N; j += 128) x[i * N + j] *= 2;\n"
                           "  for (int j = lane; j < N; j += 128) y[i * N + j] = x[i * N + j];\n";
  CHECK(draft(both, "vectorization|rows/j").message ==
        "other threads touch the elements of x that a thread has in the j loop, with no barrier between");
  CHECK(draft(both).kernel);
}

TEST_CASE("loops of a row are changed one after the other, and the rest of them is kept") {
  Task task = cuda_task("softmax");
  task.sizes.push_back({{{"M", 3}, {"N", 996}}, 0});
  for (const char* const last : {"vectorization|softmax/j#3", "retention|softmax/threads:x"}) {
    const std::string source =
        grid_source_after(task, {"parallelization|softmax/threads:x", "vectorization|softmax/j", last});
    if (mtmc_test::can_emulate) CHECK_MESSAGE(grid_difference(task, source) < 2e-5, source);
  }
}

TEST_CASE("what vectors cannot move is declined with the reason") {
  CHECK(
      reason("  for (int j = lane; j < N; j += 128) y[i * N + j * 2 % N] = 1;\n").starts_with("iterations"));
  CHECK(reason("  float sum = 0.0f;\n"
               "  for (int j = lane; j < N - 1; j += 128) sum += x[i * N + j + 1];\n"
               "  y[i * N] = sum;\n") == "nothing that the threads of a row touch is made of whole vectors");
  CHECK(reason("  for (int j = lane; j < N; j += 128) y[i * N + j] = v[lane % N];\n")
            .ends_with("depends on the thread that has the iteration"));
  CHECK(reason("  for (int j = lane; j < N - lane; j += 128) y[i * N + j] = 1;\n") ==
        "the threads of a block may have other bounds of the j loop");
  const Task task = cuda_task("row_sum");
  const Kernel vectors{languages::cuda,
                       grid_source_after(task, {"parallelization|row_sum/j", "vectorization|row_sum/j"})};
  CHECK(has(grid_draft(task, vectors, "vectorization|row_sum/j").message, "a faster way already"));
}

TEST_CASE("loops of unsigned numbers are unrolled in words that compilers at run time know") {
  const Task task =
      load_task(std::string(MTMC_REPOSITORY) + "/tests/bench/naive_cuda/later_tasks/l2_rows_scaled.json");
  const std::string loop = "|l2_normalize_rows/i";
  const std::string source =
      grid_source_after(task, {"parallelization" + loop, "vectorization" + loop, "unrolling" + loop});
  CHECK(has(source, "dim + 31 > lane ? dim + 31 : lane"));
  CHECK_FALSE(has(source, "std::"));
}
