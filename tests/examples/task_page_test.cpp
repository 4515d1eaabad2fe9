// The page about the task format: its tasks load, its expressions have the values it states, its kernel is
// right.
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/support/expression.hpp>

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "programs.hpp"

using doctest::Contains;
using programs::shown;

namespace {

/// A fenced block: the words behind the fence, and what it holds.
struct Block {
  std::string language;
  std::string file;
  std::string text;
};

std::vector<Block> blocks_of_page() {
  std::istringstream page(mtmc::read_file(std::string(MTMC_REPOSITORY) + "/examples/tasks/README.md"));
  std::vector<Block> blocks;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      if (!inside) {
        std::istringstream words(line.substr(3));
        words >> blocks.emplace_back().language >> blocks.back().file;
      }
      inside = !inside;
    } else if (inside) {
      blocks.back().text += line + '\n';
    }
  }
  return blocks;
}

/// The page's files, in a folder of their own.
programs::Tasks page_files() {
  programs::Tasks tasks;
  for (const auto& block : blocks_of_page())
    if (!block.file.empty()) tasks.add_text(block.file, block.text);
  return tasks;
}

} // namespace

TEST_CASE("the task page: every task of it loads, and says what the page says of it") {
  const auto tasks = page_files();
  const auto files = mtmc::find_task_files(tasks.folder());
  CHECK(files.size() == 3);
  for (const auto& file : files) {
    CAPTURE(file);
    CHECK_NOTHROW((void)mtmc::load_task(file));
  }
  const auto scale = mtmc::load_task(tasks.path("scale.json"));
  CHECK(scale.kernel.source.ends_with("//@ launch scale(x, y, a, N)\n"));
  CHECK(scale.find_argument("a")->type == mtmc::DataType::f32);
  CHECK(scale.sizes[0].weight == 1);
  const auto gather = mtmc::load_task(tasks.path("gather.json"));
  CHECK(gather.find_argument("table")->domain->low == "-1");
  CHECK(gather.find_argument("M") == nullptr);
  const auto normalise = mtmc::load_task(tasks.path("normalise.json"));
  CHECK(normalise.find_argument("y")->role == mtmc::ArgumentRole::output);
}

TEST_CASE("the task page: expressions have the values it states") {
  int compared = 0;
  for (const auto& block : blocks_of_page()) {
    if (block.language != "expressions") continue;
    std::istringstream lines(block.text);
    for (std::string line; std::getline(lines, line); ++compared) {
      CAPTURE(line);
      const auto equals = line.find(" = ");
      REQUIRE(equals != std::string::npos);
      CHECK(mtmc::evaluate_expression(line.substr(0, equals), {{"M", 1000}}) ==
            std::stoll(line.substr(equals + 3)));
    }
  }
  CHECK(compared > 8);
}

TEST_CASE("the task page: --check passes its tasks, with and without a device") {
  const auto tasks = page_files();
  for (const auto& more : {std::vector<std::string>{}, std::vector<std::string>{"--device", "H100"}}) {
    std::vector<std::string> arguments{"--check", tasks.folder()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto done = programs::run("mtmc-optimize", arguments);
    CAPTURE(done.output);
    CHECK(done.code == 0);
    CHECK(shown(done.output) == Contains("normalise.json: ok, 2 sizes, 3 launches\n"));
    CHECK(shown(done.output) == Contains("scale.json: ok, 3 sizes, 1 launch\n"));
  }
}

TEST_CASE("the task page: its C++ kernels are judged, and right") {
  const auto tasks = page_files();
  for (const char* name : {"scale", "gather"}) {
    const auto done = programs::run("mtmc-evaluate", {tasks.path(std::string(name) + ".json"),
                                                      tasks.path(std::string(name) + ".cpp"), "--json"});
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    CHECK(programs::json_lines(done.output).at(0)["verdict"] == "correct");
  }
}
