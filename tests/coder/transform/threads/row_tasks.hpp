#pragma once
/// CUDA tasks with rows, for tests of what the threads of a row share.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "grid_variants.hpp"

namespace mtmc::testing {

/// A task of a whole text: rows of N elements in `x`, results in `y` of the same shape and one a row in `z`.
[[nodiscard]] inline Task row_task(const std::string& text) {
  return TaskBuilder{"f"}
      .kernel(languages::cuda, text)
      .shape("x", {"M", "N"})
      .role("x", ArgumentRole::inout)
      .shape("y", {"M", "N"})
      .role("y", ArgumentRole::inout)
      .shape("z", {"M"})
      .role("z", ArgumentRole::inout)
      .size({{"M", 4096}, {"N", 1024}})
      .check({{"M", 3}, {"N", 1}})
      .check({{"M", 5}, {"N", 1100}})
      .build();
}

/// The same where thread i does row i by these statements.
[[nodiscard]] inline Task rows_by(const std::string& statements) {
  return row_task("//@ launch f<<<ceil_div(M, 128), 128>>>(x, y, z, M, N)\n"
                  "__global__ void f(float* x, float* y, float* z, int M, int N) {\n"
                  "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                  "  if (i >= M) return;\n" +
                  statements + "}\n");
}

/// The action of a type that is on offer for the kernel, or an empty text.
[[nodiscard]] inline std::string offered(const Task& task, std::string_view type) {
  const Structure structure = AstRegionFinder{}.find(task, task.kernel);
  for (const Action& action : ActionSpace::extended().legal_actions(structure, h100()))
    if (action.optimization == type) return action.key();
  return {};
}

/// The largest difference of the first and the last variant of an action from what the task computes; -1
/// where it is not on offer, -2 where it is declined.
[[nodiscard]] inline double difference_after(const Task& task, std::string_view type) {
  const std::string key = offered(task, type);
  if (key.empty()) return -1;
  const Draft first = grid_draft(task, task.kernel, key);
  if (!first.kernel) return -2;
  std::vector<std::string> sources{first.kernel->source};
  for (int sample = 8; sample > 0 && sources.size() == 1; --sample)
    if (const Draft last = grid_draft(task, task.kernel, key, sample); last.kernel)
      sources.push_back(last.kernel->source);
  return worst_difference(task, sources);
}

} // namespace mtmc::testing
