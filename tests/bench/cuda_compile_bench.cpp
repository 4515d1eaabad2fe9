// What compiling a CUDA kernel costs, in this process and in one of its own, with and without headers of the
// toolkit. Needs NVRTC, but no GPU. Run it without arguments; it starts itself again.
#include <mtmc/backend/cuda/compiler_service.hpp>
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/support/stopwatch.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace mtmc;

double compile_seconds(const detail::CudaCompiler& compiler, const std::string& headers, int version) {
  // Each text is new, as a coder's are.
  const Kernel kernel{languages::cuda,
                      headers +
                          "//@ launch f<<<1, 256>>>(C)\n__global__ void f(float* C) {\n"
                          "  __shared__ float s[256];\n  s[threadIdx.x] = C[threadIdx.x];\n"
                          "  __syncthreads();\n  C[threadIdx.x] = s[255 - threadIdx.x] * " +
                          std::to_string(version) + ";\n}\n",
                      {}};
  Task task{.name = "task", .kernel = kernel};
  task.arguments = {{.name = "C", .role = ArgumentRole::output, .shape = {"256"}}};
  const auto plan = plan_launches(parse_launch_lines(kernel), task, ProblemSize{}, 1);
  const auto begin = std::chrono::steady_clock::now();
  const auto result =
      compiler.compile(kernel, plan, std::chrono::steady_clock::now() + std::chrono::minutes{1}, {});
  const auto seconds = seconds_since(begin);
  if (result.cubin.empty())
    std::printf("  does not compile: %s\n",
                result.diagnostics.empty() ? "?" : result.diagnostics.front().message.c_str());
  return seconds;
}

/// 2^levels calls, all inlined: the compiler does not ask for minutes whether to go on.
std::string inlined_calls(int levels) {
  std::string text = "//@ launch f<<<1, 1>>>(C)\n"
                     "__device__ __forceinline__ float g0(float x) { return x * 1.5f + sinf(x); }\n";
  for (int i = 1; i <= levels; ++i) {
    const auto last = "g" + std::to_string(i - 1);
    text += "__device__ __forceinline__ float g" + std::to_string(i) + "(float x) { return " + last +
            "(x) + " + last + "(x * 2); }\n";
  }
  return text + "__global__ void f(float* C) { C[0] = g" + std::to_string(levels) + "(C[1]); }\n";
}

/// How long after its deadline, or after a stop request, a hostile text is given up.
void report_ends(const detail::CudaCompiler& compiler) {
  const Kernel kernel{languages::cuda, inlined_calls(17), {}};
  Task task{.name = "task", .kernel = kernel};
  task.arguments = {{.name = "C", .role = ArgumentRole::output, .shape = {"256"}}};
  const auto plan = plan_launches(parse_launch_lines(kernel), task, ProblemSize{}, 1);
  constexpr std::chrono::seconds allowed{2};
  double late = 0;
  double stopped = 0;
  for (int i = 0; i < 3; ++i) {
    auto begin = std::chrono::steady_clock::now();
    (void)compiler.compile(kernel, plan, begin + allowed, {});
    late = std::max(late, seconds_since(begin + allowed));
    std::stop_source stop;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(allowed / 2);
      begin = std::chrono::steady_clock::now();
      stop.request_stop();
    });
    (void)compiler.compile(kernel, plan, begin + std::chrono::minutes{1}, stop.get_token());
    stopped = std::max(stopped, seconds_since(begin));
  }
  std::printf(
      "2^17 inlined calls end %.0f ms after the deadline, %.1f ms after a stop request (at most, of 3)\n",
      1e3 * late, 1e3 * stopped);
}

/// The first time, and the median of later ones.
void report(const detail::CudaCompiler& compiler, const std::string& headers) {
  const double first = compile_seconds(compiler, headers, 1);
  std::vector<double> later;
  for (int i = 0; i < 5; ++i) later.push_back(compile_seconds(compiler, headers, i + 2));
  std::sort(later.begin(), later.end());
  std::printf("  first %7.1f ms, later %7.1f ms", 1e3 * first, 1e3 * later[2]);
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<ProgramRole> roles{detail::cuda_compiler_role()};
  if (argc > 1)
    if (const auto code = play_role(argc, argv, roles)) return *code;
  try {
    auto begin = std::chrono::steady_clock::now();
    // Nobody has offered a process yet.
    const detail::CudaCompiler here({}, "sm_90a");
    std::printf("%s opened in this process in %.1f ms", here.version().c_str(), 1e3 * seconds_since(begin));
    detail::offer_roles(roles);
    begin = std::chrono::steady_clock::now();
    const detail::CudaCompiler apart({}, "sm_90a");
    std::printf(", its own process started in %.1f ms\n", 1e3 * seconds_since(begin));
    // It warms up while nobody waits for it.
    std::this_thread::sleep_for(std::chrono::milliseconds{300});
    for (const auto& names : std::initializer_list<std::vector<std::string>>{
             {},
             {"cstdint"},
             {"cuda_fp16.h"},
             {"cuda_bf16.h"},
             {"mma.h"},
             {"cooperative_groups.h"},
             {"cuda/barrier"},
             {"cuda/pipeline"},
             {"cuda/std/array"},
             {"cuda_fp16.h", "mma.h", "cooperative_groups.h", "cuda/pipeline"}}) {
      std::string headers;
      if (names.empty()) std::printf("no header");
      for (const auto& name : names) {
        headers += "#include <" + name + ">\n";
        std::printf("<%s> ", name.c_str());
      }
      std::printf("\n  here: ");
      report(here, headers);
      std::printf("\n  apart:");
      report(apart, headers);
      std::printf("\n");
    }
    report_ends(apart);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
  return 0;
}
