// The tasks of bench/naive_cuda are tasks as its page says, and offer something to do.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/observation/roofline.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

TEST_CASE("the naive CUDA kernels keep to the rule of their page") {
  const std::string folder = MTMC_REPOSITORY "/tests/bench/naive_cuda";
  const auto counterparts = mtmc::read_file(folder + "/counterparts.py");
  const auto device = mtmc::find_device_preset("H100")->device;
  auto files = mtmc::find_task_files(folder + "/tasks");
  CHECK(files.size() == 36);
  const auto later = mtmc::find_task_files(folder + "/later_tasks");
  CHECK(later.size() == 14);
  files.insert(files.end(), later.begin(), later.end());
  for (const auto& file : files) {
    CAPTURE(file);
    const auto task = mtmc::load_task(file);
    CHECK(counterparts.find("def " + task.name + "(t, size)") != std::string::npos);
    REQUIRE(task.main_size() != nullptr);
    const double bytes = mtmc::least_bytes(task, *task.main_size());
    CHECK(bytes >= 0.5 * 1024 * 1024);
    CHECK(bytes <= 65 * 1024 * 1024);
    CHECK(task.sizes.size() == 4);
    CHECK(std::all_of(task.sizes.back().symbols.begin(), task.sizes.back().symbols.end(),
                      [](const auto& symbol) { return symbol.second == 1; }));
    for (const auto& size : task.sizes)
      CHECK(!mtmc::plan_launches(task.kernel, task, size, device.compute_units).launches.empty());
    const auto structure = mtmc::AstRegionFinder{}.find(task, task.kernel);
    CHECK(structure.opaque_statements == 0);
    CHECK(mtmc::ActionSpace::extended().legal_actions(structure, device).size() > 2);
  }
}
