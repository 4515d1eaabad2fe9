#include <mtmc/analysis/python/python_parser.hpp>
#include <mtmc/analysis/python/triton_kernels.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

using namespace mtmc;

namespace {

TritonText read(std::string_view source) { return triton_text(parse_python(source), source); }

/// "load x masked in 0, ..." of a kernel's operations.
std::string told(const TritonKernel& kernel) {
  std::string text;
  for (const TritonOperation& one : kernel.operations) {
    text += (text.empty() ? "" : ", ") + one.name + ' ' + one.operand;
    if (one.masked) text += " masked";
    if (one.loop) text += " in " + std::to_string(*one.loop);
  }
  return text;
}

constexpr std::string_view product = R"(
import triton
import triton.language as tl

@triton.jit
def activation(x):
    return tl.where(x > 0, x, 0.0)

@triton.autotune(configs=[], key=["m"])
@triton.heuristics({"EVEN": lambda args: args["k"] % args["BLOCK_K"] == 0})
@triton.jit
def product(a, b, c, m, n, k, BLOCK_K: tl.constexpr, EVEN: tl.constexpr = True):
    row = tl.program_id(0)
    total = tl.zeros((16, 16), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        x = tl.load(a + step, mask=step < k)
        for part in tl.static_range(2):
            y = tl.load(b + part)
            total += tl.dot(x, y)
    while row < m:
        row += 1
    total = activation(total)
    tl.atomic_add(c, tl.sum(total, 0), row < m)
    tl.store(c + row, total)

def run(a, b, c):
    grid = lambda meta: (triton.cdiv(a.shape[0], meta["BLOCK_M"]),)
    product[grid](a, b, c, a.shape[0], n=1, k=2, BLOCK_K=32, num_warps=4)
    table["x"](1)
    return c
)";

} // namespace

TEST_CASE("kernels have parameters, some of them constants, and say how they are tuned") {
  const auto text = read(product);
  REQUIRE(text.kernels.size() == 2);
  CHECK(text.kernels[0].name == "activation");
  CHECK_FALSE(text.kernels[0].autotuned);
  const TritonKernel& kernel = text.kernels[1];
  CHECK(kernel.name == "product");
  CHECK(kernel.autotuned);
  CHECK(kernel.heuristics);
  REQUIRE(kernel.parameters.size() == 8);
  CHECK_FALSE(kernel.parameters[5].constant);
  CHECK(kernel.parameters[6] == TritonParameter{.name = "BLOCK_K", .constant = true});
  CHECK(kernel.parameters[7].default_value == "True");
  CHECK(kernel.calls == std::vector<std::string>{"activation"});
}

TEST_CASE("loops know what they go through and what they stand in") {
  const auto text = read(product);
  const auto& loops = text.kernels.at(1).loops;
  REQUIRE(loops.size() == 3);
  CHECK(loops[0].variable == "step");
  CHECK(loops[0].bounds == std::vector<std::string>{"0", "tl.cdiv(k, BLOCK_K)"});
  CHECK_FALSE(loops[0].outer.has_value());
  CHECK(loops[1].unrolled);
  CHECK(loops[1].outer == std::size_t{0});
  CHECK(loops[2].variable.empty());
  CHECK(loops[2].range.first_line == 20);
}

TEST_CASE("operations say what they touch, whether by a mask, and in which loop") {
  CHECK(told(read(product).kernels.at(1)) == "program_id 0, load a + step masked in 0, load b + part in 1, "
                                             "dot x in 1, atomic_add c masked, sum total, "
                                             "store c + row");
}

TEST_CASE("a launch has its grid, its arguments, and the function around it") {
  const auto text = read(product);
  REQUIRE(text.launches.size() == 1);
  const TritonLaunch& launch = text.launches.front();
  CHECK(launch.kernel == "product");
  CHECK(launch.grid == "grid");
  CHECK(launch.function == "run");
  CHECK(launch.arguments == std::vector<std::string>{"a", "b", "c", "a.shape[0]"});
  CHECK(launch.named == std::vector<std::string>{"n=1", "k=2", "BLOCK_K=32", "num_warps=4"});
}

TEST_CASE("the language has whatever name it is imported under, and other functions are none of it") {
  constexpr std::string_view body = "@triton.jit\ndef f(x):\n    L.store(x, other.load(x))\n";
  CHECK(told(read("import triton.language as L\n" + std::string(body)).kernels.at(0)) == "store x");
  CHECK(told(read("from triton import language as L\n" + std::string(body)).kernels.at(0)) == "store x");
  CHECK(told(read("from triton import jit, language as L\n" + std::string(body)).kernels.at(0)) == "store x");
  CHECK(told(read(body).kernels.at(0)).empty());
  CHECK(told(read("from triton.language import load as get, store\n@triton.jit\ndef f(x):\n    store(x, "
                  "get(x, None))\n")
                 .kernels.at(0)) == "store x, load x");
  CHECK(read("import triton as tr\n@tr.jit\ndef f(x): pass\n").kernels.size() == 1);
  CHECK(read("from triton import jit as compiled\n@compiled\ndef f(x): pass\n").kernels.size() == 1);
  CHECK(read("from numba import jit\n@jit\ndef f(x): pass\n").kernels.empty());
}

TEST_CASE("what a loop goes through is not in the loop, and words to the compiler are no bounds") {
  const auto text = read("@triton.jit\ndef f(p, n, B):\n    for i in tl.range(0, tl.load(n), B, "
                         "num_stages=3):\n        tl.store(value=i, pointer=p)\n"
                         "    else:\n        tl.store(p, 0, mask=None)\n");
  CHECK(told(text.kernels.at(0)) == "load n, store p in 0, store p");
  CHECK(text.kernels[0].loops.at(0).bounds == std::vector<std::string>{"0", "tl.load(n)", "B"});
}

TEST_CASE("texts without kernels, and broken ones, give what there is") {
  CHECK(read("") == TritonText{});
  CHECK(read("@numba.jit\ndef f(): pass\n").kernels.empty());
  for (std::size_t length = 0; length <= product.size(); ++length)
    CHECK(read(product.substr(0, length)).kernels.size() <= 2);
}
