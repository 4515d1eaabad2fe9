// Random sequences of steps on CUDA kernels that leave a device idle: whatever the offline coder makes of its
// own results is right at every size. MTMC_SEQUENCES: how many a task (4).

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "grid_variants.hpp"
#include "idle_kernels.hpp"

using namespace mtmc;
using namespace mtmc::testing;

TEST_CASE("sequences of steps on kernels of few threads keep what they compute") {
  if (!mtmc_test::can_emulate) return;
  const char* const wanted = std::getenv("MTMC_SEQUENCES");
  const std::uint64_t sequences = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 4;
  for (const Task& task : idle_tasks()) {
    std::vector<std::string> sources, keys;
    for (std::uint64_t seed = 1; seed <= sequences; ++seed) {
      const auto sequence = random_sequence(task, seed, 5, h100());
      // Loops that find extrema in lanes include a header of the host, which emulated kernels cannot.
      if (sequence.keys.empty() || sequence.source.find("#include") != std::string::npos) continue;
      sources.push_back(sequence.source);
      keys.push_back(joined(sequence.keys));
    }
    if (sources.empty()) continue;
    CAPTURE(task.name);
    const auto differences = grid_differences(task, sources);
    for (std::size_t i = 0; i < differences.size(); ++i)
      CHECK_MESSAGE(differences[i] < 1e-4, keys[i], "\n", sources[i]);
  }
}
