#include <mtmc/analysis/python/configured_text.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;

TEST_CASE("the configuration that was found fastest is written into a module's text") {
  const std::string before = R"(import triton

@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 64}, num_warps=4),
        triton.Config({"BLOCK": 128}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def chain(x, n, BLOCK: tl.constexpr):
    pass
)";
  CHECK_EQ(with_configurations(before,
                               "chain: BLOCK: 128, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: None"),
           R"(import triton

@triton.autotune(
    configs=[triton.Config({"BLOCK": 128}, num_warps=8, num_ctas=1, num_stages=3)],
    key=["n"],
)
@triton.jit
def chain(x, n, BLOCK: tl.constexpr):
    pass
)");
  CHECK_EQ(with_configurations(before, "another: BLOCK: 128"), before);
  CHECK_EQ(with_configurations(before, "chain: ACTIVATION: relu"), before);
  CHECK_EQ(with_configurations(before, ""), before);
}

TEST_CASE("configurations that a comprehension makes are written, too, those of several kernels each") {
  const std::string before = R"(
@triton.autotune([triton.Config({"B": b, "EVEN": e}) for b in sizes for e in (True, False)], key=[])
@triton.jit
def first(x):
    pass


@triton.autotune(configs=made(pre_hook=clear), key=[])
@triton.jit
def second(x):
    pass


@autotune(key=[], configs=sizes)
@triton.jit
def third(x):
    pass
)";
  const auto after =
      with_configurations(before, "first: B: 16, EVEN: True; second: B: 1; third: B: 2, num_warps: 1");
  CHECK(after.find("@triton.autotune([triton.Config({\"B\": 16, \"EVEN\": True})], key=[])") !=
        std::string::npos);
  CHECK(after.find("@triton.autotune(configs=made(pre_hook=clear), key=[])") != std::string::npos);
  CHECK(after.find("@autotune(key=[], configs=[triton.Config({\"B\": 2}, num_warps=1)])") !=
        std::string::npos);
}
