#include <mtmc/coder/example_library.hpp>
#include <mtmc/coder/prompt.hpp>
#include <mtmc/core/action.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;

namespace {

CodingRequest request() {
  CodingRequest asked;
  auto& seen = asked.seen;
  seen.task.name = "scale";
  seen.kernel = {languages::cuda,
                 "//@ launch scale<<<ceil_div(N, 128), 128>>>(x, y, N)\n"
                 "__global__ void scale(const float* x, float* y, int N) {\n"
                 "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "  if (i < N) y[i] = 2 * x[i];\n"
                 "}\n",
                 {}};
  seen.task.kernel = seen.kernel;
  seen.device.name = "A GPU";
  HistoryEntry tried;
  tried.action_text = "tiling the threads";
  tried.verdict = Verdict::wrong_result;
  tried.message = "y[0] is wrong";
  seen.history = {tried};
  Evaluation evaluation{Verdict::correct};
  evaluation.seconds = 1e-3;
  seen.evaluation = evaluation;
  asked.action = {.kind = Action::Kind::optimize,
                  .optimization = "vectorization",
                  .verb = "vectorizing",
                  .region = "scale",
                  .label = "the loads of scale",
                  .first_line = 4,
                  .last_line = 4};
  asked.intent = "Let one instruction work on several elements.";
  asked.principle = "Load 16 bytes at once.";
  return asked;
}

std::vector<std::string> ids(const Prompt& prompt) {
  std::vector<std::string> result;
  for (const auto& part : prompt.parts)
    if (!part.text.empty()) result.push_back(part.id);
  return result;
}

const Example& example() {
  static const auto library = ExampleLibrary::built_in();
  return *library.find("vectorization", languages::cuda).front();
}

} // namespace

TEST_CASE("prompts for GPUs forbid sums in changing order, unless the task allows them") {
  auto asked = request();
  const auto text = [&] { return build_prompt(asked, {}, {}).text(); };
  CHECK(text().find("without atomic operations on floating-point numbers") != std::string::npos);
  asked.seen.task.atomics = true;
  CHECK(text().find("atomic") == std::string::npos);
}

TEST_CASE("what is the same in every step of a task comes first, the action last") {
  const Example* shown = &example();
  const auto prompt = build_prompt(request(), {&shown, 1});
  CHECK(ids(prompt) == std::vector<std::string>{"role", "rules", "format", "hardware", "task", "examples",
                                                "history", "kernel", "speed", "region", "action"});
  const auto messages = prompt.messages();
  REQUIRE(messages.size() == 2);
  CHECK(messages[0].role == "system");
  CHECK(messages[1].role == "user");
  auto next = request();
  next.seen.step = 5;
  next.seen.history.push_back(next.seen.history.front());
  const auto later = build_prompt(next, {&shown, 1}).messages();
  CHECK(later[0] == messages[0]);
  const auto same =
      static_cast<std::size_t>(std::mismatch(later[1].content.begin(), later[1].content.end(),
                                             messages[1].content.begin(), messages[1].content.end())
                                   .first -
                               later[1].content.begin());
  CHECK(later[1].content.substr(0, same).find(example().after) != std::string::npos);
}

