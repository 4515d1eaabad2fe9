// Launchers of plans that are written by hand, on a driver without a device.

#include <mtmc/core/error.hpp>
#include <mtmc/launcher/plan_launcher.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiled_launcher.hpp"

using doctest::Contains;
using mtmc_test::CompiledLauncher;

namespace {

mtmc::RecordedView view(int storage, std::vector<std::int64_t> sizes, std::string type = "f32") {
  mtmc::RecordedView view{.storage = storage, .sizes = sizes, .strides = sizes, .type = std::move(type)};
  std::int64_t stride = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0; stride *= sizes[axis]) view.strides[axis] = stride;
  return view;
}
mtmc::RecordedArgument pointer(int storage, std::int64_t offset = 0) {
  return {.storage = storage, .offset = offset};
}
mtmc::RecordedArgument integer(std::int64_t value) {
  return {.kind = mtmc::RecordedArgument::Kind::integer, .integer = value};
}
mtmc::RecordedArgument real(double value) {
  return {.kind = mtmc::RecordedArgument::Kind::real, .real = value};
}
mtmc::RecordedValue tensor(mtmc::RecordedView view) {
  return {.kind = mtmc::RecordedValue::Kind::tensor, .tensor = std::move(view)};
}

using Lowered = std::vector<std::shared_ptr<const mtmc::LoweredKernel>>;

std::shared_ptr<const mtmc::LoweredKernel> binary(std::string entry) {
  mtmc::LoweredKernel lowered;
  lowered.cubin = "not a real binary of " + entry;
  lowered.entry = std::move(entry);
  return std::make_shared<mtmc::LoweredKernel>(std::move(lowered));
}

/// out = 0.5 * x + 1 over 32 numbers.
mtmc::RecordedPlan scaling_plan() {
  mtmc::RecordedPlan plan;
  plan.storages = {{.bytes = 128}, {.bytes = 128}};
  plan.kernels = {{.name = "scale_add",
                   .ir = "module {}",
                   .parameters = {{"x", "*fp32"},
                                  {"out", "*fp32"},
                                  {"n", "i32"},
                                  {"factor", "fp32"},
                                  {"add", "u1"},
                                  {"BLOCK", "constexpr"}},
                   .line = 4}};
  plan.inputs = {tensor(view(0, {4, 8}))};
  plan.outputs = {view(1, {4, 8})};
  plan.phases.forward = {{.launch = mtmc::RecordedLaunch{.arguments = {pointer(0), pointer(1), integer(32),
                                                                       real(0.5), integer(1)}},
                          .line = 12}};
  return plan;
}

const mtmc::Kernel module{mtmc::languages::triton, "# the module", {}};

mtmc::Task named(std::string name) {
  mtmc::Task task;
  task.name = std::move(name);
  return task;
}

} // namespace

TEST_CASE("one kernel, one input, one output") {
  const auto text =
      mtmc::plan_launcher_source(module, named("scale"), scaling_plan(), Lowered{binary("scale_add")});
  const CompiledLauncher launcher(text, R"(
int main() {
  alignas(16) float x[32], out[32];
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i);
  static_assert(launcher_scale::scratch_bytes() == 0, "");
  launcher_scale launcher;
  launcher(nullptr, nullptr, x, out);
  for (int i = 0; i < 32; ++i)
    if (out[i] != 0.5f * x[i] + 1) return 1;
  try {
    launcher(nullptr, nullptr, x + 1, out);
  } catch (const std::invalid_argument& error) { std::puts(error.what()); }
  try {
    launcher(nullptr, nullptr, x, nullptr);
  } catch (const std::invalid_argument& error) { std::puts(error.what()); }
})");
  const auto ran = launcher.run();
  CHECK_MESSAGE(ran.succeeded(), ran.error << ran.output);
  CHECK(ran.output == "load\nscale_add: 1 1 1 blocks of 128, 0 bytes, stream (nil)\n"
                      "input_0 is not aligned to 16 bytes\noutput_0 is null\nunload\n");
}
