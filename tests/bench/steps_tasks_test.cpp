// The twelve tasks of bench/steps are tasks, two of each kind as its page says, and offer something to do.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/observation/roofline.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <string>

TEST_CASE("the tasks on which steps are compared with one pass keep to the rule of their page") {
  const std::string folder = MTMC_REPOSITORY "/tests/bench/steps";
  const auto page = mtmc::read_file(folder + "/README.md");
  const auto device = mtmc::find_device_preset("H100")->device;
  const auto files = mtmc::find_task_files(folder + "/tasks");
  CHECK(files.size() == 12);
  for (const auto& file : files) {
    CAPTURE(file);
    const auto task = mtmc::load_task(file);
    CHECK(page.find('`' + task.name + '`') != std::string::npos);
    REQUIRE(task.main_size() != nullptr);
    const auto& size = *task.main_size();
    CHECK((mtmc::least_bytes(task, size) >= 100e6 || mtmc::stated_flops(task, size) >= 10e9));
    CHECK(task.sizes.size() == 3);
    CHECK(!mtmc::plan_launches(task.kernel, task, size, device.compute_units).launches.empty());
    const auto structure = mtmc::AstRegionFinder{}.find(task, task.kernel);
    CHECK(structure.opaque_statements == 0);
    CHECK(mtmc::ActionSpace::extended().legal_actions(structure, device).size() > 2);
  }
}

TEST_CASE("the tasks that computation limits keep to theirs") {
  const auto device = mtmc::find_device_preset("H100")->device;
  const auto files = mtmc::find_task_files(MTMC_REPOSITORY "/tests/bench/steps/compute_tasks");
  CHECK(files.size() == 6);
  for (const auto& file : files) {
    CAPTURE(file);
    const auto task = mtmc::load_task(file);
    REQUIRE(task.main_size() != nullptr);
    const auto& size = *task.main_size();
    CHECK(mtmc::stated_flops(task, size) >= 10e9);
    CHECK(mtmc::stated_flops(task, size) >= 30 * mtmc::least_bytes(task, size));
    CHECK(task.sizes.size() == 3);
    CHECK(!mtmc::plan_launches(task.kernel, task, size, device.compute_units).launches.empty());
  }
}

TEST_CASE("the states at which the rules' first choice is compared with what pays are kernels, too") {
  const auto device = mtmc::find_device_preset("H100")->device;
  const auto files = mtmc::find_task_files(MTMC_REPOSITORY "/tests/bench/steps/states");
  CHECK(files.size() == 3);
  for (const auto& file : files) {
    CAPTURE(file);
    const auto task = mtmc::load_task(file);
    const auto structure = mtmc::AstRegionFinder{}.find(task, task.kernel);
    CHECK(structure.opaque_statements == 0);
    CHECK(mtmc::ActionSpace::extended().legal_actions(structure, device).size() > 3);
  }
}
