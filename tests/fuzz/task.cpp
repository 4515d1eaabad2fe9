// A task file.
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/task/launch_lines.hpp>
#include <mtmc/task/validate_task.hpp>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

/// A path could lead anywhere on the machine, to a device that never ends, say.
bool names_files(const nlohmann::json& document) {
  return document.is_object() && (document.contains("source") || document.contains("reference")) &&
         !document.contains("kernel");
}

} // namespace

void task(std::string_view input) {
  mtmc::Task task;
  const bool accepted = accepts([&] {
    if (!names_files(mtmc::parse_json(input, "fuzzed"))) task = mtmc::parse_task(input, "folder/fuzzed.json");
  });
  if (!accepted || task.name.empty()) return;
  require(accepts([&] { mtmc::validate_task(task); }), "what is accepted is valid");
  const auto document = mtmc::to_document(task);
  require(mtmc::from_document<mtmc::Task>(document) == task, "a task's JSON form is read as the same task");
  for (const auto& size : task.sizes) {
    (void)mtmc::plan_launches(task.kernel, task, size, 8);
    require(mtmc::least_bytes(task, size) >= 0, "bytes are not negative");
  }
}

} // namespace mtmc_fuzz
