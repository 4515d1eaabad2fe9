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
mtmc::RecordedValue integer_value(std::int64_t value) {
  return {.kind = mtmc::RecordedValue::Kind::integer, .integer = value};
}
mtmc::RecordedValue real_value(double value) {
  return {.kind = mtmc::RecordedValue::Kind::real, .real = value};
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

namespace {

const std::vector<mtmc::KernelParameter> of_product{
    {"x", "*fp32"}, {"w", "*fp32"}, {"out", "*fp32"}, {"n", "i32"}};

/// Three kernels over x, weights, what the constructor made, numbers of the text, and temporaries, of which
/// the first and the last can share their memory.
mtmc::RecordedPlan long_plan() {
  enum : int { x, weight, packed, places, scaled, sum, late, out, unread };
  auto plan = scaling_plan();
  plan.storages = {{.bytes = 128}, {.bytes = 128}, {.bytes = 128}, {.bytes = 64}, {.bytes = 96},
                   {.bytes = 128}, {.bytes = 100}, {.bytes = 64},  {.bytes = 4}};
  for (const char place : {'7', '0', '3', '1', '4', '2', '6', '5'})
    plan.storages[places].content += std::string("0") + place + "00000000000000";
  plan.kernels.push_back({.name = "add_product", .ir = "module {}", .parameters = of_product});
  plan.kernels.push_back(
      {.name = "look_up",
       .ir = "module {}",
       .parameters = {
           {"table", "*fp32"}, {"places", "*i64"}, {"out", "*fp32"}, {"n", "i64"}, {"shift", "fp64"}}});
  plan.inputs = {tensor(view(x, {4, 8})), integer_value(-3)};
  plan.weights = {{"linear.weight", true, view(weight, {32})}, {"new", false, view(unread, {1})}};
  mtmc::RecordedOperation clone{.name = "aten.clone.default"};
  clone.arguments = {tensor(view(weight, {32}))};
  clone.outputs = {view(packed, {32})};
  plan.phases.setup = {{.operation = clone, .line = 7}};
  const auto launch = [](int kernel, std::vector<mtmc::RecordedArgument> arguments, int line) {
    return mtmc::RecordedStep{.launch = mtmc::RecordedLaunch{kernel, {2, 1, 1}, std::move(arguments)},
                              .line = line};
  };
  auto part = view(sum, {8});
  part.offset = 64;
  mtmc::RecordedView columns{.storage = out, .sizes = {2, 2}, .strides = {8, 1}};
  plan.phases.forward = {
      launch(0, {pointer(x, 32), pointer(scaled), integer(24), real(0.5), integer(1)},
             12), // scaled = x[8:] / 2 + 1
      {.fill = mtmc::RecordedFill{view(sum, {32}), real_value(0.25)}, .line = 13},
      {.fill = mtmc::RecordedFill{part, real_value(-1)}, .line = 14},
      launch(1, {pointer(scaled), pointer(weight), pointer(sum), integer(24)}, 15), // sum += scaled * weight
      launch(1, {pointer(packed), integer(0), pointer(sum), integer(32)}, 16),      // sum += packed
      launch(0, {pointer(sum), pointer(late), integer(25), real(-1), integer(0)}, 17),
      launch(2, {pointer(late, 16), pointer(places), pointer(out), integer(8), real(0.5)}, 18),
      launch(2, {pointer(late, 16), pointer(places), pointer(out, 32), integer(8), real(-0.5)}, 18),
      {.fill = mtmc::RecordedFill{columns, integer_value(9)}, .line = 19}};
  plan.outputs = {view(out, {2, 8})};
  return plan;
}

} // namespace

TEST_CASE("kernels, fills, temporaries, offsets, a null pointer, weights and numbers of the text") {
  auto plan = long_plan();
  auto clustered = *binary("scale_add");
  clustered.threads = 64;
  clustered.cluster = {2, 1, 1};
  clustered.shared_bytes = 100000;
  const Lowered lowered{std::make_shared<mtmc::LoweredKernel>(clustered), binary("add_product"),
                        binary("look_up")};
  auto task = named("long");
  task.arguments = {{.name = "class", .role = mtmc::ArgumentRole::input},
                    {.name = "linear.weight", .role = mtmc::ArgumentRole::input},
                    {.name = "result", .role = mtmc::ArgumentRole::output}};
  const auto text = mtmc::plan_launcher_source(module, task, plan, lowered);
  CHECK(text.find(
            "    // linear.weight: f32[32]\n    const float* linear_weight = nullptr;\n"
            "    // f32[32], what the constructor makes in line 7 by aten.clone.default from linear.weight\n"
            "    const float* made_in_line_7 = nullptr;\n  };\n") != std::string::npos);
  CHECK(text.find(
            "  //   class_: f32[4, 8]\n  //   result: f32[2, 8]\n  // Recorded with -3 as argument 2.\n") !=
        std::string::npos);
  CHECK(text.find("new_") == std::string::npos); // nothing reads it
  const CompiledLauncher launcher(text, R"(
int main() {
  alignas(16) float x[32], weight[32], packed[32], out[16];
  alignas(256) static unsigned char scratch[launcher_long::scratch_bytes()];
  for (int i = 0; i < 32; ++i) {
    x[i] = static_cast<float>(i);
    weight[i] = static_cast<float>(i % 5);
    packed[i] = static_cast<float>(100 * i);
  }
  launcher_long launcher;
  launcher_long::Weights weights;
  void* const stream = reinterpret_cast<void*>(std::uintptr_t{0x5});
  try {
    launcher(stream, scratch, weights, x, out);
  } catch (const std::invalid_argument& error) { std::puts(error.what()); }
  weights.linear_weight = weight;
  weights.made_in_line_7 = packed;
  for (int again = 0; again < 2; ++again) {
    for (auto& byte : scratch) byte = 0x7F;
    launcher(stream, scratch, weights, x, out);
    const int places[] = {7, 0, 3, 1, 4, 2, 6, 5};
    for (int i = 0; i < 16; ++i) {
      const int at = 4 + places[i % 8];
      const float right = -(0.25f + (0.5f * x[at + 8] + 1) * weight[at] + packed[at]) + (i < 8 ? 0.5f : -0.5f);
      if (out[i] != (i % 8 < 2 ? 9.0f : right)) return 1;
    }
  }
  std::printf("%zu bytes\n", launcher_long::scratch_bytes());
})");
  const auto ran = launcher.run();
  CHECK_MESSAGE(ran.succeeded(), ran.error << ran.output);
  const std::string begin = "load\nscale_add: attribute 8 is 100000\nload\nload\nallocate 256\n"
                            "weights.linear_weight is null\n";
  CHECK(ran.output.starts_with(begin));
  // A program of two blocks: Triton's grid counts clusters.
  CHECK(ran.output.substr(begin.size())
            .starts_with("scale_add: 4 1 1 blocks of 64, 100000 bytes, stream 0x5, attribute 4 is 2 1 1\n"
                         "add_product: 2 1 1 blocks of 128, 0 bytes, stream 0x5\n"
                         "add_product: 2 1 1 blocks of 128, 0 bytes, stream 0x5\n"
                         "scale_add: 4 1 1 blocks of 64, 100000 bytes, stream 0x5, attribute 4 is 2 1 1\n"
                         "look_up: 2 1 1 blocks of 128, 0 bytes, stream 0x5\n"));
  // Two of the three temporaries lie in the same place.
  CHECK(ran.output.ends_with("512 bytes\nunload\nunload\nunload\n"));
}

TEST_CASE("fills write the bits of their type, in rows and across them") {
  const std::vector<std::pair<std::string, mtmc::RecordedValue>> fills{
      {"f64", real_value(1.5)},     {"f64", real_value(0.1)},      {"f32", integer_value(3)},
      {"f16", real_value(1.0 / 3)}, {"bf16", real_value(1.0 / 3)}, {"i64", integer_value(-2)},
      {"i16", integer_value(-2)},   {"bool", integer_value(1)},    {"f8e4m3", integer_value(0)}};
  mtmc::RecordedPlan plan;
  std::string parameters, use, prints;
  for (const auto& [type, value] : fills) {
    const auto number = static_cast<int>(plan.storages.size());
    const std::int64_t bytes = mtmc::recorded_type_bytes(type).value();
    plan.storages.push_back({.bytes = 6 * bytes});
    // The first two of three columns, which lie in rows or, of every second one, in columns.
    auto filled = view(number, {2, 2}, type);
    filled.strides = {3, 1};
    if (number % 2 == 0 && bytes < 8) std::swap(filled.strides[0], filled.strides[1]);
    if (bytes == 8) filled = view(number, {5}, type);
    plan.phases.forward.push_back({.fill = mtmc::RecordedFill{filled, value}});
    plan.outputs.push_back(view(number, {6}, type));
    use += "  alignas(16) static unsigned char m" + std::to_string(number) + "[" + std::to_string(6 * bytes) +
           "];\n";
    parameters += ", out(m" + std::to_string(number) + ")";
    prints += "  print(m" + std::to_string(number) + ", " + std::to_string(bytes) + ");\n";
  }
  const CompiledLauncher launcher(mtmc::plan_launcher_source(module, named("fills"), plan, {}), R"(
struct out {
  void* memory;
  explicit out(void* given) : memory(given) {}
  template <class T> operator T*() const { return static_cast<T*>(memory); }
};
static void print(const unsigned char* bytes, int size) {
  for (int i = 0; i < 6; ++i) {
    for (int k = size; k-- > 0;) std::printf("%02x", bytes[i * size + k]);
    std::printf(i < 5 ? " " : "\n");
  }
}
int main() {
)" + use + "  launcher_fills launcher;\n  launcher(nullptr, nullptr" + parameters + ");\n" + prints +
                                                                                                    "}\n");
  const auto ran = launcher.run();
  CHECK_MESSAGE(ran.succeeded(), ran.error << ran.output);
  const auto five = [](const std::string& word) {
    return word + ' ' + word + ' ' + word + ' ' + word + ' ' + word;
  };
  const auto rows = [](const std::string& word, const std::string& zero) {
    return word + ' ' + word + ' ' + zero + ' ' + word + ' ' + word + ' ' + zero + '\n';
  };
  CHECK(ran.output == five("3ff8000000000000") + " 0000000000000000\n" + five("3fb999999999999a") +
                          " 0000000000000000\n" + rows("40400000", "00000000") + rows("3555", "0000") +
                          rows("3eab", "0000") + five("fffffffffffffffe") + " 0000000000000000\n" +
                          rows("fffe", "0000") + rows("01", "00") + rows("00", "00"));
}

TEST_CASE("results in the memory of inputs, in a part of their memory, and of the text's numbers") {
  auto plan = scaling_plan();
  plan.storages = {{.bytes = 128}, {.bytes = 256}, {.bytes = 8, .content = "0000803f00000040"}};
  auto part = view(1, {4, 4});
  part.offset = 16;
  part.strides = {8, 1};
  plan.outputs = {view(0, {4, 8}), part, view(2, {2})};
  const auto text = mtmc::plan_launcher_source(module, named("places"), plan, Lowered{binary("scale_add")});
  CHECK(text.find(
            "  //   input_0: f32[4, 8]; holds the result output_0 behind the call, f32[4, 8]\n"
            "  //   output_1: f32[4, 4] with strides of 8, 1 elements, from byte 16; all 256 bytes of its "
            "memory\n"
            "  //   output_2: f32[2]\n") != std::string::npos);
  for (const char* const parameter : {"input_0", "output_1", "output_2"})
    CHECK(text.find("[[maybe_unused]] float* " + std::string(parameter)) != std::string::npos);
  const CompiledLauncher launcher(text, R"(
int main() {
  alignas(16) float x[32] = {}, out[64] = {}, numbers[2] = {};
  launcher_places launcher;
  launcher(nullptr, nullptr, x, out, numbers);
  return out[31] == 1 && numbers[0] == 1 && numbers[1] == 2 ? 0 : 1;
})");
  const auto ran = launcher.run();
  CHECK_MESSAGE(ran.succeeded(), ran.error << ran.output);
  CHECK(ran.output.find("copy 8 on (nil)\n") != std::string::npos);
}

TEST_CASE("what the driver says becomes readable") {
  const char* const use = R"(
int main() {
  alignas(16) float x[32] = {};
  try {
    launcher_errors launcher(DRIVER);
    launcher(nullptr, nullptr, x, x);
  } catch (const std::runtime_error& error) { std::puts(error.what()); }
})";
  const auto said = [&](const mtmc::RecordedPlan& plan, std::string entry, const std::string& driver) {
    const CompiledLauncher launcher(
        mtmc::plan_launcher_source(module, named("errors"), plan, Lowered{binary(std::move(entry))}),
        "#define DRIVER \"" + driver + "\"" + use);
    return launcher.run().output;
  };
  CHECK(said(scaling_plan(), "missing", "libcuda.so.1") ==
        "load\nunload\ncuModuleGetFunction gave CUDA_ERROR_NOT_FOUND\n");
  auto wrong = scaling_plan();
  wrong.kernels[0].parameters = {{"x", "*fp32"},     {"out", "*fp32"}, {"n", "i32"},
                                 {"factor", "fp32"}, {"add", "u1"},    {"more", "i32"}};
  wrong.phases.forward[0].launch->arguments.push_back(integer(7));
  CHECK(said(wrong, "scale_add", "libcuda.so.1").find("cuLaunchKernelEx gave CUDA_ERROR_INVALID_VALUE\n") !=
        std::string::npos);
  CHECK(said(scaling_plan(), "scale_add", "no_such_driver.so").find("CUDA's driver cannot be opened: ") == 0);
  CHECK(said(scaling_plan(), "scale_add", "libm.so.6") ==
        "CUDA's driver has no cuGetErrorName; install one of CUDA 12 or later\n");
}

