#pragma once
/// Definitions of analysis/task_builder.hpp.

#include <mtmc/analysis/complete_arguments.hpp>
#include <mtmc/analysis/task_builder.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/task/validate_task.hpp>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE Task TaskBuilder::build() const {
  Task task = task_;
  complete_arguments(task, stated_);
  validate_task(task);
  return task;
}

} // namespace mtmc
