// A search of 8 steps all of whose kernels are known to a `RememberingEvaluator`, as most searches of a
// collection are: with parts that remember and without, with a journal on the disk, in memory, and without
// one. Asked: a few tens of ms. Counter `journal`: bytes of the journal.

#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/coder/transform.hpp>
#include <mtmc/loop/loop.hpp>
#include <mtmc/loop/run_folder.hpp>
#include <mtmc/policy/random.hpp>
#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/train/remembering_evaluator.hpp>
#include <mtmc/train/remembering_parts.hpp>

#include <benchmark/benchmark.h>

#include <optional>
#include <string>

namespace {

/// Takes every kernel for right, and each for a little faster.
struct Evaluator {
  mtmc::Device machine{};
  [[nodiscard]] const mtmc::Device& device() const { return machine; }
  [[nodiscard]] mtmc::Evaluation evaluate(const mtmc::EvaluationRequest& request, std::stop_token) const {
    mtmc::Evaluation evaluation{mtmc::Verdict::correct};
    const double ratio = 1 + 1e-5 * static_cast<double>(request.candidate.source.size());
    evaluation.seconds = 1e-3 / ratio;
    evaluation.speed_up = mtmc::SpeedUp{ratio, 0.99 * ratio, 1.01 * ratio, 0.95, {}};
    for (const auto& size : request.task.sizes) {
      mtmc::SizeEvaluation one;
      one.size = size;
      evaluation.sizes.push_back(one);
    }
    for (const char* name : {"compiler", "host", "governor", "load", "clock", "memory", "isolation", "flags"})
      evaluation.environment[name] = "something of forty characters, more or less";
    return evaluation;
  }
};

struct Parts {
  mtmc::RememberingRegionFinder finder{mtmc::AstRegionFinder{}};
  mtmc::RememberingCoder coder{mtmc::TransformCoder{}};
};

/// Searches with the seeds 0 to 7, first to learn the kernels, then by turns.
template <class Search> void run(benchmark::State& state, const char* base, const Search& search) {
  mtmc::LoopOptions options;
  options.repairs = 0;
  options.samples = 1;
  options.selection = mtmc::Selection::sample;
  options.minimum_gain = 0.5;
  options.threads = 1;
  double bytes = 0;
  std::uint64_t turn = 0;
  for (; turn < 8; ++turn) {
    options.seed = turn;
    search(options);
  }
  for (auto _ : state) {
    state.PauseTiming();
    std::optional<mtmc::TemporaryFolder> folder;
    if (base != nullptr) folder.emplace(mtmc::TemporaryFolderOptions{.base = base});
    options.output = folder ? folder->path() : std::string{};
    options.seed = turn++ % 8;
    state.ResumeTiming();
    const auto result = search(options);
    state.PauseTiming();
    if (result.error) state.SkipWithError(result.error->what());
    if (folder) bytes += static_cast<double>(mtmc::detail::file_size(mtmc::journal_path(result.folder)));
    folder.reset();
    state.ResumeTiming();
  }
  state.counters["journal"] = benchmark::Counter(bytes, benchmark::Counter::kAvgIterations);
}

mtmc::Task task() { return mtmc::load_task(MTMC_REPOSITORY "/examples/tasks/cpu/gemm_bias_relu.json"); }

template <bool Remembers> void known(benchmark::State& state, const char* base) {
  const auto work = task();
  Parts parts;
  mtmc::AstRegionFinder finder;
  mtmc::TransformCoder coder;
  mtmc::RememberingEvaluator evaluator{Evaluator{}};
  run(state, base, [&](const mtmc::LoopOptions& options) {
    if constexpr (Remembers) {
      mtmc::Loop loop{mtmc::RandomPolicy{}, parts.coder, parts.finder, evaluator, options};
      return loop.optimize(work);
    } else {
      mtmc::Loop loop{mtmc::RandomPolicy{}, coder, finder, evaluator, options};
      return loop.optimize(work);
    }
  });
}

void known_kernels(benchmark::State& state, const char* base) { known<true>(state, base); }
void forgetful_parts(benchmark::State& state, const char* base) { known<false>(state, base); }

BENCHMARK_CAPTURE(known_kernels, journal_on_disk, "/tmp")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(known_kernels, journal_in_memory, "/dev/shm")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(known_kernels, no_journal, nullptr)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(forgetful_parts, journal_on_disk, "/tmp")->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
