// The contract of mtmc-optimize with scripts and people: exit codes, JSON, and what it survives.

#include <doctest/doctest.h>

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs.hpp"

using doctest::Contains;
using programs::columns_task;
using programs::json_lines;
using programs::shown;
using programs::Tasks;

namespace {

mtmc::ProcessResult optimize(std::vector<std::string> arguments) {
  return programs::run("mtmc-optimize", std::move(arguments));
}

} // namespace

TEST_CASE("mtmc-optimize: bad usage is exit code 2, help is not") {
  CHECK(optimize({}).code == 2);
  CHECK(optimize({"x.json", "--policy", "nobody"}).code == 2);
  CHECK(optimize({"x.json", "--no-such-option"}).code == 2);
  const auto help = optimize({"--help"});
  CHECK(help.code == 0);
  CHECK(shown(help.output) == Contains("1 with --coder openai"));
  CHECK(shown(help.output) != Contains("NONNEGATIVE=0"));
  CHECK(shown(optimize({"--version"}).output) == Contains("mtmc "));
}

TEST_CASE("mtmc-optimize: --json ends with one object a task, and the folder has what one takes away") {
  Tasks tasks;
  const auto task = tasks.add("columns", columns_task("columns"));
  const auto done = optimize({task, "--json", "--steps", "2", "--output", tasks.path("runs")});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  const auto lines = json_lines(done.output);
  REQUIRE(lines.size() == 1);
  for (const char* field : {"task", "speedup", "interval", "verdict", "best", "stop_reason", "steps",
                            "seconds", "tokens", "cost"})
    CHECK_MESSAGE(lines[0].contains(field), field);
  CHECK(lines[0]["task"] == "columns");
  CHECK(lines[0]["verdict"] == "correct");
  CHECK(lines[0]["speedup"] >= 1.0);
  CHECK(lines[0]["verified_sizes"].size() == 2);
  const std::string best = lines[0]["best"];
  CHECK(shown(mtmc::read_file(best)) == Contains("//@ launch"));
  CHECK(lines[0]["source"] == mtmc::read_file(best));
  CHECK(shown(mtmc::read_file(tasks.path("runs/columns/launcher.cpp"))) == Contains("// Compile:     /"));
  CHECK(shown(mtmc::read_file(tasks.path("runs/columns/launcher.hpp"))) == Contains("void launch_columns("));
  CHECK(nlohmann::json::parse(mtmc::read_file(tasks.path("runs/columns/result.json")))["task"] == "columns");

  // The same once more: nothing is asked or measured again.
  const auto again = optimize({task, "--json", "--steps", "2", "--output", tasks.path("runs"), "--resume"});
  REQUIRE(again.code == 0);
  const auto second = json_lines(again.output).back();
  CHECK(second["best"] == best);
  CHECK(second["interval"] == lines[0]["interval"]);

  const auto refused = optimize({task, "--output", tasks.path("runs")});
  CHECK(refused.code == 2);
  CHECK(shown(refused.error) == Contains("resume"));
}

TEST_CASE("mtmc-optimize: --json has the best kernel's text where no folder keeps it") {
  Tasks tasks;
  const auto done = optimize({tasks.add("columns", columns_task("columns")), "--json", "--steps", "0"});
  REQUIRE(done.code == 0);
  CHECK(json_lines(done.output).at(0)["source"] == programs::columns_kernel);
}

TEST_CASE("mtmc-optimize: without --output the best kernel is printed, if it is faster") {
  Tasks tasks;
  const auto done = optimize({tasks.add("columns", columns_task("columns")), "--quiet", "--steps", "0"});
  REQUIRE(done.code == 0);
  CHECK(done.output == "columns: nothing faster than the start kernel was proven\n");
}

TEST_CASE("mtmc-optimize: several tasks end with a table") {
  Tasks tasks;
  const auto first = tasks.add("first", columns_task("first"));
  const auto second = tasks.add("second", columns_task("second"));
  const auto done = optimize({first, second, "--steps", "0", "--output", tasks.path("runs")});
  REQUIRE(done.code == 0);
  CHECK(shown(done.output) == Contains("2 tasks, geometric mean 1x"));
  CHECK(shown(done.output) == Contains("  first   "));
  CHECK(shown(done.output) == Contains("1x [1, 1]"));
}

TEST_CASE("mtmc-optimize: --list-actions shows what could be done, as text and as JSON") {
  Tasks tasks;
  tasks.add("columns", columns_task("columns"));
  const auto text = optimize({tasks.folder(), "--list-actions"});
  REQUIRE(text.code == 0);
  CHECK(shown(text.output) == Contains("reordering|columns/j"));
  CHECK(shown(text.output) == Contains("stop"));
  const auto json = optimize({tasks.folder(), "--list-actions", "--json"});
  const auto lines = json_lines(json.output);
  REQUIRE(lines.size() == 1);
  double sum = 0;
  for (const auto& action : lines[0]["actions"]) sum += action["probability"].get<double>();
  CHECK(sum == doctest::Approx(1));
}

