// The rules policy on PyTorch modules and Triton kernels: what is computed together first, then how each
// kernel does it, and when to stop without a figure that says how much is left.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/python/python_region_finder.hpp>
#include <mtmc/policy/rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace mtmc;

namespace {

/// A module whose `__init__` and `forward` have these lines, of which the first of `forward` is line 10.
std::string module(std::string_view built, std::string_view computed) {
  return "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nclass Model(nn.Module):\n"
         "    def __init__(self, n):\n        super().__init__()\n" +
         (built.empty() ? std::string("        self.n = n\n") : std::string(built)) +
         "    def forward(self, x):\n" + std::string(computed);
}

const std::string linear = "        self.linear = nn.Linear(n, n)\n";
const std::string convolution = "        self.conv = nn.Conv2d(n, n, 3)\n";

/// What a policy sees of a text on a GPU, of which nothing was timed.
Observation seen_of(std::string_view text) {
  Observation seen;
  seen.task.name = "module";
  seen.device.kind = "gpu";
  seen.device.compute_units = 132;
  seen.kernel = {languages::triton, std::string(text)};
  seen.task.kernel = seen.kernel;
  seen.structure = PythonRegionFinder{}.find(seen.task, seen.kernel);
  return seen;
}

struct Choice {
  Action action;
  std::string reason;
};

Choice choice(const Observation& seen, const ActionSpace& space = ActionSpace::extended(),
              RulesPolicy policy = RulesPolicy{}) {
  const auto legal = space.legal_actions(seen.structure, seen.device);
  const auto answer = policy.distribution(seen, legal, {});
  const auto& all = answer.probabilities;
  return {legal[static_cast<std::size_t>(std::max_element(all.begin(), all.end()) - all.begin())],
          answer.rationale};
}
std::string first(std::string_view text) { return choice(seen_of(text)).action.text(); }

/// The weight of an action in relation to that of `stop`, which is 0.03 while there is something to try.
double wanted(const Observation& seen, std::string_view key) {
  const auto legal = ActionSpace::extended().legal_actions(seen.structure, seen.device);
  const auto all = RulesPolicy{}.distribution(seen, legal, {}).probabilities;
  for (std::size_t i = 0; i < legal.size(); ++i)
    if (legal[i].key() == key) return 0.03 * all[i] / all.back();
  FAIL_CHECK(std::string(key) << " is not offered");
  return -1;
}

HistoryEntry tried(std::string key, double speed_up, bool kept = false) {
  HistoryEntry entry;
  entry.action_key = std::move(key);
  entry.verdict = Verdict::correct;
  entry.speed_up = SpeedUp{speed_up, speed_up - 0.01, speed_up + 0.01};
  entry.kept = kept;
  return entry;
}

/// What a search sees: after an action of `gains` it goes on from the text there, others gain nothing.
std::vector<std::string> walk(std::string_view text,
                              const std::map<std::string, std::pair<std::string, double>>& gains,
                              const ActionSpace& space = ActionSpace::extended()) {
  std::vector<std::string> texts;
  std::set<std::string> kept_keys;
  auto seen = seen_of(text);
  constexpr int enough = 30;
  while (static_cast<int>(texts.size()) < enough) {
    const auto chosen = choice(seen, space).action;
    texts.push_back(chosen.text());
    if (chosen.kind == Action::Kind::stop) break;
    const auto found = gains.find(chosen.key());
    const bool gained = found != gains.end() && kept_keys.insert(chosen.key()).second;
    auto history = std::move(seen.history);
    history.push_back(tried(chosen.key(), gained ? found->second.second : 0.98, gained));
    if (gained) seen = seen_of(found->second.first);
    seen.history = std::move(history);
  }
  return texts;
}

using Texts = std::vector<std::string>;

/// A product, and a normalisation of what follows it.
const std::string tail_of_a_product =
    module(linear + "        self.norm = nn.LayerNorm(n)\n", "        h = self.linear(x)\n"
                                                             "        h = torch.square(h)\n"
                                                             "        h = torch.tanh(h)\n"
                                                             "        return self.norm(h)\n");

/// The same with a kernel for the tail.
constexpr std::string_view tail_in_a_kernel = R"(import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def tail_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_row = x_ptr + row * columns
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        x = tl.load(x_row + start + tl.arange(0, BLOCK))
        total += x * x
    mean = tl.sum(total, 0) / columns
    for start in range(0, columns, BLOCK):
        x = tl.load(x_row + start + tl.arange(0, BLOCK))
        tl.store(y_ptr + row * columns + start + tl.arange(0, BLOCK), tl.math.exp(x) - mean)

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x):
        h = self.linear(x)
        y = torch.empty_like(h)
        tail_kernel[(h.shape[0],)](h, y, h.shape[1], BLOCK=1024)
        return y
)";

