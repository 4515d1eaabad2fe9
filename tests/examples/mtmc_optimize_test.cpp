// The contract of mtmc-optimize with scripts and people: exit codes, JSON, and what it survives.

#include <doctest/doctest.h>

#include <algorithm>
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

/// A task for a GPU, of a matrix whose rows are summed.
std::string add_cuda_task(Tasks& tasks, const std::string& name, const std::string& launch) {
  tasks.add_text(name + ".cu", "//@ launch row_sum<<<" + launch + ">>>(x, sums, M, N)\n" +
                                   R"cu(__global__ void row_sum(const float* x, float* sums, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= M) return;
  float sum = 0.0f;
  for (int j = 0; j < N; ++j) sum += x[i * N + j];
  sums[i] = sum;
}
)cu");
  const nlohmann::json task{
      {"name", name},
      {"language", "cuda"},
      {"source", name + ".cu"},
      {"arguments", {{{"name", "x"}, {"shape", {"M", "N"}}}, {{"name", "sums"}, {"shape", {"M"}}}}},
      {"sizes", {{{"M", 4096}, {"N", 512}}, {{"M", 7}, {"N", 13}, {"weight", 0}}}}};
  return tasks.add_text(name + ".json", task.dump());
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
  const std::string hash = lines[0]["binary_hash"];
  CHECK(hash.size() == 64);
  CHECK(lines[0]["start_binary_hash"].get<std::string>().size() == 64);
  CHECK(shown(mtmc::read_file(tasks.path("runs/columns/launcher.cpp"))) ==
        Contains(("// Judged:      binary of SHA-256 " + hash + "\n").c_str()));
  // The last judgement of the best kernel is on record, with its binary and that of the start kernel.
  const auto journal = json_lines(mtmc::read_file(tasks.path("runs/columns/journal.jsonl")));
  for (const auto& record : journal)
    if (record["record"] == "evaluation" && record["evaluation"]["verdict"] == "correct") {
      CHECK(record["evaluation"]["binary_hash"].get<std::string>().size() == 64);
      CHECK(record["evaluation"].contains("incumbent_binary_hash") == (record["role"] != "start"));
    }
  CHECK(shown(mtmc::read_file(tasks.path("runs/columns/launcher.cpp"))) == Contains("// Compile:     /"));
  CHECK(shown(mtmc::read_file(tasks.path("runs/columns/launcher.hpp"))) == Contains("void launch_columns("));
  CHECK(nlohmann::json::parse(mtmc::read_file(tasks.path("runs/columns/result.json")))["task"] == "columns");

  // The same once more: nothing is asked or measured again.
  const auto again = optimize({task, "--json", "--steps", "2", "--output", tasks.path("runs"), "--resume"});
  REQUIRE(again.code == 0);
  const auto second = json_lines(again.output).back();
  CHECK(second["best"] == best);
  CHECK(second["interval"] == lines[0]["interval"]);
  CHECK(second["binary_hash"] == hash);

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
  CHECK(shown(done.output) == Contains("  1x\n")); // exactly: nothing was proven
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
  double sum = 0, last = 1; // the likeliest first
  for (const auto& action : lines[0]["actions"]) {
    const double probability = action["probability"].get<double>();
    CHECK(probability <= last);
    sum += last = probability;
  }
  CHECK(sum == doctest::Approx(1));
}

TEST_CASE("mtmc-optimize: without --policy what was learnt weighs C++ kernels, and rules weigh CUDA") {
  Tasks tasks;
  const auto cpp = tasks.add("columns", columns_task("columns"));
  const auto cuda = add_cuda_task(tasks, "row_sum", "ceil_div(M, 128), 128");
  const auto weighed = [](const std::string& task, std::vector<std::string> more) {
    more.insert(more.begin(), {task, "--list-actions", "--json"});
    const auto listed = optimize(more);
    CAPTURE(listed.error);
    REQUIRE(listed.code == 0);
    return json_lines(listed.output).at(0)["actions"];
  };
  const std::vector<std::string> learnt{"--policy", "learnt"}, rules{"--policy", "rules"};
  CHECK(weighed(cpp, {}) == weighed(cpp, learnt));
  CHECK(weighed(cpp, {}) != weighed(cpp, rules));
  const auto on_gpu = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--device", "H100"});
    return more;
  };
  CHECK(weighed(cuda, on_gpu({})) == weighed(cuda, on_gpu(rules)));
  CHECK(weighed(cuda, on_gpu({})) != weighed(cuda, on_gpu(learnt)));
}