TEST_CASE("kernel, region, action, intent, principle, history, speed and example are said") {
  const Example* shown = &example();
  const auto text = build_prompt(request(), {&shown, 1}).text();
  for (const std::string& part :
       {request().seen.kernel.source, std::string("vectorizing the loads of scale in line 4"),
        std::string("  if (i < N) y[i] = 2 * x[i];\n```"), std::string("Load 16 bytes at once."),
        std::string("Let one instruction work"),
        std::string("tiling the threads -> wrong_result (y[0] is wrong)"), std::string("1 ms"),
        std::string("A GPU"), example().before, example().why}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("equal requests give equal prompts; another sample is asked for other parameters") {
  CHECK(build_prompt(request(), {}) == build_prompt(request(), {}));
  auto second = request();
  second.sample = 1;
  CHECK(build_prompt(second, {}).find(prompt_part::action)->text.find("attempt 2") != std::string::npos);
}

TEST_CASE("a plain prompt is the same on every machine and in every run of the same steps") {
  auto here = request();
  here.seen.history.front().verdict = Verdict::correct;
  here.seen.history.front().speed_up = SpeedUp{.value = 2.5, .low = 2.4, .high = 2.6};
  here.repair = RepairContext{here.seen.kernel, {}};
  here.repair->evaluation.verdict = Verdict::wrong_result;
  here.repair->evaluation.diagnostics.emplace_back().message = "y[3] is 1.25, not 2.5";
  auto there = here;
  there.seen.device.name = "Another GPU";
  there.seen.evaluation->seconds = 5e-3;
  there.seen.history.front().speed_up = SpeedUp{.value = 3.5, .low = 3.4, .high = 3.6};
  there.seen.history.front().message = "in other words";
  there.repair->evaluation.diagnostics.front().message = "y[7] is 0.5, not 4";
  const PromptOptions plain{.plain = true};
  CHECK(build_prompt(here, {}) != build_prompt(there, {}));
  CHECK(build_prompt(here, {}, plain) == build_prompt(there, {}, plain));
  const auto text = build_prompt(here, {}, plain).text();
  CHECK(text.find("tiling the threads -> correct\n") != std::string::npos);
  CHECK(text.find("failed: wrong_result") != std::string::npos);

  // What was wrong with an answer's form is said: it is the same everywhere.
  here.repair->evaluation.rule = "answer";
  here.repair->evaluation.diagnostics.front().message = "the answer was cut";
  CHECK(build_prompt(here, {}, plain).text().find("the answer was cut") != std::string::npos);
}

TEST_CASE("for want of room pieces go in a stated order, and never what the answer depends on") {
  const std::vector<const Example*> shown{&example(), &example()};
  const auto whole = build_prompt(request(), shown);
  std::vector<std::string> dropped;
  for (auto most = whole.bytes(); most > 0; most = most > 50 ? most - 50 : 0) {
    const auto prompt = build_prompt(request(), shown, {.max_bytes = most});
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < whole.parts.size(); ++i)
      if (prompt.parts[i].text.empty() && !whole.parts[i].text.empty())
        missing.push_back(whole.parts[i].id + std::to_string(i));
    REQUIRE(missing.size() >= dropped.size());
    if (prompt.bytes() > most) break;
    dropped = missing;
  }
  const auto least = build_prompt(request(), shown, {.max_bytes = 1});
  CHECK(ids(least) ==
        std::vector<std::string>{"role", "rules", "format", "task", "kernel", "region", "action"});
  auto prompt = whole;
  CHECK(prompt.fit(whole.bytes() - 1) == std::vector<std::string>{"examples"});
  CHECK(prompt.fit(1) == std::vector<std::string>{"examples", "history", "speed", "hardware"});
}

TEST_CASE("a fence in a kernel does not end the fence around it") {
  auto asked = request();
  asked.seen.kernel.source += "// ``` and ````\n";
  const auto text = build_prompt(asked, {}).text();
  CHECK(text.find("`````cuda\n") != std::string::npos);
}

TEST_CASE("each language gets its own rules, marker and fence") {
  const auto text_for = [](const Language& language) {
    auto asked = request();
    asked.seen.kernel.language = language;
    return build_prompt(asked, {}).text();
  };
  CHECK(text_for(languages::cpp).find("OpenMP") != std::string::npos);
  CHECK(text_for(languages::cpp).find("```cpp") != std::string::npos);
  CHECK(text_for(languages::cuda).find("extern __shared__") != std::string::npos);
  CHECK(text_for({"a language of a host", Syntax::python}).find("\"#@\"") != std::string::npos);
  for (const auto& language : {languages::triton, languages::pytorch}) { // modules are recorded
    CHECK(text_for(language).find("class ModelNew(nn.Module)") != std::string::npos);
    CHECK(text_for(language).find("launch line") == std::string::npos);
    CHECK(text_for(language).find("```python") != std::string::npos);
  }
}

TEST_CASE("free text is asked for as it is") {
  auto asked = request();
  asked.action = {.kind = Action::Kind::free_text, .free_text = "Use two accumulators."};
  const auto prompt = build_prompt(asked, {});
  CHECK(ids(prompt).back() == "action");
  CHECK(prompt.text().find("Use two accumulators.") != std::string::npos);
  CHECK(prompt.text().find("# The region") == std::string::npos);
}

TEST_CASE("a whole kernel is asked for as such, with its own bound beside what it takes") {
  auto asked = request();
  asked.action.optimization = "rewriting";
  asked.action.verb = "rewriting";
  asked.seen.task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                               {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
  asked.seen.task.sizes = {{.symbols = {{"N", 4'000'000}}}};
  asked.seen.device.memory_bandwidth = 3.2e12;
  const auto text = build_prompt(asked, {}).text();
  CHECK(text.find("as fast as you can make it") != std::string::npos);
  CHECK(text.find("nothing else changed") == std::string::npos);
  CHECK(text.find("moves at least 32 MB: 10 us, 1 % of what the device can") != std::string::npos);
}
