// A module in PyTorch, its faster form in Triton, and C++ that calls those kernels without Python: what an
// engine hands over, and what it gets to compile in.
//
//   06_pytorch --python build/python/bin/python [--output launcher.hpp]
//
// Without a GPU it records both modules, holds them against each other, lowers the kernels and writes the
// launcher; with one it also judges whether the candidate is right, and how much faster than PyTorch.

#include <mtmc/mtmc.hpp>
#include <mtmc/python.hpp>
#include <mtmc/support/file_io.hpp>

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

/// What the engine has: layer normalisation of a sum with a residual, gated, in four passes over memory.
const char* const problem_text = R"python(import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width))
        self.shift = nn.Parameter(torch.rand(width))

    def forward(self, x, residual, gate):
        h = x + residual
        mean = h.mean(dim=1, keepdim=True)
        spread = (h - mean).pow(2).mean(dim=1, keepdim=True)
        normal = (h - mean) * torch.rsqrt(spread + 1e-5) * self.gain + self.shift
        return normal * torch.sigmoid(gate)

def get_inputs():
    return [torch.randn(4096, 2048), torch.randn(4096, 2048), torch.randn(4096, 2048)]

def get_init_inputs():
    return [2048]
)python";

/// What somebody, or a language model, wrote in its place: a row in one program, each number read once.
const char* const candidate_text = R"python(import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def gated_normal(x, residual, gate, gain, shift, out, width, WIDTH: tl.constexpr):
    column = tl.arange(0, WIDTH)
    inside = column < width
    at = tl.program_id(0).to(tl.int64) * width + column
    h = tl.load(x + at, mask=inside, other=0.0) + tl.load(residual + at, mask=inside, other=0.0)
    mean = tl.sum(h, axis=0) / width
    distance = tl.where(inside, h - mean, 0.0)
    spread = tl.sum(distance * distance, axis=0) / width
    normal = distance * tl.rsqrt(spread + 1e-5)
    normal = normal * tl.load(gain + column, mask=inside) + tl.load(shift + column, mask=inside)
    tl.store(out + at, normal * tl.sigmoid(tl.load(gate + at, mask=inside)), mask=inside)

class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width))
        self.shift = nn.Parameter(torch.rand(width))

    def forward(self, x, residual, gate):
        out = torch.empty_like(x)
        rows, width = x.shape
        gated_normal[(rows,)](x, residual, gate, self.gain, self.shift, out, width,
                              WIDTH=triton.next_power_of_2(width), num_warps=8)
        return out
)python";

int refused(const char* what, const std::vector<mtmc::Diagnostic>& diagnostics) {
  std::fprintf(stderr, "%s is refused\n", what);
  for (const auto& said : diagnostics)
    std::fprintf(stderr, "  line %d: %s. %s\n", said.line, said.message.c_str(), said.remedy.c_str());
  return 2;
}

/// A device to judge on, or the reason why there is none.
std::optional<mtmc::PyTorchEvaluator> judge_on_gpu(const mtmc::PythonOptions& python) {
  try {
    return mtmc::PyTorchEvaluator{{.python = python, .device = "cuda"}};
  } catch (const mtmc::Error& error) {
    if (error.id() != mtmc::error_id::backend_device) throw;
    std::printf("not judged: %s\n", error.message().c_str());
    return std::nullopt;
  }
}

} // namespace

int main(int argc, char** argv) try {
  mtmc::PythonOptions python;
  std::string output = "launcher.hpp";
  CLI::App arguments{"A PyTorch module and its Triton kernels, judged, and called from C++ without Python."};
  arguments.add_option("--python", python.interpreter, "Python that has torch and triton")
      ->capture_default_str();
  arguments.add_option("--output", output, "where the launcher is written")->capture_default_str();
  CLI11_PARSE(arguments, argc, argv);

  // 1. Both modules run once, without device and on tensors without content: what they do becomes data.
  const mtmc::TritonRecorder recorder{python};
  auto judge = judge_on_gpu(python);
  const auto target = judge ? mtmc::recorded_target(judge->device()) : mtmc::RecordedTarget{};
  const auto problem = recorder.record(
      {.role = mtmc::RecordingRequest::Role::problem, .text = problem_text, .target = target});
  if (!problem.plan) return refused("the problem", problem.diagnostics);
  const mtmc::Kernel candidate{mtmc::languages::triton, candidate_text, {}};
  const auto recorded = recorder.record({.text = candidate.source,
                                         .constructor = problem.plan->constructor,
                                         .inputs = problem.plan->inputs,
                                         .target = target});
  if (!recorded.plan) return refused("the candidate", recorded.diagnostics);
  const mtmc::RecordedPlan& plan = *recorded.plan;
  std::printf("recorded with torch %s and triton %s for %s\n", plan.torch.c_str(), plan.triton.c_str(),
              plan.target.name.c_str());
  std::printf("the problem: %zu operators; the candidate: %zu steps, %zu kernels\n",
              problem.plan->phases.forward.size(), plan.phases.forward.size(), plan.kernels.size());

  // 2. Same weights, same results? This needs no device either.
  for (const auto& differs :
       {mtmc::check_paired_draws(*problem.plan, plan), mtmc::check_same_results(*problem.plan, plan)})
    if (differs) return refused("the candidate", {*differs});
  std::printf("its weights and results are the problem's\n");

  // 3. A process that never saw the candidate's text makes binaries of its kernels.
  const mtmc::TritonCompiler compiler{python};
  std::vector<std::shared_ptr<const mtmc::LoweredKernel>> kernels;
  for (const auto& kernel : plan.kernels) {
    const auto lowering = compiler.lower(kernel, target);
    if (!lowering.kernel) return refused("a kernel", lowering.diagnostics);
    kernels.push_back(lowering.kernel);
    std::printf("kernel %s: %lld threads, %lld bytes of shared memory, %zu bytes for sm_%d\n",
                kernel.name.c_str(), static_cast<long long>(lowering.kernel->threads),
                static_cast<long long>(lowering.kernel->shared_bytes), lowering.kernel->cubin.size(),
                target.capability);
  }

  // 4. With a GPU: is it right, and how much faster?
  const std::vector<std::string> names{"x", "residual", "gate"};
  const auto task = mtmc::problem_task("gated normal", problem_text, *problem.plan, names);
  mtmc::LauncherEvidence evidence;
  if (judge) {
    const auto judged = judge->evaluate(
        {.task = task, .candidate = candidate, .incumbent = task.kernel, .purpose = mtmc::Purpose::promote});
    if (judged.verdict != mtmc::Verdict::correct) return refused("the candidate", judged.diagnostics);
    std::printf("judged on %s: correct, %s, %s over PyTorch\n", judge->device().name.c_str(),
                mtmc::seconds_text(judged.seconds).c_str(),
                judged.speed_up ? mtmc::speed_up_text(*judged.speed_up).c_str() : "not timed");
    evidence.device = judge->device().name;
    evidence.arch = judge->device().arch;
    evidence.seconds = judged.seconds;
    evidence.speed_up = judged.speed_up;
  }

  // 5. C++ that calls them, for the engine to compile in.
  mtmc::write_file_atomic(output, mtmc::plan_launcher_source(candidate, task, plan, kernels, evidence));
  std::printf("%s calls them without Python: launcher_gated_normal\n", output.c_str());
  return 0;
} catch (const mtmc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
