#include <mtmc/coder/transform/programs/tiling.hpp>

#include <doctest/doctest.h>

#include <string>

#include "program_draft.hpp"
#include "program_texts.hpp"

using namespace mtmc;
using namespace mtmc::testing;
using program_texts::elementwise;
using program_texts::numbered;
using program_texts::product;
using program_texts::sums;

namespace {

constexpr const char* of_product = "tiling|product";
constexpr const char* of_numbered = "tiling|numbered";
constexpr const char* of_sums = "tiling|sums";
constexpr const char* of_elements = "tiling|scaled";

/// What stands in a text behind the first occurrence of a word, up to a line's end.
std::string line_with(const std::string& text, std::string_view word) {
  const auto at = text.find(word);
  REQUIRE(at != std::string::npos);
  return text.substr(at, text.find('\n', at) - at);
}

/// The number that a variant of the elementwise text gives its blocks, and what else its launch says.
std::string launch_after(const std::string& text, std::string_view key, int sample = 0) {
  return line_with(text_after(text, key, sample), "BLOCK=");
}

} // namespace

TEST_CASE("blocks of a product get sizes that are usually good, at launch and grid, with their warps") {
  CHECK(text_after(product, of_product) ==
        with(with(with(product, "cdiv(M, 64)", "cdiv(M, 128)"), "cdiv(N, 64)", "cdiv(N, 128)"),
             "BM=64, BN=64, BK=32)", "BM=128, BN=128, BK=32, num_warps=8)"));
  CHECK(text_after(product, of_product, 1) ==
        with(with(product, "cdiv(M, 64)", "cdiv(M, 128)"), "BM=64", "BM=128"));
  CHECK(text_after(numbered, of_numbered) == with(numbered, "BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, num_warps=4",
                                                  "BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, num_warps=8"));
}

TEST_CASE("blocks of elements get about as many as fit a program") {
  CHECK(text_after(elementwise, of_elements) ==
        with(with(elementwise, "total, 256)", "total, 1024)"), "BLOCK=256)", "BLOCK=1024)"));
  CHECK(launch_after(elementwise, of_elements, 1) == "BLOCK=512, num_warps=2)");
  CHECK(launch_after(sums, of_sums) == "BLOCK=2048, num_warps=8)");
}

TEST_CASE("then warps change alone, until variants are used up") {
  int sample = 0;
  std::string last;
  while (draft_of_text(sums, of_sums, sample).kernel) last = launch_after(sums, of_sums, sample++);
  CHECK(sample == 10);
  CHECK(last == "BLOCK=1024, num_warps=1)");
  CHECK(why_not(sums, of_sums, sample) == "no further variant: there are 10");
  // Computed ones stay.
  const auto computed = with(sums, "BLOCK=1024)", "BLOCK=1024, num_warps=warps)");
  CHECK(launch_after(computed, of_sums) == "BLOCK=2048, num_warps=warps)");
  CHECK(why_not(computed, of_sums, 6) == "no further variant: there are 6");
}

TEST_CASE("a size may have a name, in the function or the module, which is all that changes") {
  const auto local =
      with(with(with(elementwise, "        out =", "        size = 256  # elements\n        out ="),
                "total, 256)", "total, size)"),
           "BLOCK=256", "BLOCK=size");
  CHECK(text_after(local, of_elements) == with(local, "size = 256 ", "size = 1024 "));
  const auto global = with(with(with(elementwise, "@triton.jit", "SIZE = 256\n\n\n@triton.jit"),
                                "triton.cdiv(total, 256)", "(total + SIZE - 1) // SIZE"),
                           "BLOCK=256", "BLOCK=SIZE");
  CHECK(text_after(global, of_elements) == with(global, "SIZE = 256", "SIZE = 1024"));
  CHECK(why_not(with(local, "return out", "return out[:size]"), of_elements) ==
        "size is also used in line 20");
  CHECK(why_not(with(local, "        out =", "        size = size * 2\n        out ="), of_elements) ==
        "BLOCK is no number that the text says in line 20");
}

TEST_CASE("a default of the parameter and grids of many forms change, too") {
  const auto standing =
      with(with(elementwise, "BLOCK: tl.constexpr", "BLOCK: tl.constexpr = 256"), ", BLOCK=256)", ")");
  CHECK(text_after(standing, of_elements) ==
        with(with(standing, "constexpr = 256", "constexpr = 1024"), "total, 256)", "total, 1024)"));
  const auto named =
      with(with(elementwise, "        scaled[(triton.cdiv(total, 256),)]",
                "        blocks = triton.cdiv(total, 256)\n        grid = (blocks,)\n        scaled[grid]"),
           "return out", "return out");
  CHECK(line_with(text_after(named, of_elements), "blocks =") == "blocks = triton.cdiv(total, 1024)");
  const auto by_meta =
      with(elementwise, "(triton.cdiv(total, 256),)", "lambda META: (triton.cdiv(total, META['BLOCK']),)");
  CHECK(text_after(by_meta, of_elements) == with(by_meta, "BLOCK=256)", "BLOCK=1024)"));
}

