// Generated CUDA kernels on the emulated GPU: they compile, write every result, and compute numbers.

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <set>
#include <string>

#include "../../examples/tools/task_generator.hpp"
#include "../coder/transform/threads/grid_runner.hpp"

TEST_CASE("generated CUDA kernels of every kind compute numbers at the sizes that are only checked") {
  if (!mtmc_test::can_emulate) return;
  const char* const wanted = std::getenv("MTMC_GENERATED"); // how many tasks are looked at
  const std::size_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 150;
  std::set<std::string> kinds;
  for (const auto& one : generated::generated_tasks({.language = mtmc::languages::cuda, .count = count})) {
    if (!kinds.insert(one.kind).second) continue;
    CAPTURE(one.name);
    CAPTURE(one.source);
    auto file = nlohmann::json::parse(one.file);
    file.erase("source");
    file["kernel"] = {{"language", {{"name", "cuda"}}}, {"source", one.source}};
    const auto task = mtmc::parse_task(file.dump(), one.name + ".json");
    for (const auto& size : task.sizes) {
      if (size.weight > 0) continue;
      CAPTURE(mtmc::to_string(size));
      std::size_t numbers = 0, results = 0;
      try {
        for (const double value : mtmc::testing::grid_results(task, one.source, size)) {
          ++results;
          numbers += std::isfinite(value) ? 1 : 0;
        }
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
      CHECK(results > 0);
      CHECK(numbers == results);
    }
  }
  CHECK(2 * kinds.size() >= std::min<std::size_t>(count, 50));
}
