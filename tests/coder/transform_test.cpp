#include <mtmc/coder/transform/table.hpp>

#include <doctest/doctest.h>

#include <stop_token>
#include <string>
#include <vector>

#include "transform/draft.hpp"
#include "transform/kernel_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

CodingRequest request_for(const Task& task, const std::string& optimization, const std::string& region) {
  CodingRequest request;
  request.seen.task = task;
  request.seen.device = two_cores();
  request.seen.kernel = task.kernel;
  request.action.kind = Action::Kind::optimize;
  request.action.optimization = optimization;
  request.action.region = region;
  return request;
}

} // namespace

TEST_CASE("the offline coder carries out an action and gives the same draft for the same request") {
  const Task task = cpu_task("gemm");
  const Draft draft = draft_of(task, "reordering|gemm/i");
  REQUIRE(draft.kernel);
  CHECK(draft.failure == DraftFailure::none);
  CHECK(draft.kernel->language == languages::cpp);
  CHECK(draft.kernel->id() != task.kernel.id());
  CHECK(draft.usage.tokens() == 0);
  CHECK(draft_of(task, "reordering|gemm/i") == draft);
}

TEST_CASE("sample indices are variants, all different, until they are used up") {
  const Task task = cpu_task("gemm");
  std::vector<std::string> ids{task.kernel.id()};
  int sample = 0;
  for (;; ++sample) {
    const Draft draft = draft_of(task, "unrolling|gemm/i/j/k", sample);
    if (!draft.kernel) {
      CHECK(draft.failure == DraftFailure::declined);
      CHECK(draft.message == "no further variant: there are " + std::to_string(sample));
      break;
    }
    CHECK(std::find(ids.begin(), ids.end(), draft.kernel->id()) == ids.end());
    ids.push_back(draft.kernel->id());
  }
  CHECK(sample >= 4);
}

TEST_CASE("what it cannot do it declines with the reason") {
  const Task task = cpu_task("gemm");
  const auto message = [](const Draft& draft) {
    CHECK(!draft.kernel);
    CHECK(draft.failure == DraftFailure::declined);
    return draft.message;
  };
  CHECK(message(draft_of(task, "prayer|gemm/i")) == "it has no transformation for \"prayer\" in cpp");
  CHECK(message(draft_of(task, "tiling|gemm/z")) == "the kernel has no region \"gemm/z\"");
  CHECK(message(draft_of(task, "tiling|gemm")) == "\"gemm\" names no loop");
  CHECK(message(draft_of(task, "fusion|gemm/i")) == "fusion needs two loops");

  Task cuda = task;
  cuda.kernel = {languages::cuda, R"(
//@ launch gemm<<<M, 1>>>(A, B, C, M, N, K)
__global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int j = 0; j < N; ++j) C[blockIdx.x * N + j] = A[blockIdx.x * K] + B[j];
}
)"};
  CHECK(message(draft_of(cuda, "vectorization|gemm/j")) ==
        "neighbouring threads do not take neighbouring iterations of the j loop");
  CHECK(message(draft_of(cuda, "parallelization|gemm/j")) == "line 4 speaks of threads or blocks");

  CodingRequest request = request_for(task, "tiling", "gemm/i");
  request.action.kind = Action::Kind::free_text;
  CHECK(message(TransformCoder{}.implement(request, {})).find("free text") != std::string::npos);
  request = request_for(task, "tiling", "gemm/i");
  request.repair = RepairContext{task.kernel, {}};
  CHECK(message(TransformCoder{}.implement(request, {})).find("cannot mend") != std::string::npos);
  request = request_for(task, "tiling", "gemm/i");
  request.seen.kernel.language = languages::pytorch;
  CHECK(message(TransformCoder{}.implement(request, {})) == "it does not know the language pytorch");
  request.seen.kernel.language = languages::triton;
  request.action.optimization = "pipeline";
  CHECK(message(TransformCoder{}.implement(request, {})) == "the text in line 1 was not understood");
}

TEST_CASE("a stop that came before is a cancelled draft") {
  std::stop_source stop;
  stop.request_stop();
  const Draft draft =
      TransformCoder{}.implement(request_for(cpu_task("gemm"), "tiling", "gemm/i"), stop.get_token());
  CHECK(draft.failure == DraftFailure::cancelled);
}

TEST_CASE("a host adds a transformation, or puts its own before one of the library's") {
  auto table = default_transformations();
  table.insert(table.begin(), {"tiling", [](const TransformRequest& request) -> SyntaxNode {
                                 if (request.variant > 0) throw TransformDeclined("one is enough");
                                 SyntaxNode tree = request.tree;
                                 tree.children.front().leading_trivia = "// by the host\n";
                                 return tree;
                               }});
  const TransformCoder coder{table};
  CodingRequest request = request_for(cpu_task("gemm"), "tiling", "gemm/i");
  const Draft draft = coder.implement(request, {});
  REQUIRE(draft.kernel);
  CHECK(draft.kernel->source.starts_with("// by the host\nvoid gemm("));
  request.sample = 1;
  CHECK(coder.implement(request, {}).message == "one is enough");
  CHECK(coder.identity() != TransformCoder{}.identity());
}

TEST_CASE("a transformation that changes nothing gives no draft") {
  const TransformCoder coder{{{"nothing", [](const TransformRequest& request) { return request.tree; }}}};
  const Draft draft = coder.implement(request_for(cpu_task("gemm"), "nothing", "gemm/i"), {});
  CHECK(!draft.kernel);
  CHECK(draft.failure == DraftFailure::unchanged);
}

TEST_CASE("actions compose: threads, order, register blocking, vectors, one after the other") {
  const Task task = cpu_task("gemm");
  const std::string source = source_after(task, {"parallelization|gemm/i", "unrolling|gemm/i",
                                                 "reordering|gemm/i@1", "vectorization|gemm/i/jj/k/j"});
  const KernelRunner runner{task, {source}};
  for (const ProblemSize& size : task.sizes)
    if (size.weight == 0) CHECK(runner.difference(1, size) < 1e-5);
}
