#include <mtmc/backend/python/paired_draws.hpp>
#include <mtmc/backend/python/plan_replayer.hpp>
#include <mtmc/support/process/subprocess.hpp>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "python_for_tests.hpp"

using namespace mtmc;

namespace {

/// Everything that a recording has to say of places: views, in-place operators, tied and copied weights,
/// buffers, slices, several outputs, an operator that gives a tuple, numbers of the text.
constexpr std::string_view problem_text = R"(
import copy, math
import torch
import torch.nn as nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, 2 * width, bias=False)
    def forward(self, x):
        a, b = self.linear(self.norm(x)).chunk(2, dim=-1)
        return x + a * torch.sigmoid(b)

class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        block = Block(width)
        self.blocks = nn.ModuleList([copy.deepcopy(block) for _ in range(layers)])
        self.conv = nn.Conv1d(4, 4, 3, padding=1)
        self.batch_norm = nn.BatchNorm1d(4)
        self.scale = nn.Parameter(torch.randn(width) * 0.1 + 1)
        self.register_buffer("steps", torch.linspace(0, 1, width))
        nn.init.xavier_normal_(self.conv.weight)
    def forward(self, x, mask):
        x = self.batch_norm(self.conv(x))
        for block in self.blocks:
            x = block(x)
        y = x.transpose(1, 2)[:, 2:, :].contiguous()
        y[:, 0] += 1.0
        y.mul_(0.5)
        weights = F.softmax(x * self.scale + self.steps, dim=-1)
        values, places = torch.max(weights * mask, dim=1)
        shift = torch.tensor([0.25, -1.0])
        return y, values.view(-1, 2) + shift, places, torch.cat([x.flatten(), y.new_zeros(3)])

def get_inputs():
    return [torch.rand(3, 4, 16), torch.tril(torch.ones(4, 16))]

def get_init_inputs():
    return [16, 2]
)";

RecordingRequest problem(std::string_view text = problem_text) {
  return {.role = RecordingRequest::Role::problem, .text = std::string(text)};
}

RecordedPlan plan_of(const PythonOptions& options, const RecordingRequest& request) {
  auto recording = shared_recorder(options).record(request);
  for (const auto& diagnostic : recording.diagnostics) FAIL_CHECK(diagnostic.message);
  REQUIRE(recording.plan);
  return std::move(*recording.plan);
}

const PlanReplayer& shared_replayer(const PythonOptions& options) {
  static const PlanReplayer replayer(options);
  return replayer;
}

Replayed replay(const PythonOptions& options, const RecordedPlan& plan, const ReplayOptions& how) {
  auto replayed = shared_replayer(options).replay(plan, how);
  for (const auto& diagnostic : replayed.diagnostics) FAIL_CHECK(diagnostic.message);
  return replayed;
}

template <class T> std::vector<T> numbers_of(const ReplayedTensor& tensor) {
  std::vector<T> numbers(tensor.bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), tensor.bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// A candidate for a problem of one linear layer.
std::optional<Diagnostic> paired(const PythonOptions& options, std::string_view constructor) {
  const auto reference =
      plan_of(options, problem("import torch, torch.nn as nn\n"
                               "class Model(nn.Module):\n"
                               "    def __init__(self):\n"
                               "        super().__init__()\n"
                               "        self.linear = nn.Linear(8, 4)\n"
                               "        self.scale = nn.Parameter(torch.randn(4))\n"
                               "    def forward(self, x): return self.linear(x) * self.scale\n"
                               "def get_inputs(): return [torch.rand(2, 8)]\n"
                               "def get_init_inputs(): return []\n"));
  RecordingRequest request;
  request.text = "import torch, torch.nn as nn\nclass ModelNew(nn.Module):\n    def __init__(self):\n"
                 "        super().__init__()\n";
  request.text += constructor;
  request.text += "\n    def forward(self, x): return x[:, :4] + 1\n";
  request.inputs = reference.inputs;
  return check_paired_draws(reference, plan_of(options, request));
}

} // namespace