/// The same with one kernel for all.
constexpr std::string_view product_in_a_kernel = R"(import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :])
        b = tl.load(b_ptr + inner[:, None] * N + columns[None, :])
        total += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total * total)

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n, n))

    def forward(self, x):
        y = torch.empty_like(x)
        product_kernel[(8, 8)](x, self.weight, y, 1024, 1024, 1024, BM=128, BN=128, BK=32)
        return y
)";

} // namespace

TEST_SUITE("rules for modules") {
  TEST_CASE("the longest chain of what goes over the same elements is fused first, as the paper says it") {
    const auto chosen = choice(seen_of(tail_of_a_product));
    CHECK(chosen.action.text() == "fusing the square, tanh and LayerNorm in line 12 to 14");
    CHECK(chosen.reason == "several intermediates go through memory between steps that one launch could do");
    CHECK(choice(seen_of(tail_of_a_product), ActionSpace::paper()).action.text() == chosen.action.text());
    CHECK(first(module("", "        x = torch.abs(x)\n        x = torch.exp(x)\n        x = torch.sin(x)\n"
                           "        x = torch.log1p(x)\n        return x.sum(dim=1)\n")) ==
          "fusing the abs, exp, sin, log1p and sum in line 10 to 14");
  }

  TEST_CASE("a product with its tail comes next, and where it begins rather than where it ends") {
    CHECK(first(module(linear, "        x = self.linear(x)\n        return torch.sin(x)\n")) ==
          "fusing the Linear and sin in line 10 to 11");
    const auto both = seen_of(module(linear + "        self.other = nn.Linear(n, n)\n",
                                     "        x = self.linear(x)\n        x = torch.sin(x)\n"
                                     "        return self.other(x)\n"));
    CHECK(choice(both).action.text() == "fusing the Linear and sin in line 11 to 12");
    CHECK(wanted(both, "fusion|Model/Linear+sin") > wanted(both, "fusion|Model/sin+Linear#2"));
    CHECK(wanted(both, "fusion|Model/sin+Linear#2") > wanted(both, "tiling|Model/Linear"));
  }

  TEST_CASE("convolutions are left to the library: what follows them is fused without them") {
    const auto text = module(convolution, "        x = self.conv(x)\n        x = torch.sin(x)\n"
                                          "        x = torch.exp(x)\n        return x\n");
    CHECK(first(text) == "fusing the sin and exp in line 11 to 12");
    const auto alone =
        choice(seen_of(module(convolution, "        x = self.conv(x)\n        return torch.sin(x)\n")));
    CHECK(alone.action.text() == "fusing the Conv2d and sin in line 10 to 11");
    CHECK(alone.reason ==
          "the library's convolution is hard to beat, even with what follows it done on the way");
    INFO("a convolution alone is hardly worth a try, a product alone a little more");
    CHECK(wanted(seen_of(module(convolution, "        return self.conv(x)\n")), "tiling|Model/Conv2d") <
          0.06);
    CHECK(wanted(seen_of(module(linear, "        return self.linear(x)\n")), "tiling|Model/Linear") < 0.2);
  }

  TEST_CASE("what needs the statistics of a batch is fused last") {
    const auto seen = seen_of(module(linear + "        self.norm = nn.BatchNorm1d(n)\n",
                                     "        x = self.linear(x)\n        x = torch.sin(x)\n"
                                     "        return self.norm(x)\n"));
    CHECK(choice(seen).action.text() == "fusing the Linear and sin in line 11 to 12");
    CHECK(wanted(seen, "fusion|Model/sin+BatchNorm1d") > wanted(seen, "fusion|Model/Linear+sin+BatchNorm1d"));
  }

  TEST_CASE("a statement alone: several passes, or several operators, become one kernel") {
    CHECK(first(module("", "        return torch.softmax(x, dim=1)\n")) == "tiling the softmax in line 10");
    CHECK(first(module("", "        return torch.cumsum(x, dim=1)\n")) == "scanning the cumsum in line 10");
    const auto several = choice(seen_of(module("", "        return torch.sin(x) * x + torch.exp(x)\n")));
    CHECK(several.action.optimization == "tiling");
    CHECK(several.reason ==
          "each operator of the statement goes through memory, and one kernel could do them all");
    CHECK(first(module("", "        return x.sum(dim=1)\n")) == "tiling the sum in line 10");
  }

  TEST_CASE("a single pass over memory hardly gains: one try at most each, then stop") {
    const auto texts = walk(module("", "        return torch.sin(x)\n"), {}, ActionSpace::paper());
    CHECK(texts == Texts{"tiling the sin in line 10", "stop"});
    CHECK(first(module("", "        return x.view(-1, 8).transpose(0, 1)\n")) == "stop");
  }

  TEST_CASE(
      "a run that gained nothing makes runs with a member of it less wanted, others as much as before") {
    auto seen = seen_of(module(linear, "        a = torch.sin(x)\n        a = torch.exp(a)\n"
                                       "        a = torch.cos(a)\n        b = self.linear(a)\n"
                                       "        b = torch.tanh(b)\n        return torch.abs(b)\n"));
    const std::string longest = "fusion|Model/sin+exp+cos";
    CHECK(choice(seen).action.key() == longest);
    const double part = wanted(seen, "fusion|Model/sin+exp");
    const double other = wanted(seen, "fusion|Model/tanh+abs");
    seen.history = {tried(longest, 0.9)};
    CHECK(wanted(seen, longest) == doctest::Approx(0.5 * (0.94 + 0.04 / 2)));
    CHECK(wanted(seen, "fusion|Model/sin+exp") == doctest::Approx(0.7 * part));
    CHECK(wanted(seen, "fusion|Model/tanh+abs") == doctest::Approx(other));
    CHECK(choice(seen).action.key() == "fusion|Model/tanh+abs");
    seen.history.front() = tried(longest, 1.5, true);
    CHECK(wanted(seen, longest) == doctest::Approx(0.3 * (0.94 + 0.04 / 2)));
    CHECK(wanted(seen, "fusion|Model/sin+exp") == doctest::Approx(part));
  }
}

