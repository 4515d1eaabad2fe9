// The contract of mtmc-record: a problem and candidates in, what they do out.

#include "../backend/python/python_for_tests.hpp"
#include "programs.hpp"

using doctest::Contains;
using programs::shown;

namespace {

constexpr const char* problem_text = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.rand(16, 32)]

def get_init_inputs():
    return [32]
)";

constexpr const char* candidate_text = R"(import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(x_ptr + at, tl.maximum(x, 0.0), mask=at < n)

class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
    def forward(self, x):
        y = self.linear(x)
        relu_kernel[(2,)](y, y.numel(), BLOCK=256)
        return y
)";

} // namespace

TEST_CASE("a problem is told with its actions, a candidate with its launches and kernels") {
  const auto options = python_for_tests();
  if (!options) return;
  programs::Tasks files;
  const auto problem = files.add_text("relu.py", problem_text);
  const auto candidate = files.add_text("candidate.py", candidate_text);
  const auto told =
      programs::run("mtmc-record", {"--python", options->interpreter, "--actions", problem, candidate});
  CAPTURE(told.error);
  CHECK(told.code == 0);
  CHECK(shown(told.output) == Contains("input x: f32[16, 32] in [0, 1]"));
  CHECK(shown(told.output) == Contains("action: tiling the Linear and the relu in line 9"));
  CHECK(shown(told.output) == Contains("line 9: aten.addmm.default"));
  CHECK(shown(told.output) == Contains("line 18: launches relu_kernel, 2 programs"));
  CHECK(shown(told.output) == Contains("kernel relu_kernel: 128 threads"));

  const auto json =
      programs::run("mtmc-record", {"--python", options->interpreter, "--json", problem, candidate});
  const auto second = nlohmann::json::parse(json.output.substr(json.output.find('\n')));
  CHECK(second["role"] == "candidate");
  CHECK(second["accepted"] == true);
  CHECK(second["plan"]["phases"]["forward"].size() == 2);
  CHECK(second["lowered"][0]["ok"] == true);
}

TEST_CASE("what is refused is told with the line and what to do, and the exit code says so") {
  const auto options = python_for_tests();
  if (!options) return;
  programs::Tasks files;
  const auto problem = files.add_text("relu.py", problem_text);
  std::string wrong = candidate_text;
  wrong.replace(wrong.find("nn.Linear(width, width)"), 23, "nn.Linear(width, 16)   ");
  const auto told = programs::run(
      "mtmc-record", {"--python", options->interpreter, problem, files.add_text("wrong.py", wrong)});
  CHECK(told.code == 2);
  CHECK(shown(told.output) == Contains("refused in line 15"));
  CHECK(shown(told.output) == Contains("f32[16, 32]"));
}

TEST_CASE("without an interpreter or a problem it says what to do") {
  programs::Tasks files;
  const auto problem = files.add_text("relu.py", problem_text);
  const auto missing = programs::run("mtmc-record", {"--python", "no-such-python", problem});
  CHECK(missing.code == 3);
  CHECK(shown(missing.error) == Contains("Install Python 3.9 or later with torch and triton"));
  CHECK(programs::run("mtmc-record", {}).code == 2);
  CHECK(programs::run("mtmc-record", {"/nowhere.py"}).code == 2);
}
