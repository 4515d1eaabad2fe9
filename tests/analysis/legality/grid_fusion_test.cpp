// Launches on grids that may become one kernel: element by element, or row by row, for every size.

#include <doctest/doctest.h>

#include <string>

#include "../cuda_kernels.hpp"

using namespace cuda_kernels;
using mtmc::FusionScope;

namespace {

const std::string scale_2d = R"(
__global__ void first(const float* in, float* out, int M, int N) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M && j < N) out[i * N + j] = 2.0f * in[i * N + j];
}
)";
const std::string launch_2d = "<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>";

/// How `first`, which fills T from x element by element in two dimensions, goes together with a second launch
/// that fills y from T.
FusionScope with_second(const std::string& launch, const std::string& body,
                        const std::string& first = "//@ launch first" + launch_2d + "(x, T, M, N)\n" +
                                                   scale_2d) {
  const auto task = matrix_task(
      "//@ scratch T: f32[M, N]\n" + first + "//@ launch second" + launch +
          "\n__global__ void second(const float* in, float* out, int M, int N) {\n" + body + "}\n",
      "x", "y");
  const auto structure = structure_of(task);
  const auto& both = region(structure, "launch:first+launch:second").facts;
  CHECK(both.fusable == (both.fusion_scope != FusionScope::none));
  return both.fusion_scope;
}

} // namespace

TEST_CASE("the second launch needs each element where the first makes it") {
  CHECK(with_second(launch_2d + "(T, y, M, N)", R"(
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < M && c < N) out[r * N + c] = in[r * N + c] + 1.0f;
)") == FusionScope::thread);
}

TEST_CASE("numbered in one dimension it is the same element") {
  CHECK(with_second("<<<ceil_div(M * N, 256), 256>>>(T, y, M, N)", R"(
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= M * N) return;
  out[at] = in[at] + in[at];
)") == FusionScope::thread);
}

TEST_CASE("another element than one's own is needed: not thread by thread") {
  CHECK(with_second("<<<ceil_div(M * N, 256), 256>>>(T, y, M, N)", R"(
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N) out[at] = in[M * N - 1 - at];
)") == FusionScope::none);
  CHECK(with_second("<<<ceil_div(M * N, 256), 256>>>(T, y, M, N)", R"(
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N - 1) out[at] = in[at] + in[at + 1];
)") == FusionScope::none);
}

TEST_CASE("rows and columns may change places: each element is still needed at one point") {
  CHECK(with_second(launch_2d + "(T, y, N, M)", R"(
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M && j < N) out[i * N + j] = in[j * M + i];
)") == FusionScope::thread);
  // M rows of N read as if they were N rows of M: other elements
  CHECK(with_second(launch_2d + "(T, y, M, N)", R"(
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M && j < N) out[i * N + j] = in[j * N + i];
)") == FusionScope::none);
}

TEST_CASE("a whole row is needed: a block that holds it can do both") {
  CHECK(with_second("<<<ceil_div(M, 128), 128>>>(T, y, M, N)", R"(
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M) return;
  float sum = 0.0f;
  for (int j = 0; j < N; ++j) sum += in[row * N + j];
  for (int j = 0; j < N; ++j) out[row * N + j] = in[row * N + j] / sum;
)") == FusionScope::block);
}

TEST_CASE("a block for each row already, its threads sharing it out by a constant step") {
  // j starts at the thread's number: not a count from 0, so that nothing is proved
  CHECK(with_second("<<<M, 256>>>(T, y, M, N)", R"(
  for (int j = threadIdx.x; j < N; j += blockDim.x) out[blockIdx.x * N + j] = in[blockIdx.x * N + j];
)") == FusionScope::none);
}

TEST_CASE("a part of the elements is needed: a condition leaves out the others") {
  const std::string body = R"(
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M) out[at] = in[at];
)";
  CHECK(with_second("<<<ceil_div(M * N, 256), 256>>>(T, y, M, N)", body) == FusionScope::thread);
  CHECK(with_second("<<<1, 256>>>(T, y, M, N)", body) == FusionScope::none); // there are too few threads
}