TEST_SUITE("rules for Triton kernels") {
  TEST_CASE("further launches are fused before a kernel is tuned") {
    const auto seen = seen_of(tail_in_a_kernel);
    CHECK(choice(seen).action.text() == "fusing the Linear and tail_kernel in line 25 to 27");
    CHECK(choice(seen).reason == "a product goes through memory before what follows works on it");
    CHECK(wanted(seen, "retention|tail_kernel/start+start") > wanted(seen, "online|tail_kernel/start+start"));
    CHECK(wanted(seen, "online|tail_kernel/start+start") > wanted(seen, "tiling|tail_kernel"));
    CHECK(wanted(seen, "tiling|tail_kernel") > wanted(seen, "strength_reduction|tail_kernel/start#2"));
    CHECK(wanted(seen, "strength_reduction|tail_kernel/start#2") >
          wanted(seen, "splitting|tail_kernel/start"));
  }

  TEST_CASE("a kernel of products: blocks, pipelining, order of programs, persistence") {
    const auto seen = seen_of(product_in_a_kernel);
    CHECK(choice(seen).action.text() == "tiling the kernel product_kernel in line 7 to 16");
    CHECK(wanted(seen, "tiling|product_kernel") > wanted(seen, "pipeline|product_kernel/k"));
    CHECK(wanted(seen, "pipeline|product_kernel/k") > wanted(seen, "reordering|product_kernel"));
    CHECK(wanted(seen, "reordering|product_kernel") > wanted(seen, "persistence|product_kernel"));
    CHECK(wanted(seen, "persistence|product_kernel") > wanted(seen, "splitting|product_kernel/k"));
  }

  TEST_CASE("blocks that a kernel tries by itself are of less interest") {
    std::string text(product_in_a_kernel);
    text.insert(text.find("@triton.jit"), "@triton.autotune(configs=[], key=['N'])\n");
    CHECK(first(text) == "pipelining the k loop of product_kernel in line 12 to 16");
  }

  TEST_CASE("statements whose functions launch kernels are what these compute") {
    std::string text(product_in_a_kernel);
    const std::string forward = "    def forward(self, x):\n";
    const auto launch = text.substr(text.find(forward) + forward.size());
    text.resize(text.find("class Model"));
    text += "def product(x):\n" + launch +
            "\nclass Model(nn.Module):\n    def forward(self, x):\n        x = product(x)\n"
            "        return torch.sin(x)\n";
    const auto seen = seen_of(text);
    CHECK(choice(seen).action.text() == "fusing the product and sin in line 25 to 26");
    CHECK(wanted(seen, "fusion|Model/product+sin") == doctest::Approx(0.88));
  }
}