TEST_CASE("mtmc-optimize: malformed tasks are refused with place and remedy, and the others go on") {
  Tasks tasks;
  tasks.add("good", columns_task("good"));
  tasks.add_text("broken.json", "{\"name\": \"broken\",");
  auto task = columns_task("no_source");
  tasks.add_text("no_source.json", task.dump());
  task = columns_task("unknown_symbol");
  task["arguments"][0]["shape"] = {"M", "Q"};
  tasks.add("unknown_symbol", task);
  task = columns_task("division");
  task["arguments"][1]["shape"] = {"N / (M - M)"};
  tasks.add("division", task);
  const auto listed = optimize({tasks.folder(), tasks.path("missing.json"), "--list-actions"});
  CHECK(listed.code == 2);
  CHECK(shown(listed.output) == Contains("good: "));
  CHECK(shown(listed.error) == Contains("broken.json"));
  CHECK(shown(listed.error) == Contains("no_source.cpp"));
  CHECK(shown(listed.error) == Contains("missing.json"));
  CHECK(shown(listed.error) == Contains("\"Q\""));
  CHECK(shown(listed.error) == Contains("division by zero"));
  CHECK(shown(listed.error) == Contains("shape of out"));
}

TEST_CASE("mtmc-optimize: a start kernel that does not work is the task's fault, and the next task goes on") {
  Tasks tasks;
  const std::string head = "void columns(const float* in, float* out, int M, int N) {\n";
  const std::string tail = "}\n//@ launch columns(in, out, M, N)\n";
  tasks.add("a_syntax", columns_task("a_syntax"), head + "  out[0] = nonsense;\n" + tail);
  tasks.add("b_crash", columns_task("b_crash"), head + "  *(volatile int*)16 = N;\n" + tail);
  tasks.add("c_bounds", columns_task("c_bounds"),
            head + "  for (int j = 0; j <= N + 64; ++j) out[j] = in[0];\n" + tail);
  tasks.add("d_good", columns_task("d_good"));
  const auto done = optimize({tasks.folder(), "--json", "--steps", "1"});
  CHECK(done.code == 2);
  CHECK(shown(done.error) == Contains("'nonsense' was not declared"));
  CHECK(shown(done.error) == Contains("mtmc.task.005"));
  CHECK(shown(done.error) == Contains("b_crash"));
  CHECK(shown(done.error) == Contains("c_bounds"));
  const auto lines = json_lines(done.output);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["task"] == "d_good");
}

TEST_CASE("mtmc-optimize: a compiler that is not there is the surroundings' fault") {
  Tasks tasks;
  const auto done =
      optimize({tasks.add("columns", columns_task("columns")), "--compiler", "no-such-compiler"});
  CHECK(done.code == 3);
  CHECK(shown(done.error) == Contains("no-such-compiler"));
}

TEST_CASE("mtmc-optimize: a folder that cannot be written is an error before anything is paid for") {
  Tasks tasks;
  const auto task = tasks.add("columns", columns_task("columns"));
  tasks.add_text("file", "");
  const auto done = optimize({task, "--output", tasks.path("file")});
  CHECK(done.code == 3);
  CHECK(shown(done.error) == Contains(tasks.path("file").c_str()));
}

TEST_CASE("mtmc-optimize: a disk that becomes full does not lose the best kernel") {
  const mtmc::TemporaryFolder disk;
  if (::mount("tmpfs", disk.path().c_str(), "tmpfs", 0, "size=32k") != 0) {
    MESSAGE("SKIPPED: a small file system can only be mounted by root");
    return;
  }
  Tasks tasks;
  const auto done = optimize({tasks.add("columns", columns_task("columns")), "--output", disk.path()});
  ::umount2(disk.path().c_str(), MNT_DETACH);
  CHECK(done.code == 3);
  CHECK(shown(done.error) == Contains("No space left on device"));
  CHECK(shown(done.output) == Contains("//@ launch columns(in, out, M, N)"));
}

TEST_CASE("mtmc-optimize: --replay takes steps from a sequence, or from a recorded run") {
  Tasks tasks;
  const auto task = tasks.add("columns", columns_task("columns"));
  mtmc::create_folders(tasks.path("steps"));
  tasks.add_text("steps/rows.cpp", R"cpp(void columns(const float* in, float* out, int M, int N) {
  for (int j = 0; j < N; ++j) out[j] = 0.0f;
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) out[j] += in[i * N + j];
}
//@ launch columns(in, out, M, N)
)cpp");
  tasks.add_text("steps/steps.json", R"({"task": "columns", "language": "cpp", "steps": [
    {"optimization": "reordering", "region": "columns", "kernel": "rows.cpp"}]})");
  const auto done =
      optimize({task, "--replay", tasks.path("steps"), "--json", "--output", tasks.path("runs")});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  const auto first = json_lines(done.output).at(0);
  CHECK(first["steps"] == 1);
  CHECK(first["stop_reason"] == "stop_action");
  CHECK(first["tokens"] == 0);
  const auto again =
      optimize({task, "--replay", tasks.path("runs"), "--json", "--output", tasks.path("again")});
  REQUIRE(again.code == 0);
  CHECK(json_lines(again.output).at(0)["steps"] == 1);

  CHECK(optimize({task, "--replay", tasks.path("nowhere")}).code == 2);
  CHECK(optimize({task, "--replay", tasks.path("steps"), "--policy", "rules"}).code == 2);
}
