// What a later launch does to an element is done where a tile, a shared row or a lane stores it.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "grid_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

const std::string naive_product = R"(
__global__ void product(const float* A, const float* B, float* C, int M, int N, int K) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M && j < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];
    C[i * N + j] = sum;
  }
}
)";

/// As people tile it: one result for each thread; `store` stands behind the sum.
std::string shared_product(const std::string& store) {
  return R"(
#define TILE 16
__global__ void product(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[TILE][TILE];
  __shared__ float b[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y;
  int col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
    int k = t * TILE;
    a[threadIdx.y][threadIdx.x] = row < M && k + threadIdx.x < K ? A[row * K + k + threadIdx.x] : 0.0f;
    b[threadIdx.y][threadIdx.x] = col < N && k + threadIdx.y < K ? B[(k + threadIdx.y) * N + col] : 0.0f;
    __syncthreads();
    for (int s = 0; s < TILE; ++s) sum += a[threadIdx.y][s] * b[s][threadIdx.x];
    __syncthreads();
  }
)" + store +
         "}\n";
}
const std::string guarded_store = "  if (row < M && col < N) C[row * N + col] = sum;\n";

/// A launch behind the product: its blocks and arguments, its parameters, and its body.
struct Next {
  std::string line{};
  std::string parameters{};
  std::string body{};
};
const std::string by_element = "<<<ceil_div(M * N, 256), 256>>>";
const std::string by_row_and_column = "<<<(ceil_div(N, 32), ceil_div(M, 8)), (32, 8)>>>";
const std::string number = "  int n = blockIdx.x * blockDim.x + threadIdx.x;\n";
const std::string numbers = "  int r = blockIdx.y * blockDim.y + threadIdx.y;\n"
                            "  int c = blockIdx.x * blockDim.x + threadIdx.x;\n";

/// T = A B, and then y from T by the next launch, which may also read a value for each row and column, and
/// another matrix.
Task product_then(const Next& next, const std::string& product = naive_product) {
  return TaskBuilder{"epilogue"}
      .kernel(languages::cuda,
              "//@ scratch T: f32[M, N]\n"
              "//@ launch product<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, T, M, N, K)\n"
              "//@ launch next" +
                  next.line + "\n//@ launch rest<<<1, 1>>>(of_rows, of_columns, other)\n" + product +
                  "__global__ void next(" + next.parameters + ") {\n" + next.body +
                  "}\n__global__ void rest(const float* a, const float* b, const float* c) {}\n")
      .shape("A", {"M", "K"})
      .shape("B", {"K", "N"})
      .shape("of_rows", {"M"})
      .shape("of_columns", {"N"})
      .shape("other", {"M", "N"})
      .shape("y", {"M", "N"})
      .role("y", ArgumentRole::inout)
      .size({{"M", 1024}, {"N", 512}, {"K", 256}})
      .check({{"M", 61}, {"N", 37}, {"K", 29}})
      .check({{"M", 1}, {"N", 1}, {"K", 1}})
      .build();
}

const std::string both = "fusion|launch:product+launch:next";
const std::string tiled = "tiling|product/k";

/// The text after tiling and fusing, which computes what the two launches did.
std::string fused(const Task& task, const std::vector<std::string>& keys = {tiled, both}) {
  const std::string source = grid_source_after(task, keys);
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) == 0.0);
  return source;
}

/// Why the second launch stays.
std::string reason(const Task& task, const std::vector<std::string>& before = {tiled}) {
  const Kernel kernel{task.kernel.language, grid_source_after(task, before)};
  return grid_draft(task, kernel, both).message;
}

const Next relu{by_element + "(T, y, M * N)", "const float* t, float* y, int count",
                number + "  if (n < count) y[n] = fmaxf(t[n], 0.0f);\n"};

