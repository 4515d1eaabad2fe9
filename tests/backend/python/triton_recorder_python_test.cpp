#include <mtmc/backend/python/recorded_launches.hpp>
#include <mtmc/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "python_for_tests.hpp"

using namespace mtmc;

namespace {

/// A module in the contract of KernelBench.
constexpr std::string_view problem_text = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    """Linear, a scale, and the largest value of each row."""
    def __init__(self, width, scale):
        super().__init__()
        self.linear = nn.Linear(width, 32)
        self.scale = nn.Parameter(torch.randn(32))
        self.factor = scale
    def forward(self, x):
        y = self.linear(x) * self.scale * self.factor
        return torch.max(y, dim=1).values

rows = 128

def get_inputs():
    return [torch.rand(rows, 64)]

def get_init_inputs():
    return [64, 0.5]
)";

/// What all candidates of these tests begin with.
constexpr std::string_view beginning = R"(
import torch, torch.nn as nn, triton, triton.language as tl

@triton.jit
def twice(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(y_ptr + at, 2.0 * tl.load(x_ptr + at, mask=inside), mask=inside)

)";

/// A candidate of which only the body of `forward(self, x)` is given, of a tensor of 100 x 10.
RecordingRequest candidate(std::string_view forward, std::string_view before = {}) {
  RecordingRequest request;
  request.text = std::string(beginning) + std::string(before) +
                 "\nclass ModelNew(nn.Module):\n    def forward(self, x):\n";
  std::string_view rest = forward;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    request.text += "        " + std::string(rest.substr(0, end)) + '\n';
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  request.inputs = {tensor_input({100, 10})};
  return request;
}