TEST_SUITE("rules for programs: the way of a search") {
  const std::map<std::string, std::pair<std::string, double>> fused{
      {"fusion|Model/square+tanh+LayerNorm", {std::string(tail_in_a_kernel), 1.4}},
      {"fusion|Model/Linear+launch:tail_kernel", {std::string(product_in_a_kernel), 1.2}}};

  TEST_CASE("it fuses, tunes, and stops when the last steps gained nothing, without repeating itself") {
    auto gains = fused;
    gains["tiling|product_kernel"] = {std::string(product_in_a_kernel), 1.1};
    const auto texts = walk(tail_of_a_product, gains);
    CHECK(texts == Texts{"fusing the square, tanh and LayerNorm in line 12 to 14",
                         "fusing the Linear and tail_kernel in line 25 to 27",
                         "tiling the kernel product_kernel in line 7 to 16",
                         "pipelining the k loop of product_kernel in line 11 to 15",
                         "reordering the kernel product_kernel in line 7 to 16",
                         "keeping alive the blocks of the kernel product_kernel in line 7 to 16", "stop"});
  }

  TEST_CASE("it stops after a few tries where nothing gains, and where all gained once no more does") {
    const auto nothing = walk(tail_of_a_product, {});
    CHECK(nothing.size() <= 6);
    CHECK(nothing.back() == "stop");
    auto gains = fused;
    const auto seen = seen_of(product_in_a_kernel);
    const auto legal = ActionSpace::extended().legal_actions(seen.structure, seen.device);
    for (const auto& action : legal)
      if (action.kind != Action::Kind::stop) gains[action.key()] = {std::string(product_in_a_kernel), 1.1};
    const auto all = walk(tail_of_a_product, gains);
    CHECK(all.back() == "stop");
    INFO("an action that was kept may be taken up once more");
    for (const auto& action : all) CHECK(std::count(all.begin(), all.end(), action) <= 2);
  }

  TEST_CASE("chains that are left keep it going, however little the last steps gained") {
    auto seen = seen_of(module(linear, "        a = torch.sin(x)\n        a = torch.exp(a)\n"
                                       "        b = self.linear(a)\n"
                                       "        b = torch.tanh(b)\n        return torch.abs(b)\n"));
    seen.history = {tried("tiling|Model/sin", 0.9), tried("tiling|Model/exp", 0.9),
                    tried("tiling|Model/Linear", 0.9), tried("fusion|Model/sin+exp", 0.9)};
    CHECK(choice(seen).action.key() == "fusion|Model/tanh+abs");
    seen.history.push_back(tried("fusion|Model/tanh+abs", 0.9));
    const auto last = choice(seen);
    CHECK(last.action.kind == Action::Kind::stop);
    CHECK(last.reason == "the last steps gained nothing, and nothing is left to fuse");
  }

  TEST_CASE("steps that nobody timed count by what was kept") {
    auto seen = seen_of(product_in_a_kernel);
    for (const auto* const key :
         {"tiling|product_kernel", "pipeline|product_kernel/k", "reordering|product_kernel"}) {
      seen.history.push_back(tried(key, 1, true));
      seen.history.back().speed_up.reset();
    }
    CHECK(choice(seen).action.key() == "persistence|product_kernel");
    for (auto& entry : seen.history) entry.kept = false;
    CHECK(choice(seen).action.kind == Action::Kind::stop);
  }
}