/// s[i] from the row i of x by `rows`, launched so; then y[i] from s[i].
Task rows_then_root(const std::string& launch, const std::string& rows) {
  return TaskBuilder{"rows"}
      .kernel(languages::cuda, "//@ scratch s: f32[M]\n//@ launch rows" + launch +
                                   "(x, s, M, K)\n//@ launch root<<<ceil_div(M, 256), 256>>>(s, y, M, K)\n"
                                   "__global__ void rows(const float* x, float* s, int M, int K) {\n" +
                                   rows +
                                   "}\n__global__ void root(const float* s, float* y, int M, int K) {\n"
                                   "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                   "  if (i < M) y[i] = sqrtf(s[i] / K);\n}\n")
      .shape("x", {"M", "K"})
      .shape("y", {"M"})
      .size({{"M", 4096}, {"K", 1024}})
      .check({{"M", 37}, {"K", 101}})
      .check({{"M", 1}, {"K", 1}})
      .build();
}
const std::string rows_and_root = "fusion|launch:rows+launch:root";
const std::string sum_of_row =
    "  float sum = 0.0f;\n  if (row < M)\n"
    "    for (int k = lane; k < K; k += 32) sum += x[row * K + k] * x[row * K + k];\n"
    "  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);\n";

} // namespace

TEST_CASE("each result of a tile is bent where it is stored, and the buffer is gone") {
  const std::string source = fused(product_then(relu));
  CHECK(has(source, "        const float T_value = sum;\n        int n = i * N + j;\n"
                    "        y[n] = fmaxf(T_value, 0.0f);\n"));
  CHECK_FALSE(has(source, "scratch"));
  CHECK(is_offered_on_grid(product_then(relu),
                           {languages::cuda, grid_source_after(product_then(relu), {tiled})}, both));
}

TEST_CASE("several launches go behind the store, one after the other") {
  const Task task = cuda_task("gemm_bias_gelu");
  const std::string source =
      fused(task, {"tiling|linear/k@1", "fusion|launch:linear+launch:add_bias+launch:gelu"});
  CHECK_FALSE(has(source, "scratch"));
  CHECK(has(source, "const float shifted_value = product_value + b[j];\n")); // what was b[at % N]
}

TEST_CASE("rows and columns of the later launch are those of the tile") {
  const std::string source = fused(
      product_then({by_row_and_column + "(T, of_rows, of_columns, other, y, M, N)",
                    "const float* t, const float* u, const float* v, const float* w, float* y, int M, int N",
                    numbers + "  if (r >= M || c >= N) return;\n  int at = r * N + c;\n"
                              "  float value = t[at] * u[r] + v[c];\n"
                              "  if (value < 0.0f) value *= 0.1f;\n  y[at] = value + w[at];\n"}));
  CHECK(has(source, "const int i = first_i"));
  CHECK_FALSE(has(source, "/ N"));
  CHECK_FALSE(has(source, "% N"));
}

TEST_CASE("a row for each block along an axis is the row of the tile") {
  (void)fused(
      product_then({"<<<(ceil_div(N, 128), M), 128>>>(T, of_rows, y, N)",
                    "const float* t, const float* u, float* y, int N",
                    "  int c = blockIdx.x * blockDim.x + threadIdx.x;\n"
                    "  if (c < N) y[blockIdx.y * N + c] = t[blockIdx.y * N + c] * u[blockIdx.y];\n"}));
}

TEST_CASE("numbers in another order are quotients and remainders of the element's") {
  const std::string source =
      fused(product_then({by_row_and_column + "(T, y, N, M)", "const float* t, float* y, int M, int N",
                          numbers + "  if (c < M && r < N) y[r * M + c] = t[r * M + c] * (c + 1);\n"}));
  CHECK(has(source, "const float T_value = sum;\n"));
}

TEST_CASE("a product that people tiled takes the later launch, too") {
  const std::string source = fused(product_then(relu, shared_product(guarded_store)), {both});
  CHECK(has(source,
            "  if (row < M && col < N) {\n    const float T_value = sum;\n    int n = row * N + col;\n"
            "    y[n] = fmaxf(T_value, 0.0f);\n  }\n"));
}

TEST_CASE("threads beyond the last result may return in front of the store; bounds of the blocks stay") {
  std::string product = shared_product("  if (row >= M || col >= N) return;\n  C[row * N + col] = sum;\n");
  product.replace(product.find("void product"), 4, "void __launch_bounds__(256)");
  const std::string source = fused(product_then(relu, product), {both});
  CHECK(has(source, "__launch_bounds__(256) product_next("));
  CHECK(has(source, "return;\n"));
}

