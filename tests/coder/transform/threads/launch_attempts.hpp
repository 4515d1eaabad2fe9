#pragma once
/// All that the offline coder makes of a CUDA kernel in one step.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/coder/transform/table.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grid_runner.hpp"

namespace mtmc::testing {

/// One optimisation of one region: what was said about it, and what came of it.
struct Attempt {
  std::string key{};
  bool offered = false;
  std::string declined{}; ///< why nothing was made; empty: something was
  std::vector<std::string> sources{};
};

/// Every row of the table for every region, whether it is offered or not.
[[nodiscard]] inline std::vector<Attempt> all_attempts(const Task& task) {
  const Structure structure = AstRegionFinder{}.find(task, task.kernel);
  std::set<std::string> offered, optimizations;
  for (const Action& action : ActionSpace::extended().legal_actions(structure, h100()))
    offered.insert(action.key());
  for (const TransformationEntry& entry : default_transformations())
    if (entry.language.empty() || entry.language == languages::cuda.name)
      optimizations.insert(entry.optimization);
  constexpr int samples = 3;
  std::vector<Attempt> attempts;
  for (const std::string& optimization : optimizations)
    for (const Region& region : structure.regions) {
      Attempt attempt{optimization + '|' + region.path};
      attempt.offered = offered.contains(attempt.key);
      for (int sample = 0; sample < samples; ++sample) {
        const Draft draft = grid_draft(task, task.kernel, attempt.key, sample);
        if (!draft.kernel) {
          if (sample == 0) attempt.declined = draft.message;
          break;
        }
        attempt.sources.push_back(draft.kernel->source);
      }
      attempts.push_back(std::move(attempt));
    }
  return attempts;
}

/// Does `work(0)`, `work(1)`, ... on all cores.
template <class Work> void in_parallel(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1U, std::thread::hardware_concurrency()); ++t)
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < count; at = next++) work(at);
    });
  for (std::thread& thread : threads) thread.join();
}

} // namespace mtmc::testing