TEST_CASE("two blocks of the same number are told apart by the ends of their axes, or change together") {
  const auto one_axis =
      with(product, "(triton.cdiv(M, 64), triton.cdiv(N, 64))", "(triton.cdiv(M, 64) * triton.cdiv(N, 64),)");
  const auto taken_apart =
      with(with(one_axis, "m = tl.program_id(0)", "m = tl.program_id(0) // tl.cdiv(N, BN)"),
           "n = tl.program_id(1)", "n = tl.program_id(0) % tl.cdiv(N, BN)");
  const auto wider = text_after(taken_apart, of_product, 1);
  CHECK(line_with(wider, "product[") ==
        "product[(triton.cdiv(M, 128) * triton.cdiv(N, 64),)](a, b, c, M, N, K, BM=128, BN=64, BK=32)");
  // Both axes end at the same n.
  const auto square =
      with(with(with(taken_apart, "cdiv(M, 64)", "cdiv(n, 64)"), "cdiv(N, 64)", "cdiv(n, 64)"), "c, M, N, K",
           "c, n, n, n");
  CHECK(line_with(text_after(square, of_product, 1), "product[") ==
        "product[(triton.cdiv(n, 128) * triton.cdiv(n, 128),)](a, b, c, n, n, n, BM=128, BN=128, BK=64, "
        "num_warps=8)");
}

TEST_CASE("they are still told apart when the order of programs was changed") {
  const auto grouped = text_after(product, "reordering|product");
  CHECK(line_with(text_after(grouped, of_product, 1), "product[") ==
        "product[(triton.cdiv(M, 128), triton.cdiv(N, 64))](a, b, c, M, N, K, BM=128, BN=64, BK=32)");
}

TEST_CASE("sizes that other launches share are changed with theirs") {
  const auto twice =
      with(elementwise, "        return out",
           "        scaled[(triton.cdiv(total, 512),)](out, out, total, BLOCK=512)\n        return out");
  const auto after = text_after(twice, of_elements);
  CHECK(after.find("256") == std::string::npos);
  CHECK(after.find("(triton.cdiv(total, 1024),)](out, out, total, BLOCK=1024") != std::string::npos);
  CHECK(after.find("(triton.cdiv(total, 1024),)](x, out, total, BLOCK=1024") != std::string::npos);
}

TEST_CASE("where a kernel is only right for whole blocks, they only become smaller") {
  const auto unmasked = with(with(sums, ", mask=at < columns, other=0.0", ""), "BLOCK=1024", "BLOCK=512");
  CHECK(launch_after(unmasked, of_sums) == "BLOCK=256, num_warps=1)");
  // What is behind the end would count: exp(0) is 1, but exp(-inf) is 0.
  const auto of_exponentials = with(sums, "total += tl.load(x + row + at, mask=at < columns, other=0.0)",
                                    "total += tl.exp(tl.load(x + row + at, mask=at < columns, other=0.0))");
  CHECK(launch_after(of_exponentials, of_sums) == "BLOCK=512, num_warps=2)");
  CHECK(launch_after(with(of_exponentials, "other=0.0", "other=float(\"-inf\")"), of_sums) ==
        "BLOCK=2048, num_warps=8)");
  CHECK(launch_after(with(sums, "other=0.0", "other=1.0"), of_sums) == "BLOCK=512, num_warps=2)");
  CHECK(launch_after(with(sums, ", other=0.0", ""), of_sums) == "BLOCK=512, num_warps=2)");
  // A largest one of nothing is -inf.
  const auto largest =
      with(with(with(sums, "tl.zeros([BLOCK], tl.float32)", "tl.full([BLOCK], float(\"-inf\"), tl.float32)"),
                "total += tl.load(x + row + at, mask=at < columns, other=0.0)",
                "total = tl.maximum(total, tl.load(x + row + at, mask=at < columns, other=float(\"-inf\")))"),
           "tl.sum(", "tl.max(");
  CHECK(launch_after(largest, of_sums) == "BLOCK=2048, num_warps=8)");
  CHECK(launch_after(with(largest, "other=float(\"-inf\")", "other=0.0"), of_sums) ==
        "BLOCK=512, num_warps=2)");
}

TEST_CASE("what counts elements block by block may count those behind the end") {
  const auto counted = with(with(sums, "    for start", "    count = 0\n    for start"),
                            "        total +=", "        count += BLOCK\n        total +=");
  CHECK(why_not(counted, of_sums) == "BLOCK is used for more than blocks in line 14");
  const auto next = with(with(sums, "range(0, columns, BLOCK)", "range(tl.cdiv(columns, BLOCK))"),
                         "at = start +", "seen = (start + 1) * BLOCK\n        at = start * BLOCK +");
  CHECK(launch_after(next, of_sums) == "BLOCK=512, num_warps=2)");
}