TEST_CASE("numbers of a layer, a row and a column, also in wider integers") {
  const Task task =
      TaskBuilder{"layers"}
          .kernel(
              languages::cuda,
              "//@ scratch T: f32[L, M, N]\n"
              "//@ launch product<<<(ceil_div(N, 16), ceil_div(M, 16), L), (16, 16)>>>(A, B, T, M, N, K)\n"
              "//@ launch next<<<(ceil_div(N, 32), ceil_div(M, 4), L), (32, 4)>>>(T, v, y, M, N)\n"
              "__global__ void product(const float* A, const float* B, float* C, int M, int N, int K) {\n"
              "  int l = blockIdx.z;\n  int i = blockIdx.y * blockDim.y + threadIdx.y;\n"
              "  int j = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < M && j < N) {\n"
              "    float sum = 0.0f;\n    for (int k = 0; k < K; ++k)\n"
              "      sum += A[(l * M + i) * K + k] * B[(l * K + k) * N + j];\n"
              "    C[(l * M + i) * N + j] = sum;\n  }\n}\n"
              "__global__ void next(const float* t, const float* v, float* y, int M, int N) {\n"
              "  size_t c = (size_t)blockIdx.x * blockDim.x + threadIdx.x;\n"
              "  size_t r = (size_t)blockIdx.y * blockDim.y + threadIdx.y;\n"
              "  if (r >= M || c >= N) return;\n  size_t at = ((size_t)blockIdx.z * M + r) * N + c;\n"
              "  y[at] = t[at] + v[r] * (blockIdx.z + 1);\n}\n")
          .shape("A", {"L", "M", "K"})
          .shape("B", {"L", "K", "N"})
          .shape("v", {"M"})
          .shape("y", {"L", "M", "N"})
          .size({{"L", 8}, {"M", 256}, {"N", 512}, {"K", 64}})
          .check({{"L", 3}, {"M", 21}, {"N", 37}, {"K", 5}})
          .check({{"L", 1}, {"M", 1}, {"N", 1}, {"K", 1}})
          .build();
  for (const std::vector<std::string>& keys : std::vector<std::vector<std::string>>{{both}, {tiled, both}})
    CHECK_FALSE(has(fused(task, keys), "blockIdx.z + 1"));
}

TEST_CASE("conditions that leave out elements stay") {
  const std::string source =
      fused(product_then({by_element + "(T, y, M * N - N)", "const float* t, float* y, int count",
                          number + "  if (n < count) y[n] = t[n] + 1.0f;\n"}));
  CHECK(has(source, "        if (n < count)\n          y[n] = T_value + 1.0f;\n"));
  CHECK(has(fused(product_then({by_element + "(T, y, M * N)", "const float* t, float* y, int count",
                                number + "  if (n < count && t[n] > 0.0f) y[n] = t[n];\n"})),
            "T_value > 0.0f"));
}

TEST_CASE("in place the element changes before it is stored; a result that is asked for stays stored") {
  const auto task = [](const std::string& second) {
    return TaskBuilder{"in_place"}
        .kernel(languages::cuda,
                "//@ launch product<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, y, M, N, K)\n"
                "//@ launch next<<<ceil_div(M * N, 256), 256>>>(y, z, M * N)\n" +
                    naive_product + "__global__ void next(float* y, float* z, int count) {\n" + number +
                    second + "}\n")
        .shape("A", {"M", "K"})
        .shape("B", {"K", "N"})
        .shape("y", {"M", "N"})
        .role("y", ArgumentRole::output)
        .shape("z", {"M", "N"})
        .role("z", ArgumentRole::inout)
        .size({{"M", 1024}, {"N", 512}, {"K", 256}})
        .check({{"M", 61}, {"N", 37}, {"K", 29}})
        .build();
  };
  const std::string changed =
      fused(task("  if (n < count) {\n    if (y[n] < 0.0f) y[n] *= 0.1f;\n    z[n] += y[n];\n  }\n"));
  CHECK(has(changed, "        float y_value = sum;\n"));
  CHECK(has(changed, "        y[i * N + j] = y_value;\n"));
  const std::string kept = fused(task("  if (n < count) z[n] = 2.0f * y[n];\n"));
  CHECK(has(kept, "        const float y_value = sum;\n        y[i * N + j] = y_value;\n"));
}

