// Analysis of texts that are made to take forever: it ends, and claims nothing that it has not looked at.

#include <mtmc/analysis/dependence/dependence.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/structure_builder.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "analysed.hpp"
#include "hostile_texts.hpp"

namespace {

/// Steps of proofs about a text.
std::int64_t steps_for(const std::string& source) {
  const mtmc::SyntaxNode tree = mtmc::parse(source);
  const mtmc::KernelAnalysis analysis(tree);
  return mtmc::WorkBudget::max_steps - analysis.budget().left();
}

/// Parses, analyses and prints the text, and finds its regions.
mtmc::Structure looked_at(const std::string& source) {
  CHECK(mtmc::print(mtmc::parse(source)) == source);
  const mtmc::Task task = hostile::task(source);
  return mtmc::AstRegionFinder().find(task, task.kernel);
}

const hostile::Row& row(std::string_view name) {
  static const auto rows = [] {
    auto all = hostile::nesting_rows();
    for (auto& one : hostile::chain_rows()) all.push_back(std::move(one));
    return all;
  }();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.name == name; });
  REQUIRE(found != rows.end());
  return *found;
}

} // namespace

TEST_SUITE("hostile texts") {
  TEST_CASE("constructs nested thirty times are analysed") {
    for (const hostile::Row& one : hostile::nesting_rows()) {
      CAPTURE(one.name);
      (void)looked_at(one.text(30));
    }
  }

  TEST_CASE("what is known of deep nests grows with the text") {
    const auto nest = [](int depth) {
      std::string text = "void k(const float* x, float* y, int n) {\n";
      for (int i = 0; i < depth; ++i) {
        const auto name = "i" + std::to_string(i);
        text += "for (int " + name + " = 0; " + name + " < n; ++" + name + ") {\ny[" + name + "] += x[" +
                name + "];\n";
      }
      return text + std::string(static_cast<std::size_t>(depth), '}') + "}\n";
    };
    const auto known = [&](int depth) {
      const mtmc::SyntaxNode tree = mtmc::parse(nest(depth));
      const mtmc::KernelAnalysis analysis(tree);
      std::size_t entries = 0;
      for (const auto& function : analysis.functions()) {
        const auto& all = function->dependences;
        for (const auto& dependence : all) entries += dependence.loops.size();
        if (depth < 48) continue;
        for (const auto& loop : function->loops) // none of them may be changed
          CHECK(std::any_of(all.begin(), all.end(), [&](const auto& d) { return mtmc::carries(loop, d); }));
      }
      return entries;
    };
    CHECK(known(10) > 0);
    CHECK(known(48) < 10 * 48 * 48); // accesses in a row, with the loops around each
    (void)looked_at(nest(48));
  }

  TEST_CASE("a dozen constructs one after the other are analysed") {
    for (const hostile::Row& one : hostile::chain_rows()) {
      CAPTURE(one.name);
      (void)looked_at(one.text(12));
    }
  }

  TEST_CASE("nesting beyond anything that is written ends no stack") {
    for (const hostile::Row& one : hostile::nesting_rows()) {
      CAPTURE(one.name);
      if (!one.squares) (void)looked_at(one.text(400));
    }
  }

  TEST_CASE("definitions that use the one before twice are followed for a few levels, then unknown") {
    // The bounds of a loop and what a subscript adds up to, in ever longer definitions of `x`.
    const auto bound_after = [](std::size_t levels) {
      const mtmc::Structure structure = looked_at(row("quotients that double").text(levels));
      const auto loop =
          std::find_if(structure.regions.begin(), structure.regions.end(),
                       [](const auto& region) { return region.kind == mtmc::RegionKind::loop; });
      REQUIRE(loop != structure.regions.end());
      return loop->facts.loops.front();
    };
    CHECK(bound_after(3).trip_count == 122);
    CHECK_FALSE(bound_after(60).trip_count.has_value());
    CHECK(bound_after(60).upper.size() < 400);
    for (const auto name : {"quotients of both that double", "minima that double", "sums of two that double",
                            "loops bounded by two others", "loops of minima of others"}) {
      CAPTURE(name);
      CHECK_FALSE(looked_at(row(name).text(60)).regions.empty());
    }
  }

  TEST_CASE("what is unknown is not legal") {
    // Each element may be that of any other iteration.
    const analysed::Text text(
        hostile::kernel("int x0 = N, y0 = M;\n" +
                        hostile::repeated(40, "int x@+ = x@ / (y@ + 1);\nint y@+ = y@ / (x@ + 1);\n") +
                        "for (int i = 0; i < N; ++i) c[i * x40] = c[i * y40] + a[i];\n"
                        "for (int i = 0; i < N; ++i) c[i + N] = a[i];"));
    CHECK_FALSE(mtmc::loop_is_parallel(text.loop("step/i")).legal);
    CHECK(mtmc::loop_is_parallel(text.loop("step/i#2")).legal);
  }

  TEST_CASE("a budget that is used up leaves the answers no, and the structure says so") {
    const std::string source = hostile::kernel("for (int i = 0; i < N; ++i) for (int j = 0; j < M; ++j) c[i "
                                               "* M + j] = c[i * M + j] + a[j * N + i];");
    const mtmc::SyntaxNode tree = mtmc::parse(source);
    const mtmc::KernelAnalysis whole(tree);
    CHECK(whole.complete());
    CHECK(mtmc::loop_is_parallel(*whole.find_loop("step/i")).legal);
    const mtmc::KernelAnalysis cut(tree, nullptr, mtmc::WorkBudget(10));
    CHECK_FALSE(cut.complete());
    CHECK_FALSE(mtmc::loop_is_parallel(*cut.find_loop("step/i")).legal);

    const auto notes_of = [&](mtmc::WorkBudget budget) {
      const mtmc::Task task = hostile::task(source);
      const auto structure = mtmc::detail::StructureBuilder(task, task.kernel, tree, budget).run();
      std::string notes;
      for (const auto& note : structure.notes) notes += note.message + '\n';
      return notes;
    };
    CHECK(notes_of(mtmc::WorkBudget()).find("takes too long") == std::string::npos);
    CHECK(notes_of(mtmc::WorkBudget(10)).find("the text takes too long to analyse") != std::string::npos);
  }

  TEST_CASE("twice the text asks for at most four times the proofs") {
    for (const auto name : {"nests", "loops over different arrays", "loops in a loop", "functions",
                            "accesses of one array in nests of three", "parameters that may overlap"}) {
      CAPTURE(name);
      const auto once = steps_for(row(name).text(20));
      const auto twice = steps_for(row(name).text(40));
      CHECK(twice <= 4 * once + 100'000);
    }
  }
}
