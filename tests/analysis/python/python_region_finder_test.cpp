#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/python/python_region_finder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

using namespace mtmc;

namespace {

Structure structure_of(std::string_view text) {
  return PythonRegionFinder{}.find({}, {languages::triton, std::string(text)});
}

/// A module whose `__init__` and `forward` have these lines, indented by eight.
std::string module(std::string_view built, std::string_view computed) {
  return "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def __init__(self, n):\n"
         "        super().__init__()\n" +
         std::string(built) + "    def forward(self, x):\n" + std::string(computed);
}

std::vector<std::string> actions_of(std::string_view text,
                                    const ActionSpace& space = ActionSpace::extended()) {
  Device device;
  device.kind = "gpu";
  std::vector<std::string> texts;
  for (const auto& action : space.legal_actions(structure_of(text), device)) texts.push_back(action.text());
  return texts;
}

bool has(const std::vector<std::string>& texts, std::string_view text) {
  CAPTURE(texts);
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

const Region& region_of(const Structure& structure, std::string_view path) {
  const auto* const region = structure.find_region(path);
  REQUIRE_MESSAGE(region != nullptr, std::string(path));
  return *region;
}

constexpr std::string_view softmax_text = R"(import torch
import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    x_row = x_ptr + row * columns
    for start in range(0, columns, BLOCK):
        x = tl.load(x_row + start + tl.arange(0, BLOCK))
        total += tl.exp(x)
    whole = tl.sum(total, 0)
    for start in range(0, columns, BLOCK):
        x = tl.load(x_row + start + tl.arange(0, BLOCK))
        tl.store(y_ptr + row * columns + start + tl.arange(0, BLOCK), tl.exp(x) / whole)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = torch.relu(x)
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return torch.tanh(y)
)";

} // namespace

