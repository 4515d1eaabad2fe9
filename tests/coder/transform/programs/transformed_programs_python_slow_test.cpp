// What the offline coder makes of texts with Triton kernels, run by Python against what it was made of.
#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/python/python_region_finder.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../../../backend/python/python_for_tests.hpp"
#include "../../example_tasks.hpp"
#include "program_draft.hpp"
#include "program_texts.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

/// The feasible actions on a text but for `stop`.
std::vector<Action> feasible_on(const std::string& text) {
  CodingRequest about = program_request(text, "tiling|");
  const Structure structure = PythonRegionFinder{}.find(about.seen.task, about.seen.kernel);
  auto actions = TransformCoder{}.feasible_actions(
      about, ActionSpace::extended().legal_actions(structure, about.seen.device));
  std::erase_if(actions, [](const Action& action) { return action.kind != Action::Kind::optimize; });
  return actions;
}

/// Texts after up to four feasible actions, one after the other, by their keys.
std::map<std::string, std::string> some_sequences(const std::string& text, int count) {
  std::map<std::string, std::string> sequences;
  std::uint64_t state = 0x9E3779B97F4A7C15U;
  const auto below = [&state](std::size_t number) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<std::size_t>(state >> 11) % number;
  };
  for (int sequence = 0; sequence < count; ++sequence) {
    std::string after = text, keys;
    for (int step = 0; step < 4; ++step) {
      const auto actions = feasible_on(after);
      if (actions.empty()) break;
      const Action& action = actions[below(actions.size())];
      const int sample = static_cast<int>(below(4));
      const std::string key = action.optimization + '|' + action.region;
      const Draft draft = draft_of_text(after, key, sample);
      if (!draft.kernel) continue;
      after = draft.kernel->source;
      keys += key + '@' + std::to_string(sample) + ' ';
    }
    if (!keys.empty()) sequences[keys] = after;
  }
  return sequences;
}

/// All variants of all feasible actions on a text, by "key@sample".
std::map<std::string, std::string> all_variants(const std::string& text) {
  std::map<std::string, std::string> variants;
  for (const Action& action : feasible_on(text)) {
    for (int sample = 0;; ++sample) {
      const std::string key = action.optimization + '|' + action.region;
      const Draft draft = draft_of_text(text, key, sample);
      if (!draft.kernel) {
        CHECK(draft.failure == DraftFailure::declined);
        CHECK_MESSAGE(draft.message.starts_with("no further variant"), key, ": ", draft.message);
        break;
      }
      variants[key + '@' + std::to_string(sample)] = draft.kernel->source;
    }
  }
  return variants;
}

void compare(const std::string& python, const nlohmann::json& programs) {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() + "/programs.json", programs.dump());
  ProcessOptions process;
  process.arguments = {
      python, std::string(MTMC_REPOSITORY) + "/tests/coder/transform/programs/transformed_programs.py",
      folder.path()};
  process.deadline = std::chrono::minutes(10);
  const auto done = run_process(process);
  MESSAGE(done.output);
  CHECK_MESSAGE(done.succeeded(), done.error);
}

nlohmann::json described(const std::string& name, const std::string& text) {
  return {{"name", name},
          {"text", text},
          {"constructor", nlohmann::json::array()},
          {"variants", all_variants(text)}};
}

} // namespace

TEST_CASE("every variant of the specifications' texts gives what the text gave") {
  const auto python = python_for_tests();
  if (!python) return;
  auto programs = nlohmann::json::array();
  for (const auto& program : program_texts::all()) {
    auto one = described(program.name, program.text);
    CHECK_MESSAGE(!one["variants"].empty(), program.name);
    one["calls"] = nlohmann::json::parse(program.calls);
    programs.push_back(std::move(one));
  }
  compare(python->interpreter, programs);
}

TEST_CASE("every variant of both sides of the built-in examples does") {
  const auto python = python_for_tests();
  if (!python) return;
  auto programs = nlohmann::json::array();
  for (const auto& example : example_tasks::built_in(languages::triton))
    for (const auto* text : {&example.before, &example.after}) {
      auto one = described(example.optimization + (text == &example.after ? " after" : " before"), *text);
      const auto said = nlohmann::json::parse(example.task);
      one["constructor"] = said["constructor"];
      one["calls"] = said["calls"];
      programs.push_back(std::move(one));
    }
  compare(python->interpreter, programs);
}