TEST_CASE(
    "mtmc-optimize: --explain tells what moved a learnt choice, and a run goes on by its own policy alone") {
  Tasks tasks;
  const auto task = tasks.add("columns", columns_task("columns"));
  const std::vector<std::string> run{task, "--steps", "1", "--output", tasks.path("runs")};
  const auto with = [&run](std::vector<std::string> more) {
    more.insert(more.begin(), run.begin(), run.end());
    return optimize(more);
  };
  const auto done = with({"--explain"});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(shown(done.output + done.error) == Contains("because learnt: "));
  CHECK(shown(done.error) == Contains("cpp on cpu"));
  CHECK(shown(mtmc::read_file(tasks.path("runs/columns/journal.jsonl"))) == Contains("learnt "));
  CHECK(with({"--resume"}).code == 0);
  const auto other = with({"--resume", "--policy", "rules"});
  CHECK(other.code != 0);
  CHECK(shown(other.error) == Contains("policy"));
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
  // On a busy machine no gain may be proven: then there is nothing to lose.
  const bool proven = (done.output + done.error).find("nothing faster was proven") == std::string::npos;
  CHECK((done.output.find("//@ launch columns(in, out, M, N)") != std::string::npos) == proven);
}

TEST_CASE("mtmc-optimize: what options were called before 0.2 works, with one warning") {
  Tasks tasks;
  const auto task = tasks.add("columns", columns_task("columns"));
  const auto done = optimize({task, "--check", "--most-tokens", "5", "--most-cost", "0.5"});
  CHECK(done.code == 0);
  CHECK(shown(done.error) ==
        Contains("--most-tokens is called --max-tokens now; the old name works until 0.3"));
  CHECK(shown(done.error) == Contains("--most-cost is called --max-cost now; the old name works until 0.3"));
  CHECK(optimize({task, "--check", "--most-tokens", "5", "--max-tokens", "6"}).code == 2);
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
  // From its last kernel the sequence stops. On a busy machine no gain may be seen, and from the start kernel
  // it knows nothing more.
  const bool went_on = done.error.find("  faster  ") != std::string::npos;
  CHECK(first["stop_reason"] == (went_on ? "stop_action" : "no_legal_action"));
  CHECK(first["tokens"] == 0);
  const auto again =
      optimize({task, "--replay", tasks.path("runs"), "--json", "--output", tasks.path("again")});
  REQUIRE(again.code == 0);
  CHECK(json_lines(again.output).at(0)["steps"] == 1);

  CHECK(optimize({task, "--replay", tasks.path("nowhere")}).code == 2);
  CHECK(optimize({task, "--replay", tasks.path("steps"), "--policy", "rules"}).code == 2);
}

TEST_CASE("mtmc-optimize: --device plans for a GPU that is not there") {
  Tasks tasks;
  const auto task = add_cuda_task(tasks, "row_sum", "ceil_div(M, 128), 128");
  const auto listed = optimize({task, "--list-actions", "--device", "H100"});
  CAPTURE(listed.error);
  REQUIRE(listed.code == 0);
  CHECK(shown(listed.output) == Contains("row_sum: "));
  CHECK(shown(listed.output) == Contains("parallelization|row_sum/j"));
  const std::vector<std::string> model{"--coder", "openai", "--endpoint", "http://127.0.0.1:9/v1",
                                       "--model", "m"};
  for (const char* mode : {"--show-prompt", "--dry-run"}) {
    std::vector<std::string> arguments{task, mode, "--device", "L40S"};
    arguments.insert(arguments.end(), model.begin(), model.end());
    const auto prompt = optimize(arguments);
    CAPTURE(prompt.error);
    REQUIRE(prompt.code == 0);
    CHECK(shown(prompt.output) == Contains("NVIDIA L40S"));
    CHECK(shown(prompt.output) == Contains("row_sum"));
  }
}

TEST_CASE("mtmc-optimize: a device that nobody knows is answered with the nearest names and all of them") {
  Tasks tasks;
  const auto task = add_cuda_task(tasks, "row_sum", "ceil_div(M, 128), 128");
  const auto refused = optimize({task, "--list-actions", "--device", "h100 ultra"});
  CHECK(refused.code == 2);
  CHECK(shown(refused.error) == Contains("Did you mean H100, H100 80GB HBM3, H100 PCIe, H100 NVL?"));
  CHECK(shown(refused.error) == Contains("RTX PRO 6000 Blackwell Server Edition"));
}