TEST_SUITE("statements of a module") {
  const auto chain = module("        self.linear = nn.Linear(n, n)\n", "        x = self.linear(x)\n"
                                                                       "        x = torch.relu(x) * 2\n"
                                                                       "        x = x.view(-1, 8)\n"
                                                                       "        return x.max(dim=1)[0]\n");

  TEST_CASE("each one that computes is a launch, and runs that hand on a value may be fused, as the paper "
            "says it") {
    const auto structure = structure_of(chain);
    CHECK(region_of(structure, "Model/Linear").first_line == 9);
    CHECK(region_of(structure, "Model/relu_multiplication").label == "the relu and the multiplication");
    CHECK(structure.find_region("Model/view") == nullptr);
    const auto& run = region_of(structure, "Model/Linear+relu_multiplication");
    CHECK(run.kind == RegionKind::launch_sequence);
    CHECK(run.facts.fusable);
    CHECK(run.facts.intermediates == std::vector<std::string>{"Linear of line 9"});
    CHECK(structure.edges.size() == 2);
    CHECK(has(actions_of(chain), "fusing the Linear and relu and the multiplication in line 9 to 10"));
    CHECK(has(actions_of(chain), "tiling the Linear in line 9"));
    CHECK(has(actions_of(chain, ActionSpace::paper()), "reordering the Linear in line 9"));
  }

  TEST_CASE("a statement that only looks at a value in another shape ends no run") {
    const auto texts =
        actions_of(module("", "        x = torch.exp(x)\n"
                              "        n = x.size(0)\n"
                              "        x = x.view(n, -1)\n"
                              "        x = x.transpose(0, 1)\n"
                              "        x = torch.log1p(x)\n"
                              "        return torch.cat([x, x.flatten().tanh().view_as(x)], dim=0)\n"));
    CHECK(has(texts, "fusing the exp and log1p in line 8 to 12"));
    CHECK(has(texts, "fusing the exp, log1p and tanh in line 8 to 13"));
  }

  TEST_CASE("runs say what their members compute, in their order") {
    const auto structure = structure_of(chain);
    CHECK(region_of(structure, "Model/Linear+relu_multiplication").facts.directives ==
          std::vector<std::string>{"torch", "contraction", "pointwise"});
    CHECK(region_of(structure, "Model/Linear+relu_multiplication").facts.calls ==
          std::vector<std::string>{"Linear", "relu", "*"});
    const auto mixed = structure_of(softmax_text);
    CHECK(region_of(mixed, "ModelNew/relu+launch:softmax_kernel").facts.directives ==
          std::vector<std::string>{"torch", "triton.jit", "pointwise", "reduction"});
  }

  TEST_CASE("a second product begins a kernel of its own") {
    const auto structure =
        structure_of(module("        self.a = nn.Linear(n, n)\n        self.b = nn.Linear(n, n)\n",
                            "        x = self.a(x)\n        x = torch.relu(x)\n        return self.b(x)\n"));
    CHECK(region_of(structure, "Model/Linear+relu").facts.fusable);
    CHECK(region_of(structure, "Model/relu+Linear#2").facts.fusable);
    CHECK_FALSE(region_of(structure, "Model/Linear+relu+Linear#2").facts.fusable);
  }

  TEST_CASE("statistics of a batch, networks, random numbers and what is not known end a run") {
    const auto fused = [](std::string_view built, std::string_view computed) {
      const auto structure = structure_of(module(built, computed));
      const auto& regions = structure.regions;
      const auto run = std::find_if(regions.begin(), regions.end(), [](const Region& one) {
        return one.kind == RegionKind::launch_sequence;
      });
      return run != regions.end() && run->facts.fusable;
    };
    CHECK(fused("        self.norm = nn.LayerNorm(n)\n",
                "        x = self.norm(x)\n        return torch.tanh(x)\n"));
    CHECK_FALSE(fused("        self.norm = nn.BatchNorm2d(n)\n",
                      "        x = self.norm(x)\n        return torch.tanh(x)\n"));
    CHECK(fused("        self.norm = nn.BatchNorm2d(n)\n",
                "        x = torch.tanh(x)\n        return self.norm(x)\n"));
    CHECK_FALSE(fused("        self.drop = nn.Dropout(0.5)\n",
                      "        x = self.drop(x)\n        return torch.tanh(x)\n"));
    CHECK_FALSE(fused("        self.lstm = nn.LSTM(n, n)\n",
                      "        x = self.lstm(x)\n        return torch.tanh(x)\n"));
    CHECK_FALSE(fused("", "        x = somebody(x)\n        return torch.tanh(x)\n"));
    CHECK_FALSE(
        fused("", "        y = torch.tanh(x)\n        return torch.relu(x)\n")); // nothing is handed on
  }

  TEST_CASE("thousands of statements give a bounded number of regions") {
    std::string body;
    for (int i = 0; i < 2000; ++i) body += "        x = torch.tanh(x)\n";
    const auto structure = structure_of(module("", body + "        return x\n"));
    CHECK(structure.regions.size() <= 2000 + 61);
    CHECK(structure.regions.size() > 2000);
  }
}