TEST_CASE("and is recorded and lowered") {
  const auto python = python_for_tests();
  if (!python) return;
  for (const auto& program : program_texts::all())
    for (const auto& [key, text] : all_variants(program.text)) {
      CAPTURE(program.name);
      CAPTURE(key);
      RecordingRequest request;
      request.text = text;
      const auto calls = nlohmann::json::parse(program.calls);
      for (const auto& shape : calls[0])
        request.inputs.push_back(tensor_input(shape.get<std::vector<std::int64_t>>()));
      const auto recording = shared_recorder(*python).record(request);
      for (const auto& diagnostic : recording.diagnostics) FAIL_CHECK(diagnostic.message);
      if (!recording.plan) continue;
      for (const auto& kernel : recording.plan->kernels)
        for (const auto& diagnostic :
             shared_compiler(*python).lower(kernel, recording.plan->target).diagnostics)
          FAIL_CHECK(diagnostic.message);
    }
}

TEST_CASE("one action after another gives what the text gave") {
  const auto python = python_for_tests();
  if (!python) return;
  auto programs = nlohmann::json::array();
  const auto add = [&](const std::string& name, const std::string& text, const nlohmann::json& constructor,
                       const nlohmann::json& calls) {
    programs.push_back({{"name", name},
                        {"text", text},
                        {"constructor", constructor},
                        {"calls", calls},
                        {"variants", some_sequences(text, 6)}});
  };
  for (const auto& program : program_texts::all())
    add(program.name, program.text, nlohmann::json::array(), nlohmann::json::parse(program.calls));
  for (const auto& example : example_tasks::built_in(languages::triton)) {
    const auto said = nlohmann::json::parse(example.task);
    add(example.optimization, example.before, said["constructor"], said["calls"]);
  }
  compare(python->interpreter, programs);
}

TEST_CASE("every variant of what a language model wrote is Python, and does where it runs here") {
  const auto python = python_for_tests();
  if (!python) return;
  // Small calls of modules that the interpreter can run.
  const std::map<std::string, std::pair<std::string, std::string>> calls{
      {"63_Gemm_ReLU_Divide", {"[24, 70, 2.0]", "[[[5, 24]]]"}},
      {"53_Gemm_Scaling_Hardtanh_GELU", {"[24, 70, 0.5, -2, 2]", "[[[5, 24]]]"}},
      {"43_MinGPTCausalAttention", {"[16, 2, 0.0, 0.0, 32]", "[[[2, 7, 16]]]"}},
      {"33_BatchNorm", {"[5]", "[[[3, 5, 6, 7]]]"}},
      {"13_DenseNet121TransitionLayer", {"[6, 5]", "[[[2, 6, 4, 6]]]"}},
      {"23_Conv3d_GroupNorm_Mean", {"[3, 6, 3, 2]", "[[[2, 3, 4, 5, 6]]]"}},
      {"83_Conv3d_GroupNorm_Min_Clamp_Dropout", {"[3, 6, 3, 2, 0.0, 1.0, 0.0]", "[[[2, 3, 4, 5, 6]]]"}},
      {"93_ConvTranspose2d_Add_Min_GELU_Multiply", {"[64, 16, 4, 2, 0.5, 2.0]", "[[[2, 64, 5, 9]]]"}}};
  auto programs = nlohmann::json::array();
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(MTMC_REPOSITORY) + "/tests/bench/python_answers")) {
    const std::string answer = read_file(file.path().string());
    const auto begin = answer.find("```python\n");
    const auto end = answer.rfind("```");
    if (begin == std::string::npos || end <= begin) continue;
    const std::string name = file.path().stem().string();
    auto one = described(name, answer.substr(begin + 10, end - begin - 10));
    if (const auto found = calls.find(name); found != calls.end()) {
      one["constructor"] = nlohmann::json::parse(found->second.first);
      one["calls"] = nlohmann::json::parse(found->second.second);
    }
    programs.push_back(std::move(one));
  }
  CHECK(programs.size() > 20);
  compare(python->interpreter, programs);
}