namespace {

/// What is thrown for a plan.
std::string refusal_of(const mtmc::RecordedPlan& plan, const Lowered& lowered = {binary("scale_add")}) {
  try {
    (void)mtmc::plan_launcher_source(module, named("refused"), plan, lowered);
  } catch (const mtmc::Error& error) {
    CHECK(error.id() == mtmc::error_id::report_write);
    return error.what();
  }
  return "nothing";
}

} // namespace

TEST_CASE("what a launcher cannot do is refused with the line and what to do") {
  const auto shown = [](const mtmc::RecordedPlan& plan) { return doctest::String(refusal_of(plan).c_str()); };
  CHECK(shown(scaling_plan()) == "nothing");

  auto plan = scaling_plan();
  plan.phases.forward.push_back(
      {.operation = mtmc::RecordedOperation{.name = "aten.relu.default"}, .line = 13});
  plan.phases.forward.push_back(
      {.operation = mtmc::RecordedOperation{.name = "aten.exp.default"}, .line = 14});
  CHECK(shown(plan) ==
        "[mtmc.report.001] the operator aten.relu.default of PyTorch remains, and a launcher does "
        "launches and fills only (line 13 of the module, task refused). Compute it in a kernel, or "
        "call the module from Python");
  plan = scaling_plan();
  plan.storages[0].bytes = 512;
  CHECK(shown(plan) ==
        "[mtmc.report.001] the input `input_0` is a part of its memory (task refused). Record the "
        "module with whole tensors");
  plan = scaling_plan();
  plan.inputs.push_back(plan.inputs[0]);
  CHECK(shown(plan) == Contains("the input `input_1` shares its memory with another one"));
  plan = scaling_plan();
  plan.inputs = {{.kind = mtmc::RecordedValue::Kind::list, .list = plan.inputs}};
  CHECK(shown(plan) == Contains("an input is a list of tensors"));
  plan = scaling_plan();
  plan.inputs.clear();
  plan.weights = {{"table", true, view(0, {3})}};
  CHECK(shown(plan) == Contains("the weight `table` is a part of its memory, which a kernel is given"));

  plan = scaling_plan();
  mtmc::RecordedView blocks{.storage = 1, .sizes = {2, 2, 2}, .strides = {15, 4, 1}};
  plan.phases.forward.push_back({.fill = mtmc::RecordedFill{blocks, real_value(0)}, .line = 15});
  CHECK(shown(plan) ==
        "[mtmc.report.001] a tensor of f32[2, 2, 2] with strides of 15, 4, 1 elements is filled, whose "
        "elements are no rows (line 15 of the module, task refused). Fill it in a kernel");
  plan.phases.forward.back().fill = mtmc::RecordedFill{view(1, {8}, "f8e5m2"), real_value(1)};
  CHECK(shown(plan) ==
        Contains("a tensor of f8e5m2 is filled with a number that a launcher cannot write (line 15"));
  auto rows = view(1, {2, 2}, "f64");
  rows.strides = {3, 1};
  plan.phases.forward.back().fill = mtmc::RecordedFill{rows, real_value(0.1)};
  CHECK(shown(plan) == Contains("rows of f64 are filled with a number of two different words (line 15"));

  plan = scaling_plan();
  plan.outputs[0].sizes = {40, 8};
  CHECK(shown(plan) == Contains("the recording is unsound: an output reaches beyond its storage"));
  plan = scaling_plan();
  plan.phases.forward[0].launch->grid = {2000000000, 1, 1};
  auto clustered = *binary("scale_add");
  clustered.cluster = {2, 1, 1};
  CHECK(refusal_of(plan, {std::make_shared<mtmc::LoweredKernel>(clustered)})
            .find("the kernel scale_add is launched with more blocks than a grid has (line 12") !=
        std::string::npos);
  CHECK(refusal_of(scaling_plan(), {})
            .find("the kernel scale_add has not been lowered (line 4 of the module, task "
                  "refused). Lower every kernel of the plan first") != std::string::npos);
  CHECK(refusal_of(scaling_plan(), {binary("a\"b")}).find("one whose entry has no name") !=
        std::string::npos);
  auto profiled = *binary("scale_add");
  profiled.profile_scratch_bytes = 64;
  CHECK(refusal_of(scaling_plan(), {std::make_shared<mtmc::LoweredKernel>(profiled)})
            .find("the kernel scale_add was made to be profiled") != std::string::npos);
}

TEST_CASE("a kernel that makes descriptors of tensors is lent memory for each of its blocks") {
  auto lowered = *binary("scale_add");
  lowered.global_scratch_bytes = 384;
  auto plan = scaling_plan();
  plan.phases.forward[0].launch->grid = {5, 1, 1};
  const auto text = mtmc::plan_launcher_source(module, named("scale"), plan,
                                               Lowered{std::make_shared<mtmc::LoweredKernel>(lowered)});
  CHECK(text.find("scratch_bytes() { return 2048; }") != std::string::npos); // 5 * 384, rounded
  CHECK(text.find(", mtmc_scratch, 0});") != std::string::npos);
}
