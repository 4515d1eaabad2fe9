#pragma once
/// A module of two Triton kernels with weights, a temporary and numbers, its launcher, and a program that
/// calls it on a device, without Python, and compares the result with what the host computes in double
/// precision.

#include <mtmc/backend/python.hpp>
#include <mtmc/launcher/plan_launcher.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace mtmc_test {

inline constexpr const char* shares_module = R"(import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def row_sums(x, sums, width, WIDTH: tl.constexpr):
    column = tl.arange(0, WIDTH)
    row = tl.program_id(0)
    tl.store(sums + row, tl.sum(tl.load(x + row * width + column, mask=column < width, other=0.0), axis=0))

@triton.jit
def shares(x, sums, gain, out, width, scale, WIDTH: tl.constexpr):
    column = tl.arange(0, WIDTH)
    row = tl.program_id(0)
    inside = column < width
    value = tl.load(x + row * width + column, mask=inside) * tl.load(gain + column, mask=inside)
    tl.store(out + row * width + column, scale * value / tl.load(sums + row), mask=inside)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(1000))
    def forward(self, x):
        sums = torch.empty(x.shape[0], device=x.device)
        out = torch.empty_like(x)
        row_sums[(x.shape[0],)](x, sums, x.shape[1], WIDTH=1024)
        shares[(x.shape[0],)](x, sums, self.gain, out, x.shape[1], 1.5, WIDTH=1024)
        return out
)";

/// Prints "right", and ends with 0.
inline constexpr const char* shares_program = R"(
#include <cmath>
#include <vector>
int main() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto find = [&](auto* function, const char* name) {
    return reinterpret_cast<decltype(function)>(dlsym(driver, name));
  };
  using Address = unsigned long long;
  const auto init = find(static_cast<int (*)(unsigned)>(nullptr), "cuInit");
  const auto retain = find(static_cast<int (*)(void**, int)>(nullptr), "cuDevicePrimaryCtxRetain");
  const auto use = find(static_cast<int (*)(void*)>(nullptr), "cuCtxSetCurrent");
  const auto allocate = find(static_cast<int (*)(Address*, std::size_t)>(nullptr), "cuMemAlloc_v2");
  const auto upload = find(static_cast<int (*)(Address, const void*, std::size_t)>(nullptr), "cuMemcpyHtoD_v2");
  const auto download = find(static_cast<int (*)(void*, Address, std::size_t)>(nullptr), "cuMemcpyDtoH_v2");
  void* context = nullptr;
  if (init(0) != 0 || retain(&context, 0) != 0 || use(context) != 0) return 1;
  constexpr std::size_t rows = 500, width = 1000;
  std::vector<float> x(rows * width), gain(width), out(rows * width);
  unsigned state = 1;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) / 16777216.0f + 0.01f;
  };
  for (auto& value : x) value = next();
  for (auto& value : gain) value = next();
  Address at_x = 0, at_gain = 0, at_out = 0, scratch = 0;
  const std::size_t bytes = 4 * rows * width;
  if (allocate(&at_x, bytes) != 0 || allocate(&at_gain, 4 * width) != 0 || allocate(&at_out, bytes) != 0 ||
      allocate(&scratch, launcher_shares::scratch_bytes() + 1) != 0 || upload(at_x, x.data(), bytes) != 0 ||
      upload(at_gain, gain.data(), 4 * width) != 0)
    return 2;
  const auto pointer = [](Address address) { return reinterpret_cast<float*>(address); };
  const launcher_shares launcher;
  launcher_shares::Weights weights;
  weights.gain = pointer(at_gain);
  launcher(nullptr, reinterpret_cast<void*>(scratch), weights, pointer(at_x), pointer(at_out));
  if (download(out.data(), at_out, bytes) != 0) return 3;
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::size_t column = 0; column < width; ++column) sum += static_cast<double>(x[row * width + column]);
    for (std::size_t column = 0; column < width; ++column) {
      const std::size_t i = row * width + column;
      const double right = 1.5 * static_cast<double>(x[i]) * static_cast<double>(gain[column]) / sum;
      if (!(std::fabs(static_cast<double>(out[i]) - right) <= 1e-5 * right)) return 4;
    }
  }
  std::puts("right");
})";

/// The launcher of the module for a device, which need not be here. Throws `std::runtime_error` with what the
/// recorder or the compiler says.
inline std::string shares_launcher(const mtmc::TritonRecorder& recorder, const mtmc::TritonCompiler& compiler,
                                   const mtmc::RecordedTarget& target) {
  const mtmc::Kernel kernel{mtmc::languages::triton, shares_module, {}};
  mtmc::RecordedValue input{.kind = mtmc::RecordedValue::Kind::tensor};
  input.tensor = {.sizes = {500, 1000}, .strides = {1000, 1}};
  const auto recording =
      recorder.record({.text = kernel.source, .inputs = {std::move(input)}, .target = target});
  if (!recording.plan) throw std::runtime_error(recording.diagnostics.at(0).message);
  std::vector<std::shared_ptr<const mtmc::LoweredKernel>> lowered;
  for (const auto& one : recording.plan->kernels) {
    const auto lowering = compiler.lower(one, target);
    if (lowering.kernel == nullptr) throw std::runtime_error(lowering.diagnostics.at(0).message);
    lowered.push_back(lowering.kernel);
  }
  mtmc::Task task;
  task.name = "shares";
  return mtmc::plan_launcher_source(kernel, task, *recording.plan, lowered);
}

} // namespace mtmc_test
