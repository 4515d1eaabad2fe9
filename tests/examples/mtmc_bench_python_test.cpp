// The contract of mtmc-bench, and of the tools that take problems in PyTorch in place of task files.

#include <filesystem>

#include "../backend/python/python_for_tests.hpp"
#include "programs.hpp"

using doctest::Contains;
using programs::shown;

namespace {

constexpr const char* problem_text = R"(import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
    def forward(self, x):
        return torch.relu(self.linear(x)) * 2.0

def get_inputs():
    return [torch.rand(16, 32)]

def get_init_inputs():
    return [32]
)";

std::string candidate_text(const std::string& factor) {
  return "import torch\nimport torch.nn as nn\n\nclass ModelNew(nn.Module):\n    def __init__(self, width):\n"
         "        super().__init__()\n        self.linear = nn.Linear(width, width)\n"
         "    def forward(self, x):\n        return torch.clamp(self.linear(x), min=0).mul_(" +
         factor + ")\n";
}

/// A checkout with three problems and a folder of candidates for two of them.
struct Folders {
  Folders() {
    for (const auto* folder : {"checkout/level1", "candidates"})
      std::filesystem::create_directories(files.path(folder));
    files.add_text("checkout/level1/1_right.py", problem_text);
    files.add_text("checkout/level1/2_wrong.py", problem_text);
    files.add_text("checkout/level1/13_none.py", problem_text);
    files.add_text("candidates/1_right.py", candidate_text("2.0"));
    files.add_text("candidates/2_wrong.py", candidate_text("2.5"));
    files.add_text("candidates/3_misspelt.py", candidate_text("2.0"));
  }
  programs::Tasks files;
};

} // namespace

TEST_CASE("candidates are judged by two rules, and a run that was interrupted goes on") {
  const auto options = python_for_tests();
  if (!options) return;
  Folders folders;
  const auto output = folders.files.path("out");
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"--folder",     folders.files.path("checkout"),
                                       "--candidates", folders.files.path("candidates"),
                                       "--output",     output,
                                       "--python",     options->interpreter,
                                       "--judge-on",   "cpu"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return programs::run("mtmc-bench", arguments);
  };
  const auto first = run({"--shard", "0/2"});
  CAPTURE(first.error);
  CHECK(first.code == 0);
  CHECK(shown(first.output) == Contains("1_right"));
  CHECK(shown(first.output) != Contains("2_wrong"));
  const auto rest = run({});
  CHECK(rest.code == 0);
  CHECK(shown(rest.output) == Contains("wrong_result: output 0"));
  CHECK(shown(rest.output) == Contains("no problem has the name of 3_misspelt.py"));
  CHECK(shown(rest.output) == Contains("Timed on a processor"));
  CHECK(shown(rest.output) != Contains("x\nlevel 1  1_right"));

  const auto results = programs::json_lines(mtmc::read_file(output + "/results.jsonl"));
  REQUIRE(results.size() == 2); // what has no candidate yet is not kept
  CHECK(results[0]["rules"]["strict"]["correct"] == true);
  CHECK(results[0]["rules"]["compatible"]["correct"] == true);
  CHECK(results[0]["rules"]["strict"]["baselines"]["eager"] > 0);
  CHECK(results[1]["problem"] == "2_wrong");
  CHECK_FALSE(results[1]["rules"]["strict"].value("correct", false));
  CHECK(shown(mtmc::read_file(output + "/table.md")) == Contains("| all | 3 | 0.67 | 0.33"));
  CHECK(shown(mtmc::read_file(output + "/speed_ups.svg")) == Contains("</svg>"));

  // Half a line of a run that was killed goes, and the rest is kept.
  const auto kept = mtmc::read_file(output + "/results.jsonl");
  mtmc::write_file_atomic(output + "/results.jsonl", kept + R"({"level":"1","pro)");
  const auto again = run({});
  CHECK(again.code == 0);
  CHECK(shown(again.output) == Contains("2 results of earlier runs are kept"));
  CHECK(mtmc::read_file(output + "/results.jsonl") == kept);

  // What has another candidate by then, or is asked for otherwise, is judged again.
  folders.files.add_text("candidates/2_wrong.py", candidate_text("2.0"));
  const auto mended = run({});
  CHECK(shown(mended.output) == Contains("1 results of earlier runs are kept"));
  CHECK(shown(mended.output) == Contains("1 were of another candidate or with other options"));
  CHECK(shown(mtmc::read_file(output + "/table.md")) == Contains("| all | 3 | 0.67 | 0.67"));
  const auto strict = run({"--strict-only"});
  CHECK(shown(strict.output) == Contains("2 were of another candidate or with other options"));
}

TEST_CASE("problems are chosen by level, ending and shard, and listed without any Python") {
  const Folders folders;
  const auto list = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"--folder", folders.files.path("checkout"), "--list"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return programs::run("mtmc-bench", arguments).output;
  };
  CHECK(list({}) == "level 1  1_right\nlevel 1  2_wrong\nlevel 1  13_none\n");
  CHECK(list({"--ending", "3"}) == "level 1  13_none\n");
  CHECK(list({"--levels", "2"}).empty());
  CHECK(programs::run("mtmc-bench", {"--folder", folders.files.folder(), "--list"}).code == 2);
  const auto nothing =
      programs::run("mtmc-bench", {"--folder", folders.files.path("checkout"), "--ending", "9"});
  CHECK(nothing.code == 2);
  CHECK(shown(nothing.error) == Contains("no problem is asked for"));
  CHECK(programs::run("mtmc-bench", {"--folder", folders.files.path("checkout"), "--shard", "3/2"}).code ==
        2);
}

TEST_CASE("mtmc-evaluate judges modules against a problem") {
  const auto options = python_for_tests();
  if (!options) return;
  const Folders folders;
  const auto told = programs::run("mtmc-evaluate", {folders.files.path("checkout/level1/1_right.py"),
                                                    folders.files.path("candidates/1_right.py"),
                                                    folders.files.path("candidates/2_wrong.py"), "--json",
                                                    "--python", options->interpreter, "--judge-on", "cpu"});
  CAPTURE(told.error);
  CHECK(told.code == 0);
  const auto answers = programs::json_lines(told.output);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0]["verdict"] == "correct");
  CHECK(answers[1]["verdict"] == "wrong_result");
  CHECK(answers[1]["rule"] == "reference");
}

TEST_CASE("mtmc-optimize lists the actions of a problem") {
  const auto options = python_for_tests();
  if (!options) return;
  const Folders folders;
  const auto told = programs::run("mtmc-optimize", {folders.files.path("checkout/level1/1_right.py"),
                                                    "--list-actions", "--python", options->interpreter});
  CAPTURE(told.error);
  CHECK(told.code == 0);
  CHECK(shown(told.output) == Contains("rewriting the Linear, the relu and the multiplication in line 9"));
}
