// Texts as large as a model can send, and nesting far beyond any stack: analysis ends in seconds, whatever
// they hold. Where a walk doubled or took every path, these tests would not end at all.

#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>

#include <doctest/doctest.h>

#include <string>

#include "hostile_texts.hpp"

namespace {

void look_at(const hostile::Row& row, std::size_t size) {
  CAPTURE(row.name);
  const std::string source = row.text(size);
  CHECK(mtmc::print(mtmc::parse(source)) == source);
  const mtmc::Task task = hostile::task(source);
  (void)mtmc::AstRegionFinder().find(task, task.kernel);
}

} // namespace

TEST_SUITE("hostile texts, large") {
  TEST_CASE("constructs nested twenty thousand times") {
    for (const hostile::Row& row : hostile::nesting_rows()) look_at(row, row.squares ? 400 : 20'000);
  }

  TEST_CASE("thousands of constructs one after the other") {
    for (const hostile::Row& row : hostile::chain_rows()) look_at(row, 2'000);
  }
}
