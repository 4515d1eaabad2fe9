// A program that can be a compiler process of the CUDA backend. As anything else it is a host that compiles
// one kernel, and says where:
//   compiler_program host      with the opt-in
//   compiler_program stranger  without
#include <mtmc/backend/cuda/compiler_service.hpp>
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  using namespace mtmc;
  if (std::string(argc > 1 ? argv[1] : "") != "stranger")
    if (const auto code = play_role(argc, argv, {detail::cuda_compiler_role()})) return *code;
  try {
    const detail::CudaCompiler compiler({}, "sm_90a");
    Task task{.name = "task",
              .kernel = {languages::cuda,
                         "//@ launch f<<<1, 1>>>(C)\n__global__ void f(float* C) { C[0] = 1; }\n",
                         {}}};
    task.arguments = {{.name = "C", .role = ArgumentRole::output, .shape = {"1"}}};
    const auto plan = plan_launches(parse_launch_lines(task.kernel), task, ProblemSize{}, 1);
    const bool compiled = !compiler.compile(task.kernel, plan, Deadline::max(), {}).cubin.empty();
    std::printf("%s %s\n", compiled ? "compiled" : "failed", compiler.is_apart() ? "apart" : "here");
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}
