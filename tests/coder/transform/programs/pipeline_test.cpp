#include <mtmc/coder/transform/programs/pipeline.hpp>

#include <doctest/doctest.h>

#include <string>

#include "program_draft.hpp"
#include "program_texts.hpp"

using namespace mtmc;
using namespace mtmc::testing;
using program_texts::product;
using program_texts::sums;

namespace {

constexpr const char* of_product = "pipeline|product/k0";
constexpr const char* of_sums = "pipeline|sums/start";

} // namespace

TEST_CASE("a loop with products gets its stages at the launch") {
  CHECK(text_after(product, of_product) == with(product, "BK=32)", "BK=32, num_stages=4)"));
  CHECK(text_after(product, of_product, 1) == with(product, "BK=32)", "BK=32, num_stages=2)"));
  CHECK(text_after(product, of_product, 2) == with(product, "BK=32)", "BK=32, num_stages=5)"));
  CHECK(why_not(product, of_product, 3) == "no further variant: there are 3"); // three are what it has
}

TEST_CASE("any other loop has them in its range") {
  CHECK(text_after(sums, of_sums) ==
        with(sums, "range(0, columns, BLOCK)", "tl.range(0, columns, BLOCK, num_stages=3)"));
  CHECK(text_after(sums, of_sums, 3) ==
        with(sums, "range(0, columns, BLOCK)", "tl.range(0, columns, BLOCK, num_stages=5)"));
  CHECK(why_not(sums, of_sums, 4) == "no further variant: there are 4");
  const auto renamed = with(with(sums, "triton.language as tl", "triton.language as lang"), "tl.", "lang.");
  CHECK(text_after(renamed, of_sums) ==
        with(renamed, "range(0, columns, BLOCK)", "lang.range(0, columns, BLOCK, num_stages=3)"));
}

TEST_CASE("stages that are there become others") {
  const auto ranged = with(product, "range(0, K, BK)", "tl.range(0, K, BK, num_stages=2)");
  CHECK(text_after(ranged, of_product) == with(ranged, "num_stages=2", "num_stages=4"));
  CHECK(text_after(ranged, of_product, 1) == with(ranged, "num_stages=2", "num_stages=3"));
  const auto launched = with(product, "BK=32)", "BK=32, num_warps=8, num_stages=4)");
  CHECK(text_after(launched, of_product) == with(launched, "num_stages=4", "num_stages=3"));
}

TEST_CASE("all launches of the kernel get them, and what stands between their arguments stays") {
  const auto twice =
      with(product, "        return c\n", R"(        product[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
            a, b, c,
            M, N, K,
            BM=64, BN=64, BK=32,  # once more
        )
        return c
)");
  const auto after = text_after(twice, of_product);
  CHECK(after.find("M, N, K, BM=64, BN=64, BK=32, num_stages=4)\n") != std::string::npos);
  CHECK(after.find("            BM=64, BN=64, BK=32, num_stages=4,  # once more\n        )\n") !=
        std::string::npos);
}

TEST_CASE("the same request gives the same draft, and only what may be written is said to be") {
  CHECK(draft_of_text(product, of_product) == draft_of_text(product, of_product));
  const TransformCoder coder;
  CHECK(coder.writes("pipeline", languages::triton));
  CHECK(!coder.writes("prayer", languages::triton));
  CHECK(!coder.writes("pipeline", languages::pytorch));
  auto request = program_request(product, of_product);
  Action other = request.action;
  other.region = "product";
  CHECK(coder.feasible_actions(request, {request.action, other, Action::stop()}) ==
        std::vector<Action>{request.action, Action::stop()});
}

TEST_CASE("what cannot have stages is declined with the reason") {
  CHECK(why_not(product, "pipeline|product") == "\"product\" names no loop");
  CHECK(why_not(product, "pipeline|product/z") == "the kernel has no region \"product/z\"");
  CHECK(why_not(product, "pipeline|launch:product") == "\"launch:product\" is no part of a kernel");
  CHECK(why_not(with(product, "range(0, K, BK)", "tl.static_range(0, 128, BK)"), of_product) ==
        "the compiler writes the loop out");
  CHECK(why_not(with(product, "@triton.jit",
                     "@triton.autotune(configs=[triton.Config({\"BK\": 32})], key=[\"K\"])\n@triton.jit"),
                of_product) == "the configurations that product is autotuned over are all judged anyway");
  CHECK(why_not(with(product, "@triton.jit", "@triton.heuristics({\"BK\": lambda a: 32})\n@triton.jit"),
                of_product) == "constants of product are computed by @triton.heuristics");
  CHECK(why_not(with(product, "@triton.jit", "@remember\n@triton.jit"), of_product) ==
        "product has other decorators than triton.jit");
  CHECK(why_not(with(product, "BK=32)", "**sizes)"), of_product) ==
        "the launch in line 25 takes arguments from **sizes");
  CHECK(why_not(with(product, "BK=32)", "BK=32, num_stages=stages)"), of_product) ==
        "num_stages is computed in line 25");
  CHECK(why_not(with(product, "BK: tl.constexpr", "BK: tl.constexpr, num_stages: tl.constexpr"),
                of_product) == "num_stages is a parameter of product");
  CHECK(why_not(with(product, "        product[(", "        product.run[("), of_product) ==
        "product is not launched by its name");
  CHECK(why_not(product + "\nother = product\n", of_product) == "product is used elsewhere than in launches");
  CHECK(why_not(with(sums, "tl.load(x + row + at,", "tl.where(at > 0, at,"), of_sums) ==
        "the loop loads nothing");
  CHECK(why_not(with(sums, "        total +=", "        tl.store(x + row + at, total)\n        total +="),
                of_sums) == "an iteration may load from x what an earlier one has stored");
  const auto storing =
      with(sums, "        total +=", "        tl.store(out + row + at, total)\n        total +=");
  CHECK(draft_of_text(storing, of_sums).kernel);
  CHECK(why_not(with(storing, "](x, out,", "](x, x,"), of_sums) ==
        "out and x are the same tensor in line 21");
  const auto bare =
      with(with(sums, "import triton.language as tl", "from triton.language import *"), "tl.", "");
  CHECK(why_not(bare, of_sums) == "the text gives triton.language no name");
}

TEST_CASE("a text that was not understood is declined") {
  CHECK(why_not(product + "\nmatch product:\n    case 1:\n        pass\n", of_product) ==
        "the text in line 28 was not understood");
  CHECK(why_not("def broken(:\n    pass\n", of_product) == "the text in line 1 was not understood");
  CHECK(why_not("", of_product) == "the kernel has no region \"product/k0\"");
}
