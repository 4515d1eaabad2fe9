// The sequences of bench/steps_python and the pairs of bench/python_pairs are modules that somebody could
// have written: their steps can be read, define ModelNew, and are offered where they are taken.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/actions/replay_file.hpp>
#include <mtmc/analysis/python/python_region_finder.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/coder/module_rules.hpp>
#include <mtmc/support/file_io.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

namespace {

const std::string bench = MTMC_REPOSITORY "/tests/bench";

/// Whether a text is a module with kernels that stands for a problem's `Model`.
bool is_written_module(const mtmc::Kernel& kernel) {
  const auto& text = kernel.source;
  return mtmc::detail::language_of_module(mtmc::languages::triton, text) == mtmc::languages::triton &&
         text.find("\nclass ModelNew(nn.Module):\n") != std::string::npos &&
         text.find("\n    def forward(self, ") != std::string::npos;
}

bool launches_kernel(const mtmc::Structure& structure) {
  return std::any_of(structure.regions.begin(), structure.regions.end(), [](const mtmc::Region& region) {
    return region.kind == mtmc::RegionKind::launch && region.path.starts_with("launch:");
  });
}

} // namespace

TEST_CASE(
    "written sequences of modules can be read, and each step is offered by the module that it starts from") {
  const auto device = mtmc::find_device_preset("H100")->device;
  int sequences = 0;
  for (const auto& entry : std::filesystem::directory_iterator(bench + "/steps_python")) {
    if (!entry.is_directory()) continue;
    CAPTURE(entry.path().string());
    ++sequences;
    const auto sequence = mtmc::load_replay_sequence(entry.path().string());
    CHECK(sequence.steps.size() >= 4);
    CHECK(sequence.steps.size() <= 6);
    std::map<std::string, mtmc::Structure> structures;
    for (const auto& step : sequence.steps) {
      CAPTURE(step.optimization + '|' + step.region);
      REQUIRE(step.draft.kernel);
      CHECK(step.draft.kernel->language == mtmc::languages::triton);
      CHECK(is_written_module(*step.draft.kernel));
      CHECK(!step.draft.message.empty());
      CHECK(!step.region.empty());
      // The first one starts from the problem, which is not ours to have here.
      CHECK(step.parent.empty() == structures.empty());
      if (!step.parent.empty()) {
        REQUIRE(structures.contains(step.parent));
        const auto actions = mtmc::ActionSpace::extended().legal_actions(structures.at(step.parent), device);
        CHECK(std::any_of(actions.begin(), actions.end(),
                          [&](const mtmc::Action& action) { return mtmc::carries_out(step, action); }));
      }
      const auto structure = mtmc::PythonRegionFinder{}.find({}, *step.draft.kernel);
      CHECK(launches_kernel(structure));
      structures[step.draft.kernel->id()] = structure;
    }
  }
  CHECK(sequences == 3);
}

TEST_CASE("written pairs are a problem and a module with kernels for it") {
  int pairs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(bench + "/python_pairs")) {
    if (!entry.is_directory()) continue;
    CAPTURE(entry.path().string());
    ++pairs;
    const auto problem = mtmc::read_file(entry.path().string() + "/problem.py");
    for (const auto* part :
         {"class Model(nn.Module):\n", "\ndef get_inputs():\n", "\ndef get_init_inputs():\n"})
      CHECK(problem.find(part) != std::string::npos);
    const mtmc::Kernel candidate{
        mtmc::languages::triton, mtmc::read_file(entry.path().string() + "/candidate.py"), {}};
    CHECK(is_written_module(candidate));
    CHECK(launches_kernel(mtmc::PythonRegionFinder{}.find({}, candidate)));
  }
  CHECK(pairs >= 20);
}

TEST_CASE("sequences that a language model wrote can be read, and begin with the problem") {
  int sequences = 0;
  for (const auto& entry : std::filesystem::directory_iterator(bench + "/steps_model")) {
    if (!entry.is_directory()) continue;
    CAPTURE(entry.path().string());
    ++sequences;
    const auto sequence = mtmc::load_replay_sequence(entry.path().string());
    REQUIRE_FALSE(sequence.steps.empty());
    CHECK(sequence.steps.front().parent.empty());
    for (const auto& step : sequence.steps) {
      REQUIRE(step.draft.kernel);
      CHECK(is_written_module(*step.draft.kernel));
      CHECK(!step.region.empty());
    }
  }
  CHECK(sequences == 25);
}