TEST_SUITE("rules for programs: what was measured") {
  /// A text with 2 MiB in and out, on a device that needs 1 ms for them.
  Observation timed(std::string_view text, double seconds, DataType type = DataType::f16) {
    auto seen = seen_of(text);
    Argument argument;
    argument.name = "x";
    argument.type = type;
    argument.shape = {"1048576"};
    seen.task.arguments.push_back(argument);
    argument.name = "y";
    argument.role = ArgumentRole::output;
    seen.task.arguments.push_back(argument);
    seen.task.sizes = {{{}, 1}};
    seen.device.measured.read_bandwidth = 2.0 * static_cast<double>(size_of(type)) * 1048576 / 1e-3;
    seen.device.measured.f32_rate = 1e12;
    seen.evaluation.emplace();
    seen.evaluation->verdict = Verdict::correct;
    seen.evaluation->seconds = seconds;
    return seen;
  }

  TEST_CASE(
      "a call far from its bound is written anew while torch does all of it, then fused, and left when it is "
      "there") {
    auto far = timed(tail_of_a_product, 0.1);
    CHECK(choice(far).action.key() == "rewriting|Model/Linear+square+tanh+LayerNorm");
    CHECK(choice(far).reason == "torch does all of these steps, and the call is far from what the task needs "
                                "at least; memory-bound, 1 % of the bound reached");
    far.history = {tried("rewriting|Model/Linear+square+tanh+LayerNorm", 0.9)};
    CHECK(choice(far).action.text() == "fusing the square, tanh and LayerNorm in line 12 to 14");
    const auto partly = timed(tail_in_a_kernel, 0.1);
    CHECK(choice(partly).action.key() == "fusion|Model/Linear+launch:tail_kernel");
    const auto sum = timed(module("", "        return x.sum(dim=1)\n"), 0.1);
    CHECK(choice(sum).action.optimization == "rewriting");
    const auto near = choice(timed(tail_of_a_product, 0.00105));
    CHECK(near.action.kind == Action::Kind::stop);
    CHECK(near.reason.starts_with("the bound of the device is nearly reached"));
  }

  TEST_CASE(
      "the library's product in f32 stays, since a kernel's has no matrix units; what follows is fused") {
    auto seen = timed(tail_in_a_kernel, 0.1, DataType::f32);
    CHECK(wanted(seen, "fusion|Model/Linear+launch:tail_kernel") == doctest::Approx(0.35));
    seen = timed(tail_of_a_product, 0.1, DataType::f32);
    seen.history = {tried("rewriting|Model/Linear+square+tanh+LayerNorm", 0.9)};
    CHECK(choice(seen).action.text() == "fusing the square, tanh and LayerNorm in line 12 to 14");
    CHECK(wanted(seen, "fusion|Model/Linear+square") == doctest::Approx(0.35));
  }

  TEST_CASE("times of launches decide what is tuned, and take nothing from fusing") {
    auto seen = timed(tail_in_a_kernel, 0.1);
    seen.evaluation->launches = {{"gemm", 25, 0.06, {}, {}}, {"tail_kernel@1234567890ab", 27, 0.04, {}, {}}};
    const auto chosen = choice(seen);
    CHECK(chosen.action.key() == "fusion|Model/Linear+launch:tail_kernel");
    CHECK(wanted(seen, "retention|tail_kernel/start+start") > 0.3);
    INFO("a kernel that takes next to none of the time is left alone");
    seen.evaluation->launches[0].seconds = 0.0995;
    seen.evaluation->launches[1].seconds = 0.0005;
    CHECK(wanted(seen, "retention|tail_kernel/start+start") == 0);
    INFO("launches that are found nowhere in the text end nothing");
    seen.evaluation->launches = {{"a", 0, 0.06, {}, {}}, {"b", 0, 0.04, {}, {}}};
    CHECK(choice(seen).action.key() == "fusion|Model/Linear+launch:tail_kernel");
  }
}

TEST_CASE(
    "rules for programs: every type that is offered in Python has rows, the last of which holds for all") {
  const std::set<std::string> elsewhere{"unrolling", "vectorization",      "parallelization", "packing",
                                        "hoisting",  "scalar_replacement", "fission"};
  for (const auto& type : ActionSpace::extended().types) {
    CAPTURE(type.id);
    const Rule* last = nullptr;
    for (const auto& rule : default_program_rules())
      if (rule.optimization == type.id) last = &rule;
    CHECK((last == nullptr) == elsewhere.contains(type.id));
    if (last == nullptr) continue;
    CHECK(last->holds(Region{}, Situation{}));
    CHECK_FALSE(last->reason.empty());
  }
}

TEST_CASE("rules for programs: a host's own table decides there, too") {
  const auto seen = seen_of(tail_of_a_product);
  const auto holds = [](const Region&, const Situation&) { return true; };
  const std::vector<Rule> never{{"fusion", holds, 0, "no"}, {"tiling", holds, 0.5, "yes"}};
  const auto paper = ActionSpace::paper();
  CHECK(choice(seen, paper, RulesPolicy({}, never)).action.optimization == "tiling");
  CHECK(choice(seen, paper, RulesPolicy({}, default_rules(), never)).action.optimization == "tiling");
  CHECK(choice(seen, paper, RulesPolicy({}, never, never, default_program_rules())).action.optimization ==
        "fusion");
  CHECK(RulesPolicy({}, never).identity() != RulesPolicy{}.identity());
}
