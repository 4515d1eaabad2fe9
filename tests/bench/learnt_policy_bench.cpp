// The learnt policy in use and in training. Asked: 64 actions in less than 50 us at -O2, their features
// apart, without an allocation; a full training in less than 3 minutes.

#include <mtmc/policy/policy_weights.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/train.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

mtmc::DataSet recorded() {
  auto set = mtmc::read_data_set(std::string(MTMC_REPOSITORY) + "/tests/data/trees/recorded.jsonl");
  mtmc::keep_featured(set);
  return set;
}

/// A state and as many actions as wanted, with the features of recorded ones.
mtmc::EncodedState state_of(std::size_t actions) {
  auto set = recorded();
  auto& tree = *std::max_element(set.trees.begin(), set.trees.end(), [](const auto& a, const auto& b) {
    return a.nodes.front().legal.size() < b.nodes.front().legal.size();
  });
  const auto& start = tree.nodes.front();
  mtmc::EncodedState encoded;
  mtmc::append_state(start.features, {}, encoded.state);
  for (std::size_t i = 0; i < actions; ++i) {
    const std::size_t place = i % start.legal.size();
    mtmc::append_action(start.action_features[place], start.legal[place], {}, encoded.actions);
  }
  return encoded;
}

void score_actions(benchmark::State& state) {
  const auto& network = mtmc::built_in_policy_weights().network;
  const auto seen = state_of(static_cast<std::size_t>(state.range(0)));
  mtmc::NetworkActivations result;
  for (auto _ : state) {
    network.evaluate(seen.state, seen.actions, result);
    benchmark::DoNotOptimize(result.scores.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(score_actions)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);

void train(benchmark::State& state) {
  auto set = recorded();
  const mtmc::TreeOptions rules{.minimum_gain = 1.02, .once = true};
  for (auto _ : state) {
    const auto result = mtmc::train_ppo(set.trees, rules, mtmc::feature_encoder(1), mtmc::feature_shape(),
                                        {.steps = static_cast<std::size_t>(state.range(0)), .seed = 1});
    benchmark::DoNotOptimize(result.network.weights.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(train)->Arg(100000)->Unit(benchmark::kSecond)->Iterations(1);

} // namespace

BENCHMARK_MAIN();
