#pragma once
/// Arguments of tasks, written shortly.

#include <mtmc/core/task.hpp>

#include <string>
#include <utility>
#include <vector>

namespace mtmc_test {

inline mtmc::Argument argument(std::string name, mtmc::ArgumentRole role, mtmc::DataType type,
                               std::vector<std::string> shape, std::string value = {}) {
  return {.name = std::move(name),
          .role = role,
          .type = type,
          .shape = std::move(shape),
          .value = std::move(value)};
}

} // namespace mtmc_test
