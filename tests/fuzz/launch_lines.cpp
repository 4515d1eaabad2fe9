// Launch lines, read and evaluated for a size.
#include <mtmc/backend/launch_check.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/task/launch_lines.hpp>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

mtmc::Task task_with_buffers() {
  mtmc::Task task;
  task.name = "fuzzed";
  for (const char* const name : {"A", "B", "C", "x", "y"})
    task.arguments.push_back({.name = name, .role = mtmc::ArgumentRole::inout, .shape = {"M", "N"}});
  for (const char* const name : {"M", "N", "K"})
    task.arguments.push_back(
        {.name = name, .role = mtmc::ArgumentRole::scalar, .type = mtmc::DataType::i32, .value = name});
  task.arguments.push_back(
      {.name = "alpha", .role = mtmc::ArgumentRole::scalar, .type = mtmc::DataType::f32, .value = "0.5"});
  task.sizes = {{{{"M", 1024}, {"N", 512}, {"K", 333}}}};
  return task;
}

void check(const mtmc::Kernel& kernel) {
  static const auto task = task_with_buffers();
  mtmc::LaunchLines lines;
  if (!accepts([&] { lines = mtmc::parse_launch_lines(kernel); })) return;
  mtmc::LaunchPlan plan;
  if (!accepts([&] { plan = mtmc::plan_launches(lines, task, task.sizes.front(), 132); })) return;
  require(plan.launches.size() == lines.launches.size(), "every launch line is planned");
  const auto document = mtmc::to_document(plan);
  require(mtmc::to_document(mtmc::from_document<mtmc::LaunchPlan>(document)) == document,
          "a plan's JSON form is read as the same plan");
  (void)mtmc::detail::check_entry_names(plan);
  (void)mtmc::detail::describe(mtmc::detail::signatures_of(plan));
}

} // namespace

void launch_lines(std::string_view input) {
  const std::string source(input);
  check({mtmc::languages::cpp, source});
  check({mtmc::languages::cuda, source});
  check({mtmc::languages::triton, source});
}

} // namespace mtmc_fuzz