int line_of(const RecordingRequest& request, std::string_view part) {
  const auto at = request.text.find(part);
  return static_cast<int>(
             std::count(request.text.begin(), request.text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
         1;
}

RecordedPlan plan_of(const TritonRecorder& recorder, const RecordingRequest& request) {
  auto recording = recorder.record(request);
  for (const auto& diagnostic : recording.diagnostics) FAIL_CHECK(diagnostic.message);
  REQUIRE(recording.plan);
  return std::move(*recording.plan);
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

constexpr std::string_view launch_twice =
    "y = torch.empty_like(x)\n"
    "twice[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)\n"
    "return y";

} // namespace

TEST_SUITE("recording") {
  TEST_CASE("a problem gives its inputs, weights, draws and operators") {
    const auto options = python_for_tests();
    if (!options) return;
    RecordingRequest request{.role = RecordingRequest::Role::problem, .text = std::string(problem_text)};
    const auto plan = plan_of(shared_recorder(*options), request);
    REQUIRE(plan.inputs.size() == 1);
    CHECK(plan.inputs[0].tensor.sizes == std::vector<std::int64_t>{128, 64});
    REQUIRE(plan.phases.inputs.size() == 1);
    CHECK(plan.phases.inputs[0].operation->name == "aten.rand.default");
    CHECK(plan.phases.inputs[0].operation->draws);
    CHECK(plan.phases.inputs[0].line == line_of(request, "return [torch.rand"));
    REQUIRE(plan.constructor.size() == 2);
    CHECK(plan.constructor[0].integer == 64);
    CHECK(plan.constructor[1].real == 0.5);

    std::vector<std::string> names;
    for (const auto& weight : plan.weights) names.push_back(weight.name);
    CHECK(names == std::vector<std::string>{"scale", "linear.weight", "linear.bias"});
    std::vector<std::string> draws;
    for (const auto& step : plan.phases.setup)
      if (step.operation && step.operation->draws) draws.push_back(step.operation->name);
    CHECK(draws ==
          std::vector<std::string>{"aten.uniform_.default", "aten.uniform_.default", "aten.randn.default"});

    std::vector<std::string> operators;
    for (const auto& step : plan.phases.forward) operators.push_back(step.operation->name);
    CHECK(operators == std::vector<std::string>{"aten.addmm.default", "aten.mul.Tensor", "aten.mul.Tensor",
                                                "aten.max.dim"});
    CHECK(plan.outputs.at(0).sizes == std::vector<std::int64_t>{128});
  }

  TEST_CASE("a candidate gives its launches, and the kernels lower to binaries") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto request = candidate(launch_twice);
    const auto plan = plan_of(shared_recorder(*options), request);
    REQUIRE(plan.kernels.size() == 1);
    CHECK(plan.kernels[0].name == "twice");
    CHECK(plan.kernels[0].line == line_of(request, "@triton.jit"));
    CHECK(has(plan.kernels[0].ir, "tt.func public @twice"));
    REQUIRE(plan.phases.forward.size() == 1);
    const auto& step = plan.phases.forward[0];
    REQUIRE(step.launch);
    CHECK(step.line == line_of(request, "twice[(triton"));
    CHECK(step.launch->grid == std::array<std::int64_t, 3>{4, 1, 1});
    REQUIRE(step.launch->arguments.size() == 3);
    CHECK(step.launch->arguments[0].storage == plan.inputs[0].tensor.storage);
    CHECK(step.launch->arguments[1].storage == plan.outputs[0].storage);
    CHECK(step.launch->arguments[2].integer == 1000);

    const auto lowering = shared_compiler(*options).lower(plan.kernels[0], plan.target);
    for (const auto& diagnostic : lowering.diagnostics) FAIL_CHECK(diagnostic.message);
    REQUIRE(lowering.kernel);
    CHECK(lowering.kernel->entry == "twice");
    CHECK(lowering.kernel->threads == 128);
    CHECK(has(lowering.kernel->ptx, ".target sm_90"));
    CHECK(lowering.kernel->cubin.starts_with("\177ELF"));
    const auto again = shared_compiler(*options).lower(plan.kernels[0], plan.target);
    CHECK(again.kernel->cubin == lowering.kernel->cubin);
    CHECK(again.kernel == shared_compiler(*options).lower(plan.kernels[0], plan.target).kernel);
  }

  TEST_CASE("temporaries, fills, views and operators between launches are steps and places") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto request = candidate("middle = torch.zeros(50, 10, device=x.device)\n"
                                   "twice[(2,)](x[50:], middle, 500, BLOCK=256)\n"
                                   "z = torch.relu(middle.t())\n"
                                   "z.fill_(1.5)\n"
                                   "return z, middle");
    const auto plan = plan_of(shared_recorder(*options), request);
    const auto& steps = plan.phases.forward;
    REQUIRE(steps.size() == 4);
    REQUIRE(steps[0].fill);
    CHECK(steps[0].fill->view.sizes == std::vector<std::int64_t>{50, 10});
    CHECK(steps[0].fill->value.integer == 0);
    REQUIRE(steps[1].launch);
    CHECK(steps[1].launch->arguments[0].offset == 50 * 10 * 4);
    CHECK(steps[1].launch->arguments[1].storage == steps[0].fill->view.storage);
    REQUIRE(steps[2].operation);
    CHECK(steps[2].operation->name == "aten.relu.default");
    CHECK(steps[2].operation->arguments[0].tensor.strides == std::vector<std::int64_t>{1, 10});
    CHECK(steps[3].fill->value.real == 1.5);
    CHECK(plan.outputs.size() == 2);
    CHECK(plan.outputs[1].storage == steps[0].fill->view.storage);
  }

  TEST_CASE("descriptors of tensors that host code makes are made by the kernel, of what they consist of") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto request = candidate(
        "y = torch.empty(128, 64, dtype=torch.float16)\n"
        "half = torch.empty(128, 64, dtype=torch.float16)\n"
        "given = TensorDescriptor.from_tensor(half, [1, 1], padding=\"nan\")\n"
        "copied[lambda given: (4, given[\"COLUMNS\"] // 16)](given, TensorDescriptor(y, [128, 64], [64, 1], "
        "[32, "
        "32]))\n"
        "return x, y",
        "from triton.tools.tensor_descriptor import TensorDescriptor\n\n"
        "def set_blocks(given):\n"
        "    given[\"a\"].block_shape = [given[\"ROWS\"], given[\"COLUMNS\"]]\n\n"
        "@triton.autotune([triton.Config({\"ROWS\": 32, \"COLUMNS\": 32}, pre_hook=set_blocks)], key=[])\n"
        "@triton.jit\n"
        "def copied(a, b, ROWS: tl.constexpr, COLUMNS: tl.constexpr):\n"
        "    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS\n"
        "    if column < a.shape[1]:\n"
        "        b.store([row, column], a.load([row, column]) * 2)\n");
    const auto plan = plan_of(shared_recorder(*options), request);
    REQUIRE(plan.kernels.size() == 1);
    std::string parameters;
    for (const auto& parameter : plan.kernels[0].parameters)
      parameters += parameter.name + ' ' + parameter.type + ", ";
    CHECK(parameters == "a *fp16, a_extent_0 i32, a_extent_1 i32, a_stride_0 i64, a_stride_1 i64, b *fp16, "
                        "b_extent_0 i32, b_extent_1 i32, b_stride_0 i64, b_stride_1 i64, ROWS constexpr, "
                        "COLUMNS constexpr, ");
    const auto& launch = *plan.phases.forward.back().launch;
    CHECK(launch.grid == std::array<std::int64_t, 3>{4, 2, 1});
    REQUIRE(launch.arguments.size() == 10);
    CHECK(launch.arguments[5].storage == plan.outputs[1].storage);
    CHECK(launch.arguments[6].integer == 128);
    CHECK(launch.arguments[8].integer == 64);
    CHECK(has(plan.kernels[0].ir, "{padding = 2 : i32}"));

    const auto lowering = shared_compiler(*options).lower(plan.kernels[0], plan.target);
    for (const auto& diagnostic : lowering.diagnostics) FAIL_CHECK(diagnostic.message);
    REQUIRE(lowering.kernel);
    CHECK(has(lowering.kernel->ptx, "cp.async.bulk.tensor.2d"));
    CHECK(lowering.kernel->global_scratch_bytes > 0);
  }

  TEST_CASE("an autotuned kernel takes the configuration that is asked for, and heuristics are computed") {
    const auto options = python_for_tests();
    if (!options) return;
    auto request = candidate(
        "y = torch.empty_like(x)\n"
        "tuned[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, y, x.numel())\n"
        "return y",
        "@triton.autotune([triton.Config({'BLOCK': b}, num_warps=w) for b, w in ((64, 1), (128, 2), "
        "(256, 8))], key=['n'])\n"
        "@triton.heuristics({'EVEN': lambda given: given['n'] % given['BLOCK'] == 0})\n"
        "@triton.jit\n"
        "def tuned(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    if EVEN:\n"
        "        tl.store(y_ptr + at, tl.load(x_ptr + at))\n"
        "    else:\n"
        "        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)\n");
    const auto first = plan_of(shared_recorder(*options), request);
    REQUIRE(first.choices.size() == 1);
    CHECK(first.choices[0].kernel == "tuned");
    CHECK(first.choices[0].configurations == 3);
    CHECK(first.phases.forward[0].launch->grid[0] == 16);
    request.choices["tuned"] = 2;
    const auto last = plan_of(shared_recorder(*options), request);
    CHECK(last.choices[0].chosen == 2);
    CHECK(last.kernels[0].options.at("num_warps") == 8);
    CHECK(last.phases.forward[0].launch->grid[0] == 4);
  }

  TEST_CASE(
      "a function of a task's arguments is called by their names, and its launches are what a judge runs") {
    const auto options = python_for_tests();
    if (!options) return;
    RecordingRequest request{.role = RecordingRequest::Role::function,
                             .text = std::string(beginning) + "def run(Y, X, n):\n"
                                                              "    middle = torch.zeros_like(X)\n"
                                                              "    twice[(4,)](X, middle, n, BLOCK=256)\n"
                                                              "    twice[(4,)](middle, Y, n, BLOCK=256)\n"};
    request.names = {"X", "n", "Y"};
    request.inputs = {
        tensor_input({1000}), {.kind = RecordedValue::Kind::integer, .integer = 1000}, tensor_input({1000})};
    const auto plan = plan_of(shared_recorder(*options), request);
    const auto lowering = shared_compiler(*options).lower(plan.kernels.at(0), plan.target);
    const std::vector<RecordedBuffer> buffers{{"X", false}, {"n", false}, {"Y", true}};
    const std::vector<std::shared_ptr<const LoweredKernel>> lowered{lowering.kernel};
    const auto launches = recorded_launches(plan, lowered, buffers);
    CHECK_FALSE(launches.refused);
    REQUIRE(launches.plan.launches.size() == 2);
    CHECK(launches.plan.launches[0].arguments[0].name == "X");
    CHECK(launches.plan.launches[0].arguments[1].zeroed);
    CHECK(launches.plan.launches[1].arguments[1].name == "Y");
    request.text += "    return Y\n";
    const auto gives = shared_recorder(*options).record(request);
    CHECK(has(gives.diagnostics.at(0).message, "gives a tensor"));
  }

  TEST_CASE("a script is recorded as a whole") {
    const auto options = python_for_tests();
    if (!options) return;
    RecordingRequest request{.role = RecordingRequest::Role::script,
                             .text = std::string(beginning) + "x = torch.rand(300, device='cuda')\n"
                                                              "y = torch.empty_like(x)\n"
                                                              "twice[(2,)](x, y, 300, BLOCK=256)\n"
                                                              "assert torch.allclose(y, 2 * x)\n"
                                                              "result_gold = {'first': y}\n"};
    const auto plan = plan_of(shared_recorder(*options), request);
    REQUIRE(plan.phases.forward.size() == 3);
    CHECK(plan.phases.forward[0].operation->draws);
    CHECK(plan.phases.forward[1].launch);
    CHECK(plan.outputs.size() == 1);
  }

  TEST_CASE("numbers of the text are the content of a storage, and code may ask for them") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto plan =
        plan_of(shared_recorder(*options), candidate("scale = torch.tensor([1, 256], dtype=torch.int32)\n"
                                                     "if scale[1].item() > 3:\n"
                                                     "    x = x + scale[0]\n"
                                                     "return x"));
    CHECK(std::any_of(plan.storages.begin(), plan.storages.end(),
                      [](const auto& storage) { return storage.content == "0100000000010000"; }));
  }

  TEST_CASE("what a kernel has written is not known, whatever was there before") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto plan =
        plan_of(shared_recorder(*options), candidate("y = torch.zeros(1000, device='cuda')\n"
                                                     "twice[(4,)](x, y, 1000, BLOCK=256)\n"
                                                     "return y.clone(), (y / 7).to(torch.float16)"));
    const auto& steps = plan.phases.forward;
    CHECK(std::count_if(steps.begin(), steps.end(),
                        [](const auto& step) { return step.operation.has_value(); }) == 3);
    for (const auto& storage : plan.storages) CHECK(storage.content.empty());
    const auto asked = shared_recorder(*options).record(candidate("y = torch.zeros(1, device='cuda')\n"
                                                                  "twice[(1,)](x, y, 1000, BLOCK=256)\n"
                                                                  "return x * y.item()"));
    CHECK_FALSE(asked.plan);
  }

  TEST_CASE("numbers of the text lie as their tensor has them") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto plan =
        plan_of(shared_recorder(*options), candidate("return x, torch.tensor([[1, 2, 3], [4, 5, 6]], "
                                                     "dtype=torch.uint8).t().clone()"));
    CHECK(std::any_of(plan.storages.begin(), plan.storages.end(),
                      [](const auto& storage) { return storage.content == "010203040506"; }));
    CHECK(plan.outputs[1].strides == std::vector<std::int64_t>{1, 3});
  }

  TEST_CASE("numbers of the text may be a tensor that was made in the old way") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto plan =
        plan_of(shared_recorder(*options), candidate("return x + torch.Tensor([1, 2]).to('cuda')[0]"));
    CHECK(std::any_of(plan.storages.begin(), plan.storages.end(),
                      [](const auto& storage) { return storage.content == "0000803f00000040"; }));
  }

  TEST_CASE("an argument of one is a constant of the kernel, as Triton has it") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto plan = plan_of(shared_recorder(*options), candidate("y = torch.empty_like(x)\n"
                                                                   "twice[(1,)](x, y, 1, BLOCK=256)\n"
                                                                   "return y"));
    CHECK(plan.kernels[0].parameters[2].type == "constexpr");
    CHECK(plan.phases.forward[0].launch->arguments.size() == 2);
  }
}

