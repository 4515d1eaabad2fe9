#pragma once
/// What host and worker of the tests both know.

#include <mtmc/core/task.hpp>

#include <string>

namespace worker_tasks {

inline mtmc::Kernel kernel(const std::string& entry) {
  return {mtmc::languages::cpp, "//@ launch " + entry + "(A, b, C, M, K)\n", {}};
}

/// C = A b.
inline mtmc::Task rows(const std::string& name = "rows") {
  using namespace mtmc;
  Task task;
  task.name = name;
  task.kernel = kernel("start");
  task.arguments = {{.name = "A", .role = ArgumentRole::input, .shape = {"M", "K"}},
                    {.name = "b", .role = ArgumentRole::input, .shape = {"K"}},
                    {.name = "C", .role = ArgumentRole::output, .shape = {"M"}},
                    {.name = "M", .role = ArgumentRole::scalar, .type = DataType::i32},
                    {.name = "K", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"M", 64}, {"K", 48}}}, {.symbols = {{"M", 37}, {"K", 5}}, .weight = 0}};
  return task;
}

} // namespace worker_tasks
