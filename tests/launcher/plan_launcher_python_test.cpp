// Launchers of recorded modules with their real binaries, on a driver without a device.

#include <mtmc/backend/python/problem_task.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/launcher/plan_launcher.hpp>

#include <memory>
#include <string>
#include <vector>

#include "../backend/python/python_for_tests.hpp"
#include "compiled_launcher.hpp"

using mtmc_test::CompiledLauncher;

namespace {

const std::string kernels_text = R"(import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def scale_add(x, out, n, factor, add, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor + add, mask=i < n)

@triton.jit
def add_product(x, w, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(out + i, mask=i < n) + tl.load(x + i, mask=i < n) * tl.load(w + i, mask=i < n), mask=i < n)

@triton.jit
def take(table, places, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(table + tl.load(places + i, mask=i < n)), mask=i < n)

)";

struct Recorded {
  mtmc::RecordedPlan plan;
  std::vector<std::shared_ptr<const mtmc::LoweredKernel>> lowered;
  mtmc::Kernel kernel;
};

Recorded recorded(const mtmc::PythonOptions& options, const std::string& module) {
  Recorded made;
  made.kernel = {mtmc::languages::triton, kernels_text + module, {}};
  const auto recording =
      shared_recorder(options).record({.text = made.kernel.source, .inputs = {tensor_input({4, 16})}});
  REQUIRE_MESSAGE(recording.plan.has_value(), recording.diagnostics.at(0).message);
  made.plan = *recording.plan;
  for (const auto& kernel : made.plan.kernels) {
    const auto lowering = shared_compiler(options).lower(kernel, made.plan.target);
    REQUIRE_MESSAGE(lowering.kernel != nullptr, lowering.diagnostics.at(0).message);
    made.lowered.push_back(lowering.kernel);
  }
  return made;
}

mtmc::Task named(std::string name) {
  mtmc::Task task;
  task.name = std::move(name);
  return task;
}

} // namespace

TEST_CASE(
    "a recorded module with weights, temporaries, fills and numbers of its own is called without Python") {
  const auto options = python_for_tests();
  if (!options) return;
  const auto made = recorded(*options, R"(
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(64))
        self.register_buffer("unused", torch.rand(3))
        self.twice = self.gain.detach() * 2
    def forward(self, x):
        flat = x.view(-1)
        y = torch.empty_like(flat)
        scale_add[(1,)](flat[4:], y, 60, 0.5, True, BLOCK=64)
        total = torch.full_like(y, 0.25)
        total[48:] = -1.0
        add_product[(2,)](y, self.gain, total, 60, BLOCK=32)
        add_product[(2,)](y, self.twice, total, 48, BLOCK=32)
        places = torch.tensor([5, 50, 0, 59, 7, 7, 1, 63], device=x.device)
        out = torch.zeros(10, device=x.device)
        take[(1,)](total, places, out, 8, BLOCK=8)
        return out, total.view(4, 16)
)");
  const auto text = mtmc::plan_launcher_source(made.kernel, named("recorded"), made.plan, made.lowered);
  CHECK(text.find("const float* gain = nullptr;") != std::string::npos);
  CHECK(text.find("    // f32[64], what the constructor makes in line 27 by aten.mul.Tensor from gain\n"
                  "    const float* made_in_line_27 = nullptr;\n") != std::string::npos);
  CHECK(text.find("unused =") == std::string::npos);
  const CompiledLauncher launcher(text, R"(
int main() {
  alignas(16) float x[64], gain[64], twice[64], out[10], total[64];
  alignas(256) static unsigned char scratch[launcher_recorded::scratch_bytes()];
  for (int i = 0; i < 64; ++i) {
    x[i] = static_cast<float>(i);
    gain[i] = static_cast<float>(i % 7);
    twice[i] = 2 * gain[i];
  }
  const launcher_recorded launcher;
  launcher_recorded::Weights weights;
  weights.gain = gain;
  weights.made_in_line_27 = twice;
  launcher(nullptr, scratch, weights, x, out, total);
  float right[64];
  for (int i = 0; i < 64; ++i) {
    const float y = i < 60 ? 0.5f * x[i < 60 ? i + 4 : 0] + 1 : 0;
    right[i] = (i < 48 ? 0.25f : -1) + y * gain[i] + (i < 48 ? y * twice[i] : 0);
    if (total[i] != right[i]) return 1;
  }
  const int places[] = {5, 50, 0, 59, 7, 7, 1, 63};
  for (int i = 0; i < 10; ++i)
    if (out[i] != (i < 8 ? right[places[i]] : 0)) return 2;
})");
  const auto ran = launcher.run();
  CHECK_MESSAGE(ran.succeeded(), ran.error << ran.output);
  CHECK(ran.output.find("add_product: 2 1 1 blocks of 128, 0 bytes") != std::string::npos);
}

TEST_CASE("a module of which operators remain has no launcher, and the first one is named") {
  const auto options = python_for_tests();
  if (!options) return;
  const auto made = recorded(*options, R"(
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scale_add[(1,)](x, y, 64, 0.5, True, BLOCK=64)
        return torch.softmax(y, 1).exp()
)");
  try {
    (void)mtmc::plan_launcher_source(made.kernel, named("remains"), made.plan, made.lowered);
    FAIL("it has a launcher");
  } catch (const mtmc::Error& error) {
    CHECK(error.message() ==
          "the operator aten._softmax.default of PyTorch remains, and a launcher does launches "
          "and fills only");
    CHECK(error.place() == "line 26 of the module, task remains");
    CHECK(error.remedy() == "Compute it in a kernel, or call the module from Python");
  }
}
