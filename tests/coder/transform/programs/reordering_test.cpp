#include <mtmc/coder/transform/programs/reordering.hpp>

#include <doctest/doctest.h>

#include <string>

#include "program_draft.hpp"
#include "program_texts.hpp"

using namespace mtmc;
using namespace mtmc::testing;
using program_texts::numbered;
using program_texts::product;

namespace {

constexpr const char* of_product = "reordering|product";
constexpr const char* of_numbered = "reordering|numbered";

} // namespace

TEST_CASE("of a grid of two axes the kernel takes the blocks in groups of rows, and the launch stays") {
  CHECK(text_after(product, of_product) ==
        with(with(with(product, "    m = tl.program_id(0)",
                       R"(    place = tl.program_id(1) * tl.num_programs(0) + PROGRAM_id(0)
    first_of_group = place // (8 * tl.num_programs(1)) * 8
    group_height = tl.minimum(tl.num_programs(0) - first_of_group, 8)
    within_group = place % (8 * tl.num_programs(1))
    block_row = first_of_group + within_group % group_height
    block_column = within_group // group_height
    m = block_row)"),
                  "n = tl.program_id(1)", "n = block_column"),
             "PROGRAM_", "tl.program_"));
}

TEST_CASE("variants are the size of the groups, groups of columns, and the other axis first") {
  CHECK(text_after(product, of_product, 1).find("// (4 * tl.num_programs(1)) * 4\n") != std::string::npos);
  CHECK(text_after(product, of_product, 2).find("// (16 * tl.num_programs(1)) * 16\n") != std::string::npos);
  const auto columns = text_after(product, of_product, 3);
  CHECK(columns.find("group_height = tl.minimum(tl.num_programs(1) - first_of_group, 8)\n") !=
        std::string::npos);
  CHECK(columns.find("block_row = within_group // group_height\n") != std::string::npos);
  const auto other = text_after(product, of_product, 4);
  CHECK(other.find("block_row = place // tl.num_programs(1)\n") != std::string::npos);
  CHECK(other.find("group") == std::string::npos);
  CHECK(why_not(product, of_product, 5) == "no further variant: there are 5");
}

TEST_CASE("of one number that // and % take apart, where they are computed") {
  CHECK(text_after(numbered, of_numbered) ==
        with(with(numbered, "    pid_m = pid // num_n\n", R"(    first_of_group = pid // (8 * num_n) * 8
    group_height = tl.minimum((tl.num_programs(0) // num_n) - first_of_group, 8)
    within_group = pid % (8 * num_n)
    pid_m = first_of_group + within_group % group_height
)"),
             "pid_n = pid % num_n\n", "pid_n = within_group // group_height\n"));
  const auto other = text_after(numbered, of_numbered, 4);
  CHECK(other.find("pid_m = pid % (tl.num_programs(0) // num_n)\n    pid_n = pid // (tl.num_programs(0) "
                   "// num_n)\n") != std::string::npos);
}

TEST_CASE("the product that a grid is may be written in many ways") {
  const std::string_view grid =
      R"(lambda meta: (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),))";
  for (const std::string other :
       {"(triton.cdiv(M, 32) * triton.cdiv(N, 32),)", "(((M + 32 - 1) // 32) * ((N + 32 - 1) // 32),)",
        "lambda META: (triton.cdiv(N, META['BLOCK_N']) * triton.cdiv(M, META['BLOCK_M']),)"}) {
    CAPTURE(other);
    CHECK(draft_of_text(with(numbered, grid, other), of_numbered).kernel);
  }
  const auto named =
      with(with(numbered, "grid = lambda", "columns = triton.cdiv(N, 32)\n        grid = lambda"), grid,
           "(triton.cdiv(M, 32) * columns,)");
  CHECK(draft_of_text(named, of_numbered).kernel);
  const auto rounded = with(numbered, "tl.cdiv(N, BLOCK_N)", "(N + BLOCK_N - 1) // BLOCK_N");
  CHECK(draft_of_text(rounded, of_numbered).kernel);
  for (const std::string other : {"(triton.cdiv(M, 32), triton.cdiv(N, 32))", "(triton.cdiv(M, 32) * 4,)",
                                  "(triton.cdiv(M, 32) + triton.cdiv(N, 32),)", "(132,)", "sizes_of(M, N)"}) {
    CAPTURE(other);
    CHECK(why_not(with(numbered, grid, other), of_numbered) ==
          "the grid in line 41 was not recognised as a product with num_n");
  }
}

TEST_CASE("names that are taken are left alone") {
  const auto taken = with(product, "total", "place");
  CHECK(text_after(taken, of_product).find("place_2 = tl.program_id(1) *") != std::string::npos);
}

TEST_CASE("what was not recognised is declined with the reason") {
  CHECK(why_not(product, "reordering|product/k0") ==
        "only the order of a kernel's programs is changed, not that of its loops");
  CHECK(why_not(program_texts::sums, "reordering|sums") == "sums makes no products of tiles");
  CHECK(why_not(with(numbered, "pid_n = pid % num_n", "pid_n = pid - pid_m * num_n"), of_numbered) ==
        "the number of a program is not taken apart by one // and one % in numbered");
  CHECK(why_not(with(numbered, "pid_n = pid % num_n", "pid_n = pid % num_m"), of_numbered) ==
        "the number of a program is not taken apart by one // and one % in numbered");
  CHECK(why_not(with(numbered, "pid_n = pid % num_n", "pid_n = pid % num_n\n    third = pid"), of_numbered) ==
        "the number of a program is not taken apart by one // and one % in numbered");
  CHECK(why_not(with(product, "tl.store(", "tl.atomic_add("), of_product) ==
        "programs of product meet in atomic operations");
  CHECK(why_not(with(product, "tl.program_id(0)", "tl.program_id(axis)"), of_product) ==
        "the axis of a program's number is computed in line 9");
  CHECK(why_not(with(product, "tl.program_id(0)", "0"), of_product) ==
        "no number of a program along axis 0 was recognised in product");
  const auto once = text_after(product, of_product);
  CHECK(why_not(once, of_product) == "product orders its programs itself, by their number in line 9");
}