TEST_SUITE("Triton kernels") {
  TEST_CASE("kernels, their loops and the places where they are launched are regions") {
    const auto structure = structure_of(softmax_text);
    const auto& kernel = region_of(structure, "softmax_kernel");
    CHECK(kernel.kind == RegionKind::function);
    CHECK(kernel.facts.reads == std::vector<std::string>{"x_ptr"}); // through a name of the row
    CHECK(kernel.facts.writes == std::vector<std::string>{"y_ptr"});
    const auto& loop = region_of(structure, "softmax_kernel/start");
    REQUIRE(loop.facts.loops.size() == 1);
    CHECK(loop.facts.loops[0].upper == "columns");
    CHECK(loop.facts.transcendental);
    CHECK(region_of(structure, "softmax_kernel/start#2").facts.writes == std::vector<std::string>{"y_ptr"});
    CHECK(region_of(structure, "softmax_kernel/start+start").facts.intermediates ==
          std::vector<std::string>{"x_ptr"});
    CHECK(region_of(structure, "launch:softmax_kernel").first_line == 22);
  }

  TEST_CASE("of kernels with products no more than one is part of a fusable run") {
    const auto fusable = [](std::string_view first, std::string_view path) {
      return region_of(structure_of("import triton, triton.language as tl\n"
                                    "@triton.jit\ndef a(x_ptr, y_ptr):\n    v = tl.load(x_ptr)\n" +
                                    std::string(first) +
                                    "    tl.store(y_ptr, v)\n"
                                    "@triton.jit\ndef b(y_ptr, z_ptr):\n    v = tl.load(y_ptr)\n"
                                    "    tl.store(z_ptr, tl.dot(v, v))\n"
                                    "def both(x, y, z):\n    a[(1,)](x, y)\n    b[(1,)](y, z)\n"),
                       path)
          .facts.fusable;
    };
    CHECK(fusable("    v = tl.exp(v)\n", "launch:a+launch:b"));
    CHECK_FALSE(fusable("    v = tl.dot(v, v)\n", "launch:a+launch:b"));
  }

  TEST_CASE("what may be done to them") {
    const auto actions = actions_of(softmax_text);
    CHECK(has(actions, "tiling the kernel softmax_kernel in line 6 to 16"));
    CHECK(has(actions, "pipelining the start loop of softmax_kernel in line 10 to 12"));
    CHECK(
        has(actions,
            "making one pass of the neighbouring start and start loops of softmax_kernel in line 10 to 16"));
    CHECK(has(actions, "reducing the strength of the start loop of softmax_kernel in line 10 to 12"));
    CHECK(actions.back() == "stop");
  }

  TEST_CASE("launches of a forward stand among its statements, and values go through both") {
    const auto structure = structure_of(softmax_text);
    const auto& run = region_of(structure, "ModelNew/relu+launch:softmax_kernel+tanh");
    CHECK(run.facts.fusable);
    CHECK(run.facts.intermediates == std::vector<std::string>{"x of line 20", "y"});
    CHECK(has(actions_of(softmax_text), "rewriting the relu, softmax_kernel and tanh in line 20 to 23"));
  }

  TEST_CASE(
      "functions that kernels call are no programs of their own, and written-out loops are no pipelines") {
    const auto actions = actions_of(R"(import triton, triton.language as tl
@triton.jit
def helper(x):
    return x * 2
@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    for i in tl.static_range(4):
        tl.store(x_ptr + i, helper(tl.load(x_ptr + i)))
)");
    CHECK(has(actions, "tiling the kernel kernel in line 6 to 8") == false); // nobody launches it: a function
    CHECK(has(actions, "tiling the function kernel in line 6 to 8"));
    CHECK_FALSE(has(actions, "tiling the function helper in line 3 to 4"));
    CHECK_FALSE(has(actions, "pipelining the i loop of kernel in line 7 to 8"));
  }

  TEST_CASE("how it is done is said for programs") {
    const auto space = ActionSpace::extended();
    const auto structure = structure_of(softmax_text);
    const auto& tiling = *space.find("tiling");
    CHECK(tiling.principle_on(structure.find_region("softmax_kernel"), structure).find("tl.dot") !=
          std::string::npos);
    CHECK(tiling.principle_on(nullptr) == tiling.principle);
    const auto& fusion = *space.find("fusion");
    const auto* const run = structure.find_region("ModelNew/relu+launch:softmax_kernel+tanh");
    CHECK(fusion.principle_on(run, structure).find("epilogue") != std::string::npos);
  }
}

TEST_CASE("kernels of the C family are found as before, and hostile text breaks nothing") {
  const Kernel kernel{languages::cpp,
                      "void f(float* x, int n) {\n  for (int i = 0; i < n; ++i) x[i] *= 2;\n}\n"};
  CHECK(PythonRegionFinder{}.find({}, kernel).find_region("f/i") != nullptr);
  for (const std::string_view text :
       {"", "@triton.jit", "class M:\n def forward(self, x):\n  return x[", "\xff\xfe(",
        "@triton.jit\ndef k(p):\n  for i in range(\n    tl.load(p"})
    CHECK(structure_of(text).kernel_id.size() == 64);
}
