// Steps of the environment that policies learn in, without a policy's own work. Asked: at least 200,000 a
// second on two cores.

#include <mtmc/train/tree_environment.hpp>

#include <benchmark/benchmark.h>

#include "../train/toy_trees.hpp"

namespace {

void steps(benchmark::State& state) {
  mtmc::KernelTree tree = toy::random_tree(1, static_cast<int>(state.range(0)));
  mtmc::TreeEnvironment environment(tree, {.seed = static_cast<std::uint64_t>(state.thread_index())});
  mtmc::PhiloxEngine player{2};
  double sum = 0;
  for (auto _ : state) {
    if (environment.ended()) environment.reset();
    const auto choices = static_cast<double>(environment.choices());
    sum += environment.step(static_cast<std::size_t>(player.uniform() * choices)).reward;
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(steps)->Arg(50)->Arg(5000)->Threads(1)->Threads(2)->UseRealTime();

} // namespace

BENCHMARK_MAIN();
