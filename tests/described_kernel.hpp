#pragma once
/// Kernels as data for programs in other languages that launch them by other means.

#include <mtmc/core/json.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <stdexcept>
#include <utility>

namespace mtmc_test {

/// A kernel at a size of its task as data: launches with evaluated extents and parameters, buffers
/// with what they hold, and the text. What a program needs that launches it by other means.
[[nodiscard]] inline nlohmann::json describe_kernel(const mtmc::Kernel& kernel, const mtmc::Task& task,
                                                    const mtmc::ProblemSize& size, int compute_units) {
  const auto plan = mtmc::plan_launches(kernel, task, size, compute_units);
  auto buffers = nlohmann::json::array();
  for (const auto& argument : task.arguments) {
    if (argument.role == mtmc::ArgumentRole::scalar) continue;
    const auto extents =
        mtmc::detail::evaluate_extents(argument.shape, argument.type, size.symbols, argument.name);
    nlohmann::json buffer{{"name", argument.name},
                          {"role", to_string(argument.role)},
                          {"dtype", to_string(argument.type)},
                          {"shape", extents}};
    if (argument.domain)
      buffer["domain"] = {mtmc::detail::evaluate_real(argument.domain->low, size.symbols, argument.name),
                          mtmc::detail::evaluate_real(argument.domain->high, size.symbols, argument.name)};
    buffers.push_back(std::move(buffer));
  }
  for (const auto& scratch : plan.scratch)
    buffers.push_back({{"name", scratch.name},
                       {"role", "scratch"},
                       {"dtype", to_string(scratch.type)},
                       {"shape", scratch.extents}});
  auto launches = nlohmann::json::array();
  for (const auto& launch : plan.launches) {
    auto arguments = nlohmann::json::array();
    for (const auto& argument : launch.arguments) {
      if (argument.kind == mtmc::LaunchArgument::Kind::tensor_map)
        throw std::runtime_error(task.name + " has a tensor map, which cannot be described");
      if (argument.kind == mtmc::LaunchArgument::Kind::buffer)
        arguments.push_back({{"buffer", argument.name}, {"zeroed", argument.zeroed}});
      else if (mtmc::is_floating(argument.type))
        arguments.push_back({{"value", argument.real}});
      else
        arguments.push_back({{"value", argument.integer}});
    }
    launches.push_back({{"entry", launch.entry},
                        {"grid", launch.grid},
                        {"block", launch.block},
                        {"shared", launch.shared_bytes},
                        {"arguments", std::move(arguments)}});
  }
  return {{"task", task.name},
          {"size", size.symbols},
          {"source", kernel.source},
          {"buffers", std::move(buffers)},
          {"launches", std::move(launches)}};
}

} // namespace mtmc_test