TEST_SUITE("what is refused, in words for whoever wrote it") {
  struct Refusal {
    std::string_view forward;
    std::string_view message;
    std::string_view remedy;
    std::string_view place; ///< text of the line that is blamed
  };

  TEST_CASE("host code that cannot be recorded") {
    const auto options = python_for_tests();
    if (!options) return;
    const Refusal refusals[] = {
        {"if x.sum() > 0:\n    return x\nreturn -x", "content of a tensor decides", "shapes", "if x.sum()"},
        {"return x * x.max().item()", "content of a tensor decides", "shapes", "x.max().item()"},
        {"return x[x.nonzero()]", "content of a tensor decides", "nonzero", "x.nonzero()"},
        {"stream = torch.cuda.Stream()\nreturn x", "torch.cuda.Stream", "in order", ""},
        {"return 3", "value of type int", "Give a tensor", ""},
        {"return undefined_name", "NameError", "", "undefined_name"},
        {"twice[(1,)](x, x, 5)\nreturn x", "BLOCK", "", "twice[(1,)](x, x, 5)"},
        {"twice[(1.5,)](x, x, 5, BLOCK=32)\nreturn x", "grid is a float", "Make it an integer",
         "twice[(1.5,)]"},
        {"twice[(70000, 70000)](x, x, 5, BLOCK=32)\nreturn x", "70000 programs along axis 1", "",
         "twice[(70000"},
        {"import numpy_of_nobody\nreturn x", "numpy_of_nobody", "torch, triton", "import numpy_of_nobody"},
        {"return x.cpu().numpy()", "", "", "numpy()"},
        {"from torch.utils.cpp_extension import load_inline\nload_inline('a', '')\nreturn x",
         "build an extension", "Triton", "load_inline('a'"},
        {"while True:\n    x = x + 1", "more than 20000", "", "x = x + 1"},
    };
    for (const auto& refusal : refusals) {
      const auto request = candidate(refusal.forward);
      const std::string shown(refusal.forward);
      CAPTURE(shown);
      const auto recording = shared_recorder(*options).record(request);
      CHECK_FALSE(recording.plan);
      REQUIRE(recording.diagnostics.size() == 1);
      const auto& diagnostic = recording.diagnostics[0];
      CAPTURE(diagnostic.message);
      CAPTURE(diagnostic.remedy);
      CHECK(has(diagnostic.message, refusal.message));
      CHECK(has(diagnostic.remedy, refusal.remedy));
      if (!refusal.place.empty()) CHECK(diagnostic.line == line_of(request, refusal.place));
    }
  }

  TEST_CASE("text that is no module") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto said_of = [&](std::string text) {
      RecordingRequest request{.text = std::move(text)};
      request.inputs = {tensor_input({4})};
      const auto recording = shared_recorder(*options).record(request);
      CHECK_FALSE(recording.plan);
      REQUIRE(recording.diagnostics.size() == 1);
      return recording.diagnostics[0];
    };
    CHECK(said_of("class ModelNew(:\n").line == 1);
    CHECK(has(said_of("class ModelNew(:\n").message, "not Python"));
    CHECK(has(said_of("x = 1\n").message, "no `ModelNew`"));
    CHECK(has(said_of(std::string("\xff\xfe\0", 3)).message, ""));
    CHECK(has(said_of("import torch\nclass ModelNew(torch.nn.Module):\n  def __init__(self, a):\n    pass\n")
                  .message,
              "TypeError"));
  }

  TEST_CASE("kernels that do not compile") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto request =
        candidate("wrong[(1,)](x, x)\nreturn x", "@triton.jit\ndef wrong(x_ptr, y_ptr):\n"
                                                 "    tl.store(x_ptr + tl.arange(0, 7), 1.0)\n");
    const auto recording = shared_recorder(*options).record(request);
    REQUIRE(recording.diagnostics.size() == 1);
    CHECK(has(recording.diagnostics[0].message, "power of 2"));
    CHECK(recording.diagnostics[0].line == line_of(request, "wrong[(1,)]"));
  }
}