TEST_CASE("mtmc-optimize: --device where it means nothing is refused") {
  Tasks tasks;
  const auto gpu = add_cuda_task(tasks, "row_sum", "ceil_div(M, 128), 128");
  const auto judged = optimize({gpu, "--device", "H100"});
  CHECK(judged.code == 2);
  CHECK(shown(judged.error) == Contains("--list-actions, --show-prompt, --dry-run or --check"));
  const auto cpu =
      optimize({tasks.add("columns", columns_task("columns")), "--list-actions", "--device", "H100"});
  CHECK(cpu.code == 2);
  CHECK(shown(cpu.error) == Contains("the kernel is in cpp, which runs on this processor"));
}

TEST_CASE("mtmc-optimize: without a GPU the error of a plan says that one can be named") {
  Tasks tasks;
  const auto listed = optimize({add_cuda_task(tasks, "row_sum", "ceil_div(M, 128), 128"), "--list-actions"});
  if (listed.code == 0) {
    MESSAGE("SKIPPED: this machine has a GPU");
    return;
  }
  CHECK(listed.code == 3);
  CHECK(shown(listed.error) == Contains("as in --device H100"));
}

TEST_CASE("mtmc-optimize: --check says of each task in one line whether it is in order") {
  Tasks tasks;
  tasks.add("good", columns_task("good"));
  auto wrong = columns_task("dtype");
  wrong["arguments"][0]["dtype"] = "i32";
  tasks.add("dtype", wrong);
  tasks.add("empty", columns_task("empty"), "");
  tasks.add("grid", columns_task("grid"),
            "void columns(const float* in, float* out, int M, int N) { out[N] = in[M]; }\n"
            "//@ launch columns<<<M, 32>>>(in, out, M, N)\n");
  add_cuda_task(tasks, "gpu_good", "ceil_div(M, 128), 128");
  add_cuda_task(tasks, "gpu_block", "1, M");
  add_cuda_task(tasks, "gpu_shared", "ceil_div(M, 128), 128, 200 * 1024");
  const auto any = optimize({"--check", tasks.folder(), tasks.path("missing.json")});
  CHECK(any.code == 2);
  CHECK(any.error.empty());
  const auto text = shown(any.output);
  CHECK(std::count(any.output.begin(), any.output.end(), '\n') == 8);
  CHECK(text == Contains("/good.json: ok, 2 sizes, 1 launch\n"));
  CHECK(text == Contains("\"in\" is called i32, but line 1 of the kernel declares `const float* in`"));
  CHECK(text == Contains("the kernel has no text"));
  CHECK(text == Contains("a CPU kernel is launched without a grid"));
  CHECK(text == Contains("/gpu_good.json: ok"));
  CHECK(text == Contains("the block has threads: 4096 along axis 0"));
  CHECK(text == Contains("/gpu_shared.json: ok"));
  CHECK(text == Contains("missing.json: [mtmc.task.001]"));
  CHECK(shown(optimize({"--check", tasks.path("gpu_shared.json"), "--device", "A100"}).output) ==
        Contains("a block asks for 204800 bytes of shared memory; at most 166912"));
  const auto good = optimize({"--check", tasks.path("good.json"), "--json"});
  CHECK(good.code == 0);
  CHECK(json_lines(good.output).at(0)["ok"] == true);
}

TEST_CASE("mtmc-optimize: a shape declared too small is named, not taken for a kernel that varies") {
  Tasks tasks;
  auto task = columns_task("small");
  task["arguments"][0]["shape"] = {"M", "N - 1"};
  const auto done = optimize({tasks.add("small", task), "--steps", "0"});
  CHECK(done.code == 2);
  CHECK(shown(done.error) == Contains("the start kernel reads beyond argument in"));
  CHECK(shown(done.error) == Contains("declared shape [M, N - 1] = [7, 12]"));
}

TEST_CASE("mtmc-optimize: a start kernel that never ends is announced, and its limit can be changed") {
  Tasks tasks;
  const auto done = optimize({tasks.add("endless", columns_task("endless"),
                                        "void columns(const float* in, float* out, int M, int N) {\n"
                                        "  for (volatile int i = 0; i < 1;) out[0] = in[0];\n}\n"
                                        "//@ launch columns(in, out, M, N)\n"),
                              "--start-seconds", "1"});
  CHECK(done.code == 2);
  CHECK(shown(done.output) == Contains("preparing endless since "));
  CHECK(shown(done.output) == Contains("one call of it may take 1.0 s"));
  CHECK(shown(done.error) == Contains("did not finish within 1 s"));
  CHECK(shown(done.error) == Contains("or allow more time for one call (--start-seconds)"));
}