TEST_SUITE("replaying") {
  TEST_CASE("a replayed recording gives what PyTorch gives, bit by bit") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto plan = plan_of(*options, problem());
    const auto replayed = replay(*options, plan, {.key = 77});
    REQUIRE(replayed.outputs.size() == 4);
    // The same draws, in the same order, from the same seeds, by a plain run of the module.
    const std::string oracle = R"(
import hashlib, sys, torch
key, drawn, phase = 77, 0, "inputs"
class Seeded(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        global drawn
        if function._schema.name.split("::")[1] in ("uniform_", "normal_", "randn", "rand"):
            text = f"{key} {phase} {drawn}".encode()
            torch.manual_seed(int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1)
            drawn += 1
        return function(*arguments, **(named or {}))
text = {}
exec(sys.stdin.read(), text)
with Seeded(), torch.no_grad():
    inputs = text["get_inputs"]()
    drawn, phase = 0, "setup"
    outputs = text["Model"](*text["get_init_inputs"]())(*inputs)
for output in outputs:
    print(bytes(output.contiguous().reshape(-1).view(torch.uint8).tolist()).hex())
)";
    ProcessOptions process;
    process.arguments = {options->interpreter, "-c", oracle};
    process.input = problem_text;
    const auto expected = run_process(process);
    REQUIRE_MESSAGE(expected.succeeded(), expected.error);
    std::string given;
    for (const auto& output : replayed.outputs) {
      for (const char byte : output.bytes) {
        const auto value = static_cast<unsigned char>(byte);
        given += {"0123456789abcdef"[value >> 4], "0123456789abcdef"[value & 15]};
      }
      given += '\n';
    }
    CHECK(given == expected.output);
  }

  TEST_CASE("equal keys give equal outputs, others do not") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto plan = plan_of(*options, problem());
    const auto bytes = [&](std::int64_t key) {
      return replay(*options, plan, {.key = key}).outputs.at(0).bytes;
    };
    CHECK(bytes(5) == bytes(5));
    CHECK(bytes(5) != bytes(6));
  }

  TEST_CASE("in double precision a plan without random numbers gives the truth") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto plan =
        plan_of(*options, problem("import torch\n"
                                  "class Model(torch.nn.Module):\n"
                                  "    def forward(self, x): return (x / 3.0).sum(dim=1), x.argmax(dim=1)\n"
                                  "def get_inputs(): return [torch.arange(1.0, 13.0).view(3, 4)]\n"
                                  "def get_init_inputs(): return []\n"));
    const auto truth = replay(*options, plan, {.double_precision = true});
    REQUIRE(truth.outputs.size() == 2);
    CHECK(truth.outputs[0].type == "f64");
    CHECK(truth.outputs[1].type == "i64");
    const auto sums = numbers_of<double>(truth.outputs[0]);
    CHECK(sums == std::vector<double>{1.0 / 3 + 2.0 / 3 + 1.0 + 4.0 / 3, 5.0 / 3 + 2.0 + 7.0 / 3 + 8.0 / 3,
                                      3.0 + 10.0 / 3 + 11.0 / 3 + 4.0});
    const auto single = replay(*options, plan, {});
    CHECK(single.outputs[0].type == "f32");
    CHECK(std::abs(static_cast<double>(numbers_of<float>(single.outputs[0])[0]) - sums[0]) < 1e-5);
  }

  TEST_CASE("operators that reach beyond their tensors are not done") {
    const auto options = python_for_tests();
    if (!options) return;
    auto plan = plan_of(*options, problem("import torch\n"
                                          "class Model(torch.nn.Module):\n"
                                          "    def forward(self, x): return x + 1\n"
                                          "def get_inputs(): return [torch.rand(4)]\n"
                                          "def get_init_inputs(): return []\n"));
    const auto said = [&](std::string name, std::vector<RecordedValue> arguments) {
      plan.phases.forward[0].operation->name = std::move(name);
      plan.phases.forward[0].operation->arguments = std::move(arguments);
      const auto replayed = shared_replayer(*options).replay(plan);
      CHECK(replayed.outputs.empty());
      return replayed.diagnostics.at(0).message;
    };
    const RecordedValue file{.kind = RecordedValue::Kind::text, .text = "/etc/passwd"};
    CHECK(has(said("aten.from_file.default", {file}), "reaches beyond"));
    CHECK(has(said("aten.no_such_thing.default", {}), "no operator"));
    CHECK(has(said("os.system.default", {file}), "not one of PyTorch's own"));
    CHECK(has(said("aten.add.Tensor", {}), "add"));
  }
}

TEST_SUITE("pairing of weights") {
  TEST_CASE("the same initialisers in the same order pair, whatever is done afterwards") {
    const auto options = python_for_tests();
    if (!options) return;
    CHECK(
        paired(*options,
               "        self.linear = nn.Linear(8, 4)\n        self.scale = nn.Parameter(torch.randn(4))") ==
        std::nullopt);
    CHECK(paired(
              *options,
              "        layer = nn.Linear(8, 4)\n        self.weight = nn.Parameter(layer.weight.t().half())\n"
              "        self.scale = torch.randn(4, device='cuda') * layer.bias") == std::nullopt);
  }

  TEST_CASE("the first difference is named") {
    const auto options = python_for_tests();
    if (!options) return;
    const auto said = [&](std::string_view constructor) {
      const auto wrong = paired(*options, constructor);
      return wrong ? wrong->message : std::string("they pair");
    };
    CHECK(
        has(said("        self.scale = nn.Parameter(torch.randn(4))\n        self.linear = nn.Linear(8, 4)"),
            "draw 1 of the constructor is aten.randn.default([4])"));
    CHECK(
        has(said("        self.linear = nn.Linear(8, 5)\n        self.scale = nn.Parameter(torch.randn(4))"),
            "f32[5, 8]"));
    CHECK(has(said("        self.linear = nn.Linear(8, 4)"), "does not draw aten.randn.default([4])"));
    CHECK(has(said("        self.linear = nn.Linear(8, 4)\n        self.a = torch.randn(4)\n        self.b = "
                   "torch.randn(4)"),
              "4 times, the problem's 3 times"));
    CHECK(has(said("        self.linear = nn.Linear(8, 4)\n        self.scale = nn.Parameter(torch.rand(4))"),
              "aten.rand."));
  }
}