TEST_SUITE("candidates that mean harm") {
  TEST_CASE("no files, connections, programs or other processes") {
    const auto options = python_for_tests();
    if (!options) return;
    const std::string_view attempts[] = {
        "open('/etc/passwd').read()",
        "open('/tmp/mtmc-was-here', 'w')",
        "import os; os.listdir('/root')",
        "import socket; socket.socket()",
        "import os; os.fork()",
        "import os; os.execv('/bin/true', ['true'])",
        "import os; os.kill(os.getppid(), 9)",
        "import os; os.kill(-1, 9)",
        "import ctypes\nif ctypes.CDLL(None, use_errno=True).fork() < 0: raise PermissionError('fork')",
        "import ctypes\nif ctypes.CDLL(None).ptrace(16, 1, 0, 0) < 0: raise PermissionError('ptrace')",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.memfd_create('x')",
        "import os; os.mkdir('x')",
        "open('x', 'w')",
        "import os; os.listdir('/proc/self/fd')",
        // A pointer whose lower half is null, and another process: nobody's limits are set or read.
        "import ctypes, mmap, os\nlibrary = ctypes.CDLL(None, use_errno=True)\n"
        "library.syscall.restype = ctypes.c_long\n"
        "for pid, new in ((os.getppid(), 0), (0, 0x1300000000), (os.getppid(), 0x1300000000)):\n"
        "    if library.syscall(ctypes.c_long(302), ctypes.c_int(pid), ctypes.c_int(7), "
        "ctypes.c_void_p(new), None) == 0 or \\\n"
        "            ctypes.get_errno() != 1: raise RuntimeError('limits')\n"
        "raise PermissionError('limits')",
        "import threading\ntry:\n    threading.Thread(target=print).start()\n"
        "except RuntimeError: raise PermissionError('threads')",
        "import os; os.setuid(0)",
        "open('/dev/nvidiactl')",
        "open('/proc/1/environ').read()",
    };
    for (const auto& attempt : attempts) {
      const std::string shown(attempt);
      CAPTURE(shown);
      RecordingRequest request{.text = shown + "\nimport torch\nclass ModelNew(torch.nn.Module):\n"
                                               "  def forward(self, x): return x\n"};
      request.inputs = {tensor_input({4})};
      const auto recording = shared_recorder(*options).record(request);
      CHECK_FALSE(recording.plan);
      REQUIRE(recording.diagnostics.size() == 1);
      CAPTURE(recording.diagnostics[0].message);
      CHECK((has(recording.diagnostics[0].message, "PermissionError") ||
             has(recording.diagnostics[0].message, "FileNotFoundError")));
    }
    CHECK_FALSE(std::filesystem::exists("/tmp/mtmc-was-here"));
  }

  TEST_CASE("the process may be killed, hang or use up its memory: the next one is recorded") {
    const auto options = python_for_tests();
    if (!options) return;
    auto short_of_time = *options;
    short_of_time.record_timeout = std::chrono::milliseconds{1500};
    short_of_time.memory_limit = std::int64_t{1} << 30;
    const TritonRecorder recorder(short_of_time);
    const auto outcome_of = [&](std::string text) {
      RecordingRequest request{.text = std::move(text)};
      request.inputs = {tensor_input({4})};
      return recorder.record(request);
    };
    CHECK(outcome_of("while True: pass").timed_out);
    CHECK(outcome_of("import time; time.sleep(100)").timed_out);
    CHECK(has(outcome_of("import ctypes; ctypes.string_at(0)").diagnostics.at(0).message, "signal 11"));
    CHECK(has(outcome_of("import os; os._exit(0)").diagnostics.at(0).message, "without an answer"));
    CHECK(has(outcome_of("x = 'x' * (2 << 30)").diagnostics.at(0).message, "more memory"));
    CHECK_FALSE(outcome_of("import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()").plan);
    std::stop_source stop;
    stop.request_stop();
    CHECK(recorder.record(candidate(launch_twice), stop.get_token()).timed_out);
    CHECK(recorder.record(candidate(launch_twice)).plan);
  }

  TEST_CASE("what differs from one process to the next is refused") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto recording = shared_recorder(*options).record(
        candidate("import os\ny = torch.empty_like(x)\n"
                  "twice[(os.getpid() % 30000 + 1,)](x, y, 5, BLOCK=32)\nreturn y"));
    CHECK_FALSE(recording.plan);
    CHECK(has(recording.diagnostics.at(0).message, "differ"));
  }

  TEST_CASE("a forged recording is data, and is looked at as such") {
    const auto options = python_for_tests();
    if (!options) return;
    // Whoever rewrites the recorder in its own process can say anything; it is refused where it is unsound.
    const auto recording =
        shared_recorder(*options).record(candidate("import gc\n"
                                                   "for held in gc.get_objects():\n"
                                                   "    if type(held).__name__ == 'Recording':\n"
                                                   "        held.phases['forward'].append({'launch': "
                                                   "{'kernel': 99, 'grid': [1, 1, 1], 'arguments': []}})\n"
                                                   "return x"));
    CHECK_FALSE(recording.plan);
    CHECK(has(recording.diagnostics.at(0).message, "kernel that is not there"));
  }

  TEST_CASE("what is known is not taken from a recording") {
    const auto options = python_for_tests();
    if (!options) return;
    const std::string change = "import gc\nfor held in gc.get_objects():\n"
                               "    if type(held).__name__ == 'Recording':\n        ";
    const auto plan = plan_of(shared_recorder(*options),
                              candidate(change + "held.target = dict(held.target, shared_bytes=1 << 60)\n"
                                                 "return x"));
    CHECK(plan.target == RecordedTarget{});
    CHECK(plan.triton == shared_recorder(*options).versions().at("triton"));
    const auto other = shared_recorder(*options).record(
        candidate("import sys\nown = sys.modules['recording']\nsaid = own.plan_of\n"
                  "own.plan_of = lambda recording, outputs, *more: said(recording, outputs)\nreturn x"));
    CHECK_FALSE(other.plan);
    CHECK(has(other.diagnostics.at(0).message, "other inputs"));
  }

  TEST_CASE("IR that is forged does not get through the second process") {
    const auto options = python_for_tests();
    if (!options) return;
    auto& compiler = shared_compiler(*options);
    const auto plan = plan_of(shared_recorder(*options), candidate(launch_twice));
    auto kernel = plan.kernels[0];
    kernel.ir = "module { not IR }";
    CHECK(has(compiler.lower(kernel, plan.target).diagnostics.at(0).message, "does not compile"));
    kernel = plan.kernels[0];
    kernel.options["ir_override"] = 1;
    CHECK(has(compiler.lower(kernel, plan.target).diagnostics.at(0).message, "ir_override"));
    kernel = plan.kernels[0];
    const auto body = kernel.ir.find("tt.get_program_id");
    REQUIRE(body != std::string::npos);
    const auto line = kernel.ir.rfind('\n', body) + 1;
    kernel.ir.insert(
        line, "    %clock = tt.elementwise_inline_asm \"mov.u64 $0, %globaltimer;\" {constraints = \"=l\", "
              "packed_element = 1 : i32, pure = false} -> i64\n");
    auto fewer = plan.kernels[0];
    fewer.parameters.pop_back();
    fewer.parameters.pop_back();
    CHECK(has(compiler.lower(fewer, plan.target).diagnostics.at(0).message, "other parameters"));
    const auto timed = compiler.lower(kernel, plan.target);
    CHECK_FALSE(timed.kernel);
    CHECK_FALSE(timed.diagnostics.empty());
  }
}