TEST_CASE("one buffer by two names is changed in place") {
  const Task task =
      TaskBuilder{"two_names"}
          .kernel(languages::cuda,
                  "//@ launch product<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, y, M, N, K)\n"
                  "//@ launch bias<<<(ceil_div(N, 128), M), 128>>>(y, v, N)\n"
                  "//@ launch next<<<ceil_div(M * N, 256), 256>>>(y, y, M * N)\n" +
                      naive_product +
                      "__global__ void bias(float* y, const float* v, int N) {\n"
                      "  int c = blockIdx.x * blockDim.x + threadIdx.x;\n"
                      "  if (c < N) y[blockIdx.y * N + c] += v[c];\n}\n__global__ void next(" +
                      relu.parameters + ") {\n" + relu.body + "}\n")
          .shape("A", {"M", "K"})
          .shape("B", {"K", "N"})
          .shape("v", {"N"})
          .shape("y", {"M", "N"})
          .size({{"M", 1024}, {"N", 512}, {"K", 256}})
          .check({{"M", 61}, {"N", 37}, {"K", 29}})
          .build();
  const std::string source = fused(task, {tiled, "fusion|launch:product+launch:bias+launch:next"});
  CHECK_FALSE(has(source, "//@ launch next"));
}

TEST_CASE("threads that go through elements in steps of the grid take one each") {
  const std::string loop = "  for (int n = blockIdx.x * blockDim.x + threadIdx.x; n < count; "
                           "n += blockDim.x * gridDim.x) ";
  for (const char* const blocks : {"<<<64, 256>>>", "<<<compute_units * 4, 256>>>"})
    (void)fused(product_then(
        {std::string(blocks) + "(T, y, M * N)", relu.parameters, loop + "y[n] = fmaxf(t[n], 0.0f);\n"}));
  // one thread's sum is no work of many
  CHECK(has(reason(product_then({"<<<1, 1>>>(T, y, M * N)", relu.parameters, loop + "y[0] += t[n];\n"})),
            "it is not proved"));
}

TEST_CASE("a function that is launched again stays for the other launch") {
  const Task task =
      TaskBuilder{"again"}
          .kernel(languages::cuda,
                  "//@ scratch T: f32[M, N]\n//@ scratch U: f32[M, N]\n"
                  "//@ launch product<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, T, M, N, K)\n"
                  "//@ launch next<<<ceil_div(M * N, 256), 256>>>(T, U, M * N)\n"
                  "//@ launch next<<<ceil_div(M * N, 256), 256>>>(U, y, M * N)\n" +
                      naive_product + "__global__ void next(" + relu.parameters + ") {\n" + number +
                      "  if (n < count) y[n] = 0.5f * t[n];\n}\n")
          .shape("A", {"M", "K"})
          .shape("B", {"K", "N"})
          .shape("y", {"M", "N"})
          .size({{"M", 1024}, {"N", 512}, {"K", 256}})
          .check({{"M", 61}, {"N", 37}, {"K", 29}})
          .build();
  CHECK(has(fused(task), "//@ launch next<<<"));
  CHECK_FALSE(has(fused(task, {tiled, both + "+launch:next#2"}), "scratch"));
}

TEST_CASE("what the lane does that stores a row's sum goes on with the root") {
  const std::string warps =
      "  int row = blockIdx.x * 8 + threadIdx.x / 32;\n  int lane = threadIdx.x % 32;\n";
  for (const char* const store : {"  if (lane == 0 && row < M) s[row] = sum;\n",
                                  "  if (row < M) {\n    if (!lane) s[row] = sum;\n  }\n"}) {
    const std::string source =
        fused(rows_then_root("<<<ceil_div(M, 8), 256>>>", warps + sum_of_row + store), {rows_and_root});
    CHECK(has(source, "y[i] = sqrtf(s_value / K);\n"));
    CHECK_FALSE(has(source, "scratch"));
  }
  const std::string bits =
      "  int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;\n  int lane = threadIdx.x & 31;\n";
  (void)fused(rows_then_root("<<<ceil_div(M * 32, 128), 128>>>",
                             bits + sum_of_row + "  if (lane == 0 && row < M) s[row] = sum;\n"),
              {rows_and_root});
  const Task all =
      rows_then_root("<<<ceil_div(M, 8), 256>>>", warps + sum_of_row + "  if (row < M) s[row] = sum;\n");
  CHECK(has(grid_draft(all, all.kernel, rows_and_root).message, "it is not proved")); // by every lane
}

TEST_CASE("what made a row's sum cooperative does not matter") {
  const Task task = rows_then_root("<<<ceil_div(M, 128), 128>>>",
                                   "  int row = blockIdx.x * blockDim.x + threadIdx.x;\n  if (row < M) {\n"
                                   "    float sum = 0.0f;\n"
                                   "    for (int k = 0; k < K; ++k) sum += x[row * K + k] * x[row * K + k];\n"
                                   "    s[row] = sum;\n  }\n");
  for (const char* const key : {"parallelization|rows/k", "splitting|rows/k"}) {
    CAPTURE(key);
    const std::string source = grid_source_after(task, {key, rows_and_root});
    CHECK_FALSE(has(source, "scratch s"));
    if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) < 1e-6);
  }
}

