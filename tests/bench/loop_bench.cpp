// What the loop itself costs per step: everything but policy, coder, region finder and evaluator, which
// answer at once here. Budget (design, section 9): under 1 ms a step. Counter `step` is the processor time
// of one step, threads included: wall-clock time would measure what else the machine does.
// The journal lies in memory (/dev/shm): a disk takes about 0.3 ms more a step for the files it creates.

#include <mtmc/loop/loop.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <benchmark/benchmark.h>

#include <optional>
#include <string>
#include <vector>

namespace {

/// A kernel of 100 lines, 7 KB.
std::string source_text() {
  std::string text = "//@ launch play(A, B, N)\nvoid play(const float* A, float* B, int N) {\n";
  for (int i = 0; i < 100; ++i)
    text += "  for (int i = 0; i < N; ++i) B[i] += A[i] * " + std::to_string(i) + ".5f; // statement\n";
  return text + "}\n";
}

mtmc::Task task() {
  mtmc::Task result;
  result.name = "bench";
  result.kernel = {mtmc::languages::cpp, source_text()};
  mtmc::ProblemSize size;
  size.symbols = {{"N", 1024}};
  result.sizes = {size, size, size};
  return result;
}

struct Policy {
  [[nodiscard]] mtmc::ActionDistribution
  distribution(const mtmc::Observation&, std::span<const mtmc::Action> legal, std::stop_token) const {
    mtmc::ActionDistribution answer;
    answer.probabilities.assign(legal.size(), 1.0 / static_cast<double>(legal.size() - 1));
    answer.probabilities.back() = 0;
    return answer;
  }
};

struct Coder {
  [[nodiscard]] mtmc::Draft implement(const mtmc::CodingRequest& request, std::stop_token) const {
    mtmc::Draft draft;
    draft.kernel = request.seen.kernel;
    draft.kernel->source += "// " + request.action.key() + std::to_string(request.sample) + "\n";
    draft.raw_text = draft.kernel->source;
    return draft;
  }
};

/// Twenty regions with the facts of a real nest: 60 actions.
struct Finder {
  [[nodiscard]] mtmc::Structure find(const mtmc::Task&, const mtmc::Kernel& kernel) const {
    mtmc::Structure structure;
    structure.kernel_id = kernel.id();
    for (int i = 0; i < 20; ++i) {
      mtmc::Region region;
      region.label = "the loop " + std::to_string(i) + " of play";
      region.path = "play/" + std::to_string(i);
      region.first_line = region.last_line = i + 3;
      region.facts.loops.resize(3);
      for (auto& loop : region.facts.loops) loop.variable = loop.lower = loop.upper = "i";
      region.facts.accesses.resize(4);
      for (auto& access : region.facts.accesses) access.strides.resize(3, 1);
      region.facts.dependences.resize(2);
      region.facts.tileable = region.facts.interchangeable = true;
      structure.regions.push_back(region);
    }
    return structure;
  }
};

struct Evaluator {
  mtmc::Device machine;
  [[nodiscard]] const mtmc::Device& device() const { return machine; }
  [[nodiscard]] mtmc::Evaluation evaluate(const mtmc::EvaluationRequest& request, std::stop_token) const {
    mtmc::Evaluation evaluation{mtmc::Verdict::correct};
    evaluation.seconds = 1.0 / static_cast<double>(request.candidate.source.size());
    for (const auto& size : request.task.sizes) {
      mtmc::SizeEvaluation one;
      one.size = size;
      one.seconds = evaluation.seconds;
      evaluation.sizes.push_back(one);
    }
    for (const char* name : {"compiler", "host", "governor", "load"})
      evaluation.environment[name] = "something";
    return evaluation;
  }
};

void run(benchmark::State& state, const mtmc::LoopOptions& options, bool journal) {
  const auto work = task();
  std::size_t drafts = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::optional<mtmc::TemporaryFolder> folder{std::in_place,
                                                mtmc::TemporaryFolderOptions{.base = "/dev/shm"}};
    auto here = options;
    if (journal) here.output = folder->path();
    mtmc::Loop loop{Policy{}, Coder{}, Finder{}, Evaluator{}, here};
    state.ResumeTiming();
    const auto result = loop.optimize(work);
    state.PauseTiming();
    drafts += result.trajectory.size();
    folder.reset();
    state.ResumeTiming();
    if (result.steps != options.max_steps) state.SkipWithError("the run ended early");
  }
  state.counters["step"] = benchmark::Counter(static_cast<double>(state.iterations()) * options.max_steps,
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["draft"] = benchmark::Counter(static_cast<double>(drafts),
                                               benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void chain_in_memory(benchmark::State& state) { run(state, {.max_steps = 16}, false); }
void chain_with_journal(benchmark::State& state) { run(state, {.max_steps = 16}, true); }
void four_samples_with_journal(benchmark::State& state) { run(state, {.max_steps = 16, .samples = 4}, true); }
void beam_of_three_with_journal(benchmark::State& state) { run(state, {.max_steps = 16, .beam = 3}, true); }

BENCHMARK(chain_in_memory)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(chain_with_journal)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(four_samples_with_journal)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(beam_of_three_with_journal)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

} // namespace
