// Is the interval of a speed-up honest on a GPU, and what does an evaluation cost? The start kernel of each
// CUDA task is judged against itself, a quarter of the times for promotion. Asked for: the 95 % interval
// covers 1.0 as often as it says, by an exact binomial bound over all tasks: exit code 1 if what was seen, or
// worse, would happen less than once in 100 times if the promise were kept; 77 where there is no GPU.
//
//   bench_cuda_interval                                       20 evaluations of each task
//   bench_cuda_interval --evaluations 40 --product 4096       and a matrix product of that size: the tiled
//                                                             kernel, the start kernel, and a wrong one
//
// Everything happens in this process, the compiler, too.

#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cuda.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using Evaluator = mtmc::KernelEvaluator<mtmc::CudaBackend>;

constexpr double confidence = 0.95;

/// Probability of `missed` or more of `count` misses if each had the probability `1 - confidence`.
double chance_of_misses(int missed, int count) {
  double chance = 0;
  for (int k = missed; k <= count; ++k)
    chance += std::exp(std::lgamma(count + 1.0) - std::lgamma(k + 1.0) - std::lgamma(count - k + 1.0) +
                       k * std::log(1 - confidence) + (count - k) * std::log(confidence));
  return chance;
}

mtmc::Evaluation judge(Evaluator& evaluator, const mtmc::Task& task, mtmc::Kernel candidate,
                       mtmc::Purpose purpose, int serial) {
  candidate.source += "// " + std::to_string(serial) + '\n';
  return evaluator.evaluate({task, std::move(candidate), task.kernel, purpose, {}}, {});
}

/// Counts the intervals without 1.0.
int judge_against_itself(Evaluator& evaluator, const mtmc::Task& task, int evaluations) {
  evaluator.prepare(task, {});
  int missed = 0;
  double width = 0;
  double cost = 0;
  double seconds = 0;
  for (int i = 0; i < evaluations; ++i) {
    const auto purpose = i % 4 == 3 ? mtmc::Purpose::promote : mtmc::Purpose::explore;
    const auto answer = judge(evaluator, task, task.kernel, purpose, i);
    cost += answer.cost.total / evaluations;
    seconds = answer.seconds;
    const bool covered = answer.speed_up && answer.speed_up->low <= 1 && answer.speed_up->high >= 1;
    missed += covered ? 0 : 1;
    if (answer.speed_up) width += (answer.speed_up->high - answer.speed_up->low) / 2 / evaluations;
    if (!answer.correct())
      std::printf("  %s: %s\n", std::string(to_string(answer.verdict)).c_str(),
                  answer.diagnostics.empty() ? "" : answer.diagnostics.front().message.c_str());
  }
  std::printf("%-18s %9.1f us   covered %2d of %2d   half width %.2f %%   %.3f s an evaluation\n",
              task.name.c_str(), 1e6 * seconds, evaluations - missed, evaluations, 100 * width, cost);
  std::fflush(stdout);
  return missed;
}

/// What one evaluation of a matrix product costs.
void judge_product(Evaluator& evaluator, const std::string& repository, std::int64_t extent) {
  auto task = mtmc::load_task(repository + "/examples/tasks/cuda/gemm.json");
  task.name += " of " + std::to_string(extent);
  for (auto& size : task.sizes)
    if (size.weight > 0)
      for (auto& [symbol, value] : size.symbols) value = extent;
  evaluator.prepare(task, {});
  const auto tiled = mtmc::load_kernel(repository + "/tests/data/sequences/cuda/gemm/1_shared_tiles.cu",
                                       mtmc::languages::cuda);
  auto wrong = task.kernel;
  wrong.source.replace(wrong.source.find("k < K"), 5, "k < K - (K > 1000)");
  const std::pair<const char*, mtmc::Kernel> candidates[] = {
      {"start kernel", task.kernel}, {"shared tiles", tiled}, {"a term left out", wrong}};
  for (int serial = 0; serial < 2; ++serial)
    for (const auto& [name, kernel] : candidates) {
      const auto answer = judge(evaluator, task, kernel, mtmc::Purpose::explore, serial);
      std::printf("%-18s %-16s %-14s %.3f s (compiler %.3f, checks %.3f, timing %.3f)", task.name.c_str(),
                  name, std::string(to_string(answer.verdict)).c_str(), answer.cost.total,
                  answer.cost.compile, answer.cost.check, answer.cost.time);
      if (answer.speed_up)
        std::printf(" %.3fx [%.3f, %.3f]", answer.speed_up->value, answer.speed_up->low,
                    answer.speed_up->high);
      std::printf("\n");
    }
}

int run(int evaluations, std::int64_t product) {
  std::optional<Evaluator> evaluator;
  try {
    evaluator.emplace();
  } catch (const mtmc::Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  const std::string repository = MTMC_REPOSITORY;
  std::printf("%s\n", evaluator->device().name.c_str());
  int missed = 0;
  int count = 0;
  for (const auto& path : mtmc::find_task_files(repository + "/examples/tasks/cuda")) {
    missed += judge_against_itself(*evaluator, mtmc::load_task(path), evaluations);
    count += evaluations;
  }
  if (product > 0) judge_product(*evaluator, repository, product);
  const double chance = chance_of_misses(missed, count);
  std::printf("%d of %d intervals cover 1.0; so few, or fewer, would be seen in %.2g of all cases\n",
              count - missed, count, chance);
  constexpr double improbable = 0.01;
  return chance < improbable ? 1 : 0;
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"Intervals of kernels against themselves on a GPU, and what they cost"};
  int evaluations = 20;
  std::int64_t product = 0;
  app.add_option("--evaluations", evaluations, "of each task");
  app.add_option("--product", product, "extents of a matrix product that is judged, too");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(evaluations, product);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