TEST_CASE("a launch that needs another element than its own stays") {
  const std::string declined =
      "it is not proved that only the thread that makes an element in product is needed "
      "for it in next";
  const auto with = [](const std::string& body, const std::string& line = by_element + "(T, y, M * N)") {
    return reason(product_then({line, "const float* t, float* y, int count", number + body}));
  };
  CHECK(with("  if (n < count) y[n] = n > 0 ? t[n] - t[n - 1] : t[n];\n") == declined);
  CHECK(with("  if (n < count) y[n] = t[count - 1 - n];\n") == declined);
  CHECK(with("  if (n < count) y[n] = t[n / 2];\n") == declined);
  CHECK(with("  if (n < count) y[n] = t[n] + (n > 0 ? y[n - 1] : 0.0f);\n") == declined);
  CHECK(with("  if (n < count) y[n] = t[n];\n", "<<<4, 256>>>(T, y, M * N)") == declined); // too few threads
  CHECK(with("  if (n < count) y[n] = t[n];\n", by_element + "(T, y, M * N + 1)") == declined);
  CHECK(with("  float v = n < count ? t[n] : 0.0f;\n  v += __shfl_xor_sync(0xffffffffu, v, 1);\n"
             "  if (n < count) y[n] = v;\n") == declined);
}

TEST_CASE("an element that is stored twice, or perhaps not at all, is not handed on") {
  const auto with = [](const std::string& store) {
    const Task task = product_then(relu, shared_product(store));
    const Draft draft = grid_draft(task, task.kernel, both);
    return draft.kernel ? "it is fused" : draft.message;
  };
  const std::string condition = "product stores T under a condition";
  CHECK(has(with("  if (row < M && col < N) {\n    C[row * N + col] = sum;\n"
                 "    C[(M - 1 - row) * N + col] = sum;\n  }\n"),
            "it is not proved"));
  CHECK(with("  if (row < M && col < N && sum > 0.0f) C[row * N + col] = sum;\n") == condition);
  CHECK(with("  if (row < M && col < N && row != 3) C[row * N + col] = sum;\n") == condition);
  CHECK(has(with("  if (row < M && col < N - 1) C[row * N + col] = sum;\n"), "it is not proved"));
  CHECK(has(with("  if (row < M) C[row * N + col] = sum;\n"), "it is not proved"));
  CHECK(has(with("  for (int n = 0; n < 2; ++n)\n    if (row < M && col < N) C[row * N + col] = sum + n;\n"),
            "it is not proved"));
  CHECK(has(with("  if (row >= M) {\n  } else if (col < N) {\n    C[row * N + col] = sum;\n  }\n"),
            "it is not proved"));
  CHECK(with("  C += row * N;\n  if (row < M && col < N) C[col] = sum;\n") ==
        "product does not store T in one place");
  CHECK(with("  if (sum > 0.0f) return;\n  if (row < M && col < N) C[row * N + col] = sum;\n") ==
        "product returns early");
  CHECK(has(with("  while (row < M && col < N) {\n    C[row * N + col] = sum;\n    break;\n  }\n"),
            "it is not proved"));
  CHECK(has(with("  col += 1;\n  if (row < M && col < N) C[row * N + col] = sum;\n"), "it is not proved"));
}

TEST_CASE("other threads may still read what the later launch would write") {
  const Task task =
      TaskBuilder{"input"}
          .kernel(languages::cuda,
                  "//@ scratch T: f32[M, N]\n"
                  "//@ launch product<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, T, M, N, N)\n"
                  "//@ launch next<<<ceil_div(M * N, 256), 256>>>(T, A, M * N)\n" +
                      shared_product(guarded_store) + "__global__ void next(" + relu.parameters + ") {\n" +
                      relu.body + "}\n")
          .shape("A", {"M", "N"})
          .role("A", ArgumentRole::inout)
          .shape("B", {"N", "N"})
          .size({{"M", 1024}, {"N", 512}})
          .check({{"M", 61}, {"N", 37}})
          .build();
  CHECK(has(grid_draft(task, task.kernel, both).message, "it is not proved"));
}
