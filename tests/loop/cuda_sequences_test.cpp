// The hand-made CUDA sequences (tests/data/sequences/cuda): their steps follow each other through the search,
// their kernels compile, and on a GPU the whole loop runs by them.

#include <mtmc/actions/replay_file.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/backend/cuda/driver.hpp>
#include <mtmc/coder/replay.hpp>
#include <mtmc/cuda_evaluator.hpp>
#include <mtmc/loop/loop.hpp>
#include <mtmc/policy/replay.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <cstdio>

using namespace mtmc;

namespace {

const std::string repository = MTMC_REPOSITORY;
constexpr const char* names[] = {"gemm", "softmax", "gemm_bias_gelu"};

Task task_of(const std::string& name) {
  return load_task(repository + "/examples/tasks/cuda/" + name + ".json");
}
ReplaySequence sequence_of(const std::string& name) {
  return load_replay_sequence(repository + "/tests/data/sequences/cuda/" + name);
}

/// Finds every kernel right, and twice as fast as the one before.
struct Admirer {
  Device machine = [] {
    Device device;
    device.name = "a GPU";
    device.kind = "gpu";
    device.compute_units = 132;
    return device;
  }();
  [[nodiscard]] const Device& device() const { return machine; }
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token) const {
    Evaluation evaluation{Verdict::correct};
    evaluation.seconds = 1;
    if (request.incumbent) {
      evaluation.speed_up = SpeedUp{2, 1.9, 2.1, 0.95, {}};
      evaluation.comparison = Comparison::faster;
    }
    return evaluation;
  }
};

template <class Judge> Result replay(const std::string& name, Judge&& judge, double minimum_gain) {
  const auto sequence = sequence_of(name);
  LoopOptions options;
  options.max_steps = 20;
  options.repairs = 0;
  options.minimum_gain = minimum_gain;
  options.action_space = action_space_of(sequence);
  Loop loop{ReplayPolicy{sequence}, ReplayCoder{sequence}, AstRegionFinder{}, std::forward<Judge>(judge),
            options};
  return loop.optimize(task_of(name));
}

} // namespace

TEST_CASE("the steps of each CUDA sequence follow each other from the task's kernel to the last one") {
  for (const auto* name : names) {
    CAPTURE(name);
    const auto sequence = sequence_of(name);
    const auto result = replay(name, Admirer{}, 1);
    CHECK(result.stop_reason == StopReason::stop_action);
    REQUIRE(result.history.size() == sequence.steps.size());
    for (std::size_t i = 0; i < sequence.steps.size(); ++i) {
      CHECK(result.history[i].kept);
      CHECK(result.history[i].action_key == sequence.steps[i].optimization + '|' + sequence.steps[i].region);
      CHECK_FALSE(sequence.steps[i].draft.message.empty());
    }
    CHECK(result.best == sequence.steps.back().draft.kernel);
  }
}

TEST_CASE("every kernel of the CUDA sequences compiles, without registers spilled to memory") {
  try {
    const detail::CudaCompiler compiler({}, "sm_90a");
    for (const auto* name : names) {
      const auto task = task_of(name);
      for (const auto& step : sequence_of(name).steps) {
        INFO(step.draft.kernel->source);
        const auto plan = plan_launches(*step.draft.kernel, task, task.sizes.front(), 132);
        const auto compiled = compiler.compile(*step.draft.kernel, plan, Deadline::max(), {});
        CHECK_FALSE(compiled.cubin.empty());
        CHECK(compiled.diagnostics.empty());
        CHECK(compiled.resources.at("spill_store_bytes") == 0);
      }
    }
  } catch (const Error& error) {
    REQUIRE(error.id() == error_id::backend_compiler);
    std::printf("Not compiled: %s\n", error.what());
  }
}

TEST_CASE("on a GPU the whole loop runs by the CUDA sequences, and every kernel is right") {
  try {
    const detail::CudaDriver driver;
  } catch (const Error& error) {
    std::printf("Not run: %s\n", error.what());
    return;
  }
  WorkerOptions worker;
  worker.command = {std::string(MTMC_EXAMPLES) + "/mtmc-worker"};
  CudaEvaluator evaluator{{}, {}, worker};
  for (const auto* name : names) {
    CAPTURE(name);
    const auto result = replay(name, evaluator, 0.1);
    CHECK_FALSE(result.error);
    CHECK(result.history.size() == sequence_of(name).steps.size());
    for (const auto& entry : result.history) {
      CAPTURE(entry.action_text);
      CAPTURE(entry.message);
      CHECK(entry.verdict == Verdict::correct);
    }
    CHECK(result.improved());
  }
}