TEST_CASE("a condition that blocks fill the axis stands for a mask") {
  const auto even =
      with(sums, "        total +=",
           "        if columns % BLOCK == 0:\n            total += tl.load(x + row + at)\n        total +=");
  // Its sum is another one behind the end, but none is read there.
  CHECK(draft_of_text(even, of_sums).kernel);
  const auto stored = with(elementwise, "    v = tl.load(x + at, mask=at < total)\n",
                           "    EVEN: tl.constexpr = total % BLOCK == 0\n    v = tl.load(x + at) if EVEN "
                           "else tl.load(x + at, mask=at < total)\n");
  CHECK(launch_after(stored, of_elements) == "BLOCK=1024)");
}

TEST_CASE("a block that covers an axis whole stays, and only warps change") {
  const auto whole =
      with(with(with(sums, "range(0, columns, BLOCK)", "range(0, 1)"), "at = start + ", "at = "),
           "BLOCK=1024", "BLOCK=triton.next_power_of_2(x.shape[1])");
  CHECK(text_after(whole, of_sums) == with(whole, "(x.shape[1]))", "(x.shape[1]), num_warps=8)"));
  CHECK(why_not(whole, of_sums, 4) == "no further variant: there are 4");
  const auto number = with(whole, "triton.next_power_of_2(x.shape[1])", "4096");
  CHECK(text_after(number, of_sums) == with(number, "4096)", "4096, num_warps=8)"));
}

TEST_CASE("what was not recognised is declined with the reason") {
  CHECK(why_not(sums, "tiling|sums/start") == "\"sums/start\" is no kernel whose blocks have sizes");
  CHECK(why_not(with(elementwise, "tl.arange(0, BLOCK)", "tl.arange(0, 256)"), of_elements) ==
        "scaled has no blocks whose size is a parameter");
  CHECK(why_not(with(elementwise, "triton.cdiv(total, 256)", "triton.cdiv(total, 128)"), of_elements) ==
        "the grid in line 18 is not divided by BLOCK");
  CHECK(why_not(with(elementwise, "(triton.cdiv(total, 256),)", "grid_of(total)"), of_elements) ==
        "the grid in line 18 was not recognised");
  CHECK(why_not(with(elementwise, "BLOCK=256", "BLOCK=size_for(x)"), of_elements) ==
        "BLOCK is no number that the text says in line 18");
  CHECK(why_not(with(elementwise, "BLOCK=256", "BLOCK=100"), of_elements) ==
        "BLOCK is no number that the text says in line 18");
  CHECK(why_not(with(elementwise, "2.0 * v", "BLOCK * v"), of_elements) ==
        "BLOCK is multiplied with a block in line 11");
  CHECK(why_not(with(elementwise, "2.0 * v", "BLOCK * 2.0"), of_elements) ==
        "BLOCK is multiplied with what counts no blocks in line 11");
  CHECK(why_not(with(elementwise, "2.0 * v", "v + BLOCK"), of_elements) ==
        "BLOCK is used for more than blocks in line 11");
  CHECK(why_not(with(elementwise, "2.0 * v", "v / tl.sum(v, 0)"), of_elements) ==
        "BLOCK says how much a program folds in line 11");
  CHECK(why_not(with(elementwise, "2.0 * v", "tl.cumsum(v, 0)"), of_elements) ==
        "BLOCK is the length of a scan in line 11");
  CHECK(why_not(with(elementwise, "2.0 * v", "tl.flip(v)"), of_elements) ==
        "BLOCK is an extent of what flip works on in line 11");
  CHECK(why_not(with(elementwise, "    tl.store(out + at",
                     "    tl.store(counts + tl.program_id(0), 1.0)\n    tl.store(out + at"),
                of_elements) == "BLOCK says for how many elements a value is stored in line 11");
  CHECK(why_not(with(elementwise, "tl.store(out", "tl.atomic_add(out"), of_elements) ==
        "BLOCK cannot be told apart from what is added up in line 11");
  const auto shared = with(with(elementwise, "scaled[(triton.cdiv(total, 256),)]",
                                "grid = (triton.cdiv(total, 256),)\n        scaled[grid]"),
                           "return out", "print(grid)\n        return out");
  CHECK(why_not(shared, of_elements) == "grid is also used in line 20");
  const auto normalised =
      with(with(sums, "        total +=",
                "        v = tl.load(x + row + at, mask=at < columns, other=0.0)\n        tl.store(x + row + "
                "at, v / tl.sum(v, 0), mask=at < columns)\n        total +="),
           "tl.store(out", "tl.store(out");
  CHECK(why_not(normalised, of_sums) == "BLOCK says what is folded for what the loop stores in line 14");
  CHECK(why_not(
            with(elementwise, "@triton.jit",
                 "@triton.autotune(configs=[triton.Config({\"BLOCK\": 256})], key=[\"total\"])\n@triton.jit"),
            of_elements) == "the configurations that scaled is autotuned over are all judged anyway");
}
