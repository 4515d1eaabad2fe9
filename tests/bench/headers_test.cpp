// What the benchmarks share compiles with the tests and keeps its promises, since the benchmarks themselves
// are built only when somebody measures.
#include <mtmc/analysis/task_builder.hpp>
#include <mtmc/backend/cpu.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cuda_kernels.hpp"
#include "evaluations.hpp"
#include "metered_backend.hpp"

using namespace mtmc;

TEST_CASE("every header of the benchmarks is compiled here") {
  const std::string folder = std::string(MTMC_REPOSITORY) + "/tests/bench";
  const auto text = read_file(folder + "/headers_test.cpp");
  int headers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".hpp") continue;
    ++headers;
    const auto name = entry.path().filename().string();
    CHECK_MESSAGE(text.find("#include \"" + name + "\"") != std::string::npos, name, " is not included");
  }
  CHECK(headers >= 3);
}

TEST_CASE("the same code with a comment is another kernel for an evaluator") {
  const Kernel kernel{languages::cpp, "void nothing() {}\n", {}};
  const auto first = bench::with_comment(kernel, 1);
  CHECK(first.source.starts_with(kernel.source));
  CHECK(first.id() != kernel.id());
  CHECK(first.id() != bench::with_comment(kernel, 2).id());
}

TEST_CASE("the metered backend runs what the CPU backend runs, and counts its calls and seconds") {
  const Task task = TaskBuilder{"twice"}
                        .kernel(languages::cpp, "//@ launch twice(in, out, N)\n"
                                                "void twice(const float* in, float* out, int N) {\n"
                                                "  for (int i = 0; i < N; ++i) out[i] = 2.0f * in[i];\n"
                                                "}\n")
                        .shape("in", {"N"})
                        .shape("out", {"N"})
                        .size({{"N", 4}})
                        .build();
  auto plan = plan_launches(parse_launch_lines(task.kernel), task, task.sizes.front(), 1);
  const auto meter = std::make_shared<bench::Meter>();
  bench::MeteredBackend metered(meter);
  const auto compiled = metered.compile(task.kernel, {.plan = plan}, {});
  REQUIRE(compiled.program);
  CHECK(meter->compile > 0);

  const std::vector<float> given{1, 2, 3, 4};
  auto in = metered.allocate(sizeof(float) * given.size());
  auto out = metered.allocate(sizeof(float) * given.size());
  metered.upload(in, 0, std::as_bytes(std::span(given)));
  auto& arguments = plan.launches.front().arguments;
  const auto bytes = static_cast<std::int64_t>(sizeof(float) * given.size());
  arguments[0].bound = {in.handle(), 0, bytes};
  arguments[1].bound = {out.handle(), 0, bytes};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  CHECK(metered.run(*compiled.program, plan, deadline).finished());
  const std::vector<LaunchPlan> group{plan, plan};
  CHECK(metered.time(*compiled.program, group, false, deadline).status.finished());

  std::vector<float> results(given.size());
  metered.download(out, 0, std::as_writable_bytes(std::span(results)));
  CHECK(results == std::vector<float>{2, 4, 6, 8});
  CHECK(meter->calls == 3);
  CHECK(meter->kernels > 0);
  CHECK(meter->inside() >= meter->compile + meter->kernels);
  CHECK(metered.binary_hash(*compiled.program) == CpuBackend::binary_hash(*compiled.program));
}

TEST_CASE("the kernels of the CUDA benchmarks have names of their own and sizes to be timed at") {
  std::set<std::string> names;
  for (const auto& named : bench::all_cuda_kernels()) {
    CAPTURE(named.name);
    CHECK(names.insert(named.name).second);
    CHECK(named.kernel.language == languages::cuda);
    CHECK(bench::describe_kernel(named, 132).at("name") == named.name);
  }
  CHECK(names.contains("gemm step 1"));
  CHECK(bench::large_gemm().main_size()->symbols.at("M") == 4096);
}