TEST_SUITE("surroundings") {
  TEST_CASE("an interpreter that is missing or lacks a package is an error with the remedy") {
    const auto error_of = [](PythonOptions options) {
      try {
        const TritonRecorder recorder(options);
      } catch (const Error& error) {
        CHECK(error.id() == error_id::backend_compiler);
        return std::string(error.what());
      }
      return std::string("no error");
    };
    CHECK(has(error_of({.interpreter = "no-such-python"}), "Install Python"));
    CHECK(has(error_of({.interpreter = "/bin/true"}), "before it said anything"));
    CHECK(has(error_of({.interpreter = "python3", .temporary_folder = "/nowhere"}), "/nowhere"));
  }

  TEST_CASE("only versions whose launches are known are taken") {
    CHECK(known_triton_versions().size() == 3);
    CHECK_NOTHROW(detail::demand_known_triton("3.6.0"));
    CHECK_THROWS_WITH_AS(detail::demand_known_triton("3.60.0"), doctest::Contains("3.6 (torch 2.11)"), Error);
    CHECK_THROWS_AS(detail::demand_known_triton("4.0"), Error);
  }

  TEST_CASE("a device of the backend is told to the module") {
    Device device{.name = "NVIDIA H200", .arch = "sm_90a", .compute_units = 100};
    device.memory_bytes = 1000;
    device.shared_memory_bytes = 233472;
    device.caches = {{.level = 2, .bytes = 77}};
    const auto target = recorded_target(device);
    CHECK(target.name == "NVIDIA H200");
    CHECK(target.capability == 90);
    CHECK(target.multiprocessors == 100);
    CHECK(target.shared_bytes == 232448);
    CHECK(target.cache_bytes == 77);
    CHECK(target.memory_bytes == 1000);
  }
}
