// The contract of mtmc-evaluate: one verdict a candidate, whatever the candidate does.

#include <doctest/doctest.h>

#include "programs.hpp"

using doctest::Contains;
using programs::columns_task;
using programs::json_lines;
using programs::shown;
using programs::Tasks;

TEST_CASE("mtmc-evaluate: every candidate gets its verdict and its reason") {
  Tasks tasks;
  const auto task = tasks.add("columns", columns_task("columns"));
  const auto with_body = [&](const std::string& name, const std::string& body) {
    return tasks.add_text(name,
                          "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <vector>\n"
                          "void columns(const float* in, float* out, int M, int N) {\n" +
                              body + "\n}\n//@ launch columns(in, out, M, N)\n");
  };
  const std::string sum = "  for (int j = 0; j < N; ++j) out[j] = 0;\n"
                          "  for (int i = 0; i < M; ++i)\n"
                          "    for (int j = 0; j < N; ++j) out[j] += in[i * N + j];\n";
  const std::vector<std::pair<std::string, std::string>> expected{
      {with_body("good.cpp", sum), "correct"},
      {tasks.add_text("unlaunched.cpp",
                      "void columns(const float* in, float* out, int M, int N) {\n" + sum + "}\n"),
       "correct"},
      {with_body("prints.cpp", "  std::puts(\"hello\"); std::fflush(stdout);\n" + sum), "refused"},
      {tasks.add_text("unclosed.cpp",
                      "//@ launch columns(in, out\nvoid columns(const float* in, float* out) {}\n"),
       "launch_error"},
      {with_body("syntax.cpp", "  out[0] = ;"), "compile_error"},
      {with_body("wrong.cpp", sum + "  out[N - 1] += 1;"), "wrong_result"},
      {with_body("crash.cpp", "  *(volatile int*)16 = N;"), "crashed"},
      {with_body("abort.cpp", "  std::abort();"), "crashed"},
      {with_body("endless.cpp", "  volatile int go = 1; while (go) {}"), "timeout"},
      {with_body("outside.cpp", sum + "  out[N + 8] = 1;"), "out_of_bounds"},
      {with_body("greedy.cpp", "  std::vector<char> all(20ull << 30, 1); out[0] = all[N];"), "crashed"}};
  std::vector<std::string> arguments{task, "--json"};
  for (const auto& [path, verdict] : expected) arguments.push_back(path);
  const auto done = programs::run("mtmc-evaluate", arguments);
  CHECK(done.code == 0); // judged, whatever the verdicts
  const auto lines = json_lines(done.output);
  REQUIRE(lines.size() == expected.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(lines[i].dump());
    for (const char* field : {"candidate", "verdict", "reason", "sizes", "seconds"})
      CHECK_MESSAGE(lines[i].contains(field), field);
    CHECK(lines[i]["candidate"] == expected[i].first);
    CHECK(lines[i]["verdict"] == expected[i].second);
    CHECK(lines[i]["reason"].get<std::string>().empty() == (expected[i].second == "correct"));
  }
  CHECK(lines[0]["sizes"].size() == 2);
  CHECK(lines[0]["seconds"] > 0);
  // Across the process of the judge; of what did not compile there is none.
  const std::string hash = lines[0]["binary_hash"];
  CHECK(hash.size() == 64);
  CHECK(hash.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(lines[0]["incumbent_binary_hash"].get<std::string>().size() == 64);
  CHECK(lines[0]["environment"]["binary"] == "observed");
  CHECK(lines[4]["binary_hash"].is_null());
  CHECK(lines[5]["verdict"] == "wrong_result");
  CHECK(lines[5]["binary_hash"] != hash);
  const auto again = programs::run("mtmc-evaluate", {task, "--json", expected[0].first});
  CHECK(json_lines(again.output).at(0)["binary_hash"] == hash);
}

TEST_CASE("mtmc-evaluate: a person reads verdict, place and remedy") {
  Tasks tasks;
  const auto task = tasks.add("columns", columns_task("columns"));
  const auto broken =
      tasks.add_text("broken.cpp", "void columns(const float* in, float* out, int M, int N) {\n"
                                   "  out[0] = nonsense;\n}\n"
                                   "//@ launch columns(in, out, M, N)\n");
  const auto done = programs::run("mtmc-evaluate", {task, broken});
  CHECK(done.code == 0); // judged
  CHECK(shown(done.output) == Contains("broken.cpp: compile_error"));
  CHECK(shown(done.output) == Contains("line 2: 'nonsense' was not declared"));
  const auto judged = programs::run("mtmc-evaluate", {task, tasks.path("columns.cpp")});
  CHECK(shown(judged.output) == Contains("columns.cpp: correct"));
  CHECK(shown(judged.output) == Contains(" % interval), "));
  CHECK(shown(judged.output) == Contains("  binary: SHA-256 "));
}

TEST_CASE("mtmc-evaluate: a missing file is found before anything is judged") {
  Tasks tasks;
  const auto task = tasks.add("columns", columns_task("columns"));
  for (const auto& arguments : {std::vector<std::string>{task, tasks.path("columns.cpp"), tasks.path("none")},
                                {task, tasks.path("columns.cpp"), "--incumbent", tasks.path("none")}}) {
    const auto done = programs::run("mtmc-evaluate", arguments);
    CHECK(done.code == 2);
    CHECK(shown(done.error) == Contains("none cannot be read: No such file or directory"));
    CHECK(done.output.empty());
  }
}

TEST_CASE("mtmc-evaluate: a bad task is exit code 2") {
  Tasks tasks;
  const auto candidate = tasks.add_text("x.cpp", "");
  CHECK(programs::run("mtmc-evaluate", {tasks.path("missing.json"), candidate}).code == 2);
  CHECK(programs::run("mtmc-evaluate", {}).code == 2);
}