TEST_CASE("a size that is only now the same: nothing is proved") {
  const std::string body = R"(
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N) out[at] = in[at];
)";
  CHECK(with_second("<<<ceil_div(M * M, 256), 256>>>(T, y, M, M)", body) == FusionScope::none);
  // threads for all elements, and a condition that leaves out some of them where there are fewer rows
  CHECK(with_second("<<<ceil_div(M * N, 256), 256>>>(T, y, M, M)", body) == FusionScope::thread);
}

TEST_CASE("a barrier or an unknown call in the second launch keeps its threads together") {
  const auto body = [](const std::string& statement) {
    return "  int at = blockIdx.x * blockDim.x + threadIdx.x;\n  " + statement +
           "\n  if (at < M * N) out[at] = in[at];\n";
  };
  const std::string launch = "<<<ceil_div(M * N, 256), 256>>>(T, y, M, N)";
  CHECK(with_second(launch, body("")) == FusionScope::thread);
  CHECK(with_second(launch, body("__syncthreads();")) == FusionScope::none);
  CHECK(with_second(launch, body("report(at);")) == FusionScope::none);
}

TEST_CASE("what the first launch reads must not change under it") {
  const auto writing_to = [](const std::string& buffer) {
    return with_second("<<<ceil_div(M * N, 256), 256>>>(T, " + buffer + ", M, N)", R"(
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N) out[M * N - 1 - at] = in[at];
)",
                       R"(
//@ scratch S: f32[M, N]
//@ launch zeroth<<<M, 256>>>(x, S, y, N)
//@ launch first<<<ceil_div(M * N, 256), 256>>>(S, T, M, N)
__global__ void zeroth(const float* in, float* out, float* also, int N) {
  for (int j = threadIdx.x; j < N; j += 256) out[blockIdx.x * N + j] = also[blockIdx.x * N + j] = in[j];
}
__global__ void first(const float* in, float* out, int M, int N) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N) out[at] = in[at];
}
)");
  };
  CHECK(writing_to("y") == FusionScope::thread);
  CHECK(writing_to("S") == FusionScope::none);
}

TEST_CASE("an element that is written twice is not handed on by a thread") {
  CHECK(with_second("<<<ceil_div(M * N, 256), 256>>>(T, y, M, N)", R"(
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N) out[at] = in[at];
)",
                    R"(
//@ launch first<<<ceil_div(M * N, 256), 256>>>(x, T, M, N)
__global__ void first(const float* in, float* out, int M, int N) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N) {
    out[at] = in[at];
    out[M * N - 1 - at] = in[at];
  }
}
)") == FusionScope::none);
}

TEST_CASE("a chain of three goes together if all neighbours do in one way") {
  const auto task =
      matrix_task("//@ scratch T: f32[M, N]\n//@ scratch U: f32[M, N]\n//@ launch first" + launch_2d +
                      "(x, T, M, N)\n//@ launch first" + launch_2d + "(T, U, M, N)\n//@ launch first" +
                      launch_2d + "(U, y, M, N)\n" + scale_2d,
                  "x", "y");
  const auto structure = structure_of(task);
  const auto& all = region(structure, "launch:first+launch:first#2+launch:first#3").facts;
  CHECK(all.fusion_scope == FusionScope::thread);
  CHECK(all.intermediates == std::vector<std::string>{"T", "U"});
}

TEST_CASE("launches that hand nothing on are not offered") {
  const auto task = matrix_task("//@ launch first" + launch_2d + "(x, y, M, N)\n//@ launch first" +
                                    launch_2d + "(x, y, M, N)\n" + scale_2d,
                                "x", "y");
  CHECK_FALSE(region(structure_of(task), "launch:first+launch:first#2").facts.fusable);
}
