// Which ways the branches of a kernel go, shown by stores in its PTX. No GPU is needed; what needs NVRTC is
// skipped without it.
#include <mtmc/backend/cuda/branch_probes.hpp>
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>

using namespace mtmc;
using namespace mtmc::detail;

TEST_SUITE("branch probes of CUDA") {
  TEST_CASE(
      "each condition of the kernel's text gets two stores, and the table is a variable of the module") {
    const auto probed = PtxBranchProbes("kernel.cu", "")
                            .probe(".version 9.0\n.target sm_90a, debug\n.address_size 64\n\n"
                                   ".visible .entry f(\n)\n{\n\t.loc\t1 3 5\n"
                                   "\tsetp.lt.s32 \t%p1, %r1, %r2;\n\tsetp.nan.f32 \t%p2, %f1, %f1;\n"
                                   "\t.loc\t2 9 1\n\tsetp.eq.f32 \t%p3|%p4, %f1, %f2;\n"
                                   "\t.loc\t1 4 2\n\tsetp.eq.f32 \t%p3|%p4, %f1, %f2;\n}\n"
                                   "\t.file\t1 \"/a/kernel.cu\"\n\t.file\t2 \"cuda_fp16.h\"\n"
                                   "\t.section\t.debug_loc\n\t{\n.b8 0\n\t}\n");
    REQUIRE(probed.branches.size() == 2);
    CHECK(probed.branches[0] == Branch{3, 5, false, false});
    CHECK(probed.branches[1] == Branch{4, 2, false, false});
    const auto has = [&](const char* part) { return probed.text.find(part) != std::string::npos; };
    CHECK(has(".address_size 64\n.visible .global .align 1 .b8 mtmc_branches[4];\n"));
    CHECK(has("@%p1 st.global.u8 [mtmc_branches+0], %mtmc_one; @!%p1 st.global.u8 [mtmc_branches+1]"));
    CHECK(has("@%p3 st.global.u8 [mtmc_branches+2]"));
    CHECK(has(".target sm_90a\n"));
    CHECK_FALSE(has(".section"));
    CHECK_FALSE(has(".loc"));
  }

  TEST_CASE("NVRTC's text for a debugger has one for each condition") {
    std::unique_ptr<CudaCompiler> compiler;
    try {
      compiler = std::make_unique<CudaCompiler>(CudaBackendOptions{}, "sm_90a");
    } catch (const Error& error) {
      if (std::string(error.what()).find("NVRTC") == std::string::npos) throw;
      MESSAGE("SKIPPED: ", std::string(error.what()));
      return;
    }
    Task task{.name = "task",
              .kernel = {languages::cuda,
                         "__device__ float g(float v) {\n"
                         "  return v > 3 ? v / 2 : v;\n"
                         "}\n"
                         "__global__ void f(float* y, int n) {\n"
                         "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                         "  if (i >= n) return;\n"
                         "  const bool five = y[i] == 5;\n"
                         "  y[i] = g(y[i]) * (1 + five);\n"
                         "}\n"
                         "//@ launch f<<<1, 32>>>(y, n)\n",
                         {}}};
    task.arguments = {{.name = "y", .role = ArgumentRole::output, .shape = {"n"}},
                      {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32, .value = "n"}};
    const auto plan =
        plan_launches(parse_launch_lines(task.kernel), task, ProblemSize{.symbols = {{"n", 1000}}}, 132);
    const auto probed = compiler->compile_probed(
        task.kernel, plan, std::chrono::steady_clock::now() + std::chrono::seconds(60), {});
    const auto why = probed.diagnostics.empty() ? std::string() : probed.diagnostics.front().message;
    REQUIRE_MESSAGE(!probed.cubin.empty(), why);
    std::set<int> lines;
    for (const auto& branch : probed.branches) lines.insert(branch.line);
    CHECK(lines == std::set<int>{2, 6, 7});
    REQUIRE(probed.entries.size() == 1);
    CHECK(probed.cubin.find(probed.entries[0].name + '(') != std::string::npos);
  }
}
