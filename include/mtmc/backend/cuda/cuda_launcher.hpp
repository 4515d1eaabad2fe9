#pragma once
/// From a launch of a plan to a call of the driver: what is possible, and with which parameters.

#include <mtmc/backend/cuda/context.hpp>
#include <mtmc/backend/cuda/cuda_program.hpp>
#include <mtmc/backend/cuda/kernel_text.hpp>
#include <mtmc/backend/cuda/launch_limits.hpp>
#include <mtmc/backend/cuda/tensor_map.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/launch_plan.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A launch with its parameters. Borrows the launch and the program.
struct ReadyLaunch {
  CudaHandle function = nullptr;
  /// Whether the function has run before (`CudaProgram::Function::launched`).
  bool* launched = nullptr;
  const Launch* launch = nullptr;
  std::vector<CudaParameterBytes> values;
};

/// Launches programs within the limits of one device.
class CudaLauncher {
public:
  explicit CudaLauncher(const CudaContext& context)
      : limits_{context.attribute(DeviceAttribute::max_grid_x),
                context.attribute(DeviceAttribute::max_grid_y),
                context.attribute(DeviceAttribute::max_grid_z)},
        dynamic_shared_limit_(context.attribute(DeviceAttribute::shared_bytes_of_a_block)),
        launches_clusters_(context.driver().launch_with != nullptr &&
                           has(context, DeviceAttribute::launches_clusters)),
        reads_tensor_maps_(context.driver().encode_tensor_map != nullptr &&
                           has(context, DeviceAttribute::reads_tensor_maps)) {}

  [[nodiscard]] bool launches_clusters() const noexcept { return launches_clusters_; }
  [[nodiscard]] bool reads_tensor_maps() const noexcept { return reads_tensor_maps_; }

  /// Checks a launch, which makes the call of that index (`place_of_call`), and translates its arguments.
  /// Gives the reason if it is impossible.
  [[nodiscard]] std::optional<std::string> prepare(const CudaTurn& turn, CudaProgram& program,
                                                   const Launch& launch, std::size_t index,
                                                   ReadyLaunch& ready) const {
    auto& function = program.functions_[index];
    const auto& entry = program.compilation_.entries[index];
    ready.function = function.handle;
    ready.launched = &function.launched;
    ready.launch = &launch;
    std::int64_t threads = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (launch.grid[axis] < 1 || launch.grid[axis] > limits_[axis])
        return "the grid has " + std::to_string(launch.grid[axis]) + " blocks along axis " +
               std::to_string(axis) + "; possible are 1 to " + std::to_string(limits_[axis]);
      if (launch.block[axis] < 1 || launch.block[axis] > function.max_threads)
        threads = std::int64_t{1} << 40;
      else
        threads *= launch.block[axis];
    }
    if (threads > function.max_threads)
      return "the block has too many threads; with the registers that `" + launch.entry + "` uses, at most " +
             std::to_string(function.max_threads) + " are possible";
    if (auto reason = check_cluster(launch, function)) return reason;
    const auto dynamic_limit = std::int64_t{dynamic_shared_limit_} - function.static_shared_bytes;
    if (launch.shared_bytes < 0 || launch.shared_bytes > dynamic_limit)
      return "a block needs " + std::to_string(launch.shared_bytes) +
             (function.static_shared_bytes == 0
                  ? std::string{}
                  : " and " + std::to_string(function.static_shared_bytes) + " static") +
             " bytes of shared memory; at most " + std::to_string(dynamic_shared_limit_) + " are possible";
    const auto shared = launch.shared_bytes + function.static_shared_bytes;
    constexpr int without_asking = 48 << 10;
    if (shared > without_asking && launch.shared_bytes > function.allowed_dynamic_bytes) {
      function.allowed_dynamic_bytes = static_cast<int>(launch.shared_bytes);
      turn.demand(turn.driver.function_set_attribute(function.handle, FunctionAttribute::dynamic_shared_bytes,
                                                     function.allowed_dynamic_bytes),
                  "cuFuncSetAttribute");
    }
    for (std::size_t i = 0; i < launch.arguments.size(); ++i)
      if (auto reason = translate(turn, launch.arguments[i], entry.parameters[i], ready))
        return "argument " + std::to_string(i + 1) + " (`" + launch.arguments[i].name + "`) " + *reason;
    return std::nullopt;
  }

  /// Queues a launch.
  [[nodiscard]] static CudaCode queue(const CudaTurn& turn, const ReadyLaunch& ready) {
    for (const auto& argument : ready.launch->arguments)
      if (const auto code = fill(turn, argument); code != cuda_code::success) return code;
    std::vector<void*> parameters;
    for (const auto& value : ready.values) parameters.push_back(const_cast<CudaParameterBytes*>(&value));
    const auto& grid = ready.launch->grid;
    const auto& block = ready.launch->block;
    const auto& cluster = ready.launch->cluster;
    const auto narrow = [](std::int64_t value) { return static_cast<unsigned>(value); };
    if (cluster != std::array<std::int64_t, 3>{1, 1, 1}) {
      LaunchAttribute attribute{cluster_attribute, {}};
      LaunchConfig config;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        config.grid[axis] = narrow(grid[axis]);
        config.block[axis] = narrow(block[axis]);
        attribute.value[axis] = narrow(cluster[axis]);
      }
      config.shared_bytes = narrow(ready.launch->shared_bytes);
      config.stream = turn.stream;
      config.attributes = &attribute;
      config.attribute_count = 1;
      return turn.driver.launch_with(&config, ready.function, parameters.data(), nullptr);
    }
    return turn.driver.launch(ready.function, narrow(grid[0]), narrow(grid[1]), narrow(grid[2]),
                              narrow(block[0]), narrow(block[1]), narrow(block[2]),
                              narrow(ready.launch->shared_bytes), turn.stream, parameters.data(), nullptr);
  }

private:
  /// Queues the zeros that an argument asks for.
  [[nodiscard]] static CudaCode fill(const CudaTurn& turn, const LaunchArgument& argument) {
    if (!argument.zeroed) return cuda_code::success;
    const auto& bound = argument.bound;
    return turn.driver.fill_bytes(bound.handle + static_cast<std::uint64_t>(bound.offset), 0,
                                  static_cast<std::size_t>(bound.bytes), turn.stream);
  }

  /// What drivers and devices before the thing itself do not have either.
  [[nodiscard]] static bool has(const CudaContext& context, DeviceAttribute what) {
    try {
      return context.attribute(what) > 0;
    } catch (const Error&) {
      return false;
    }
  }

  /// The reason if the blocks of a launch cannot be put together in clusters.
  [[nodiscard]] std::optional<std::string> check_cluster(const Launch& launch,
                                                         const CudaProgram::Function& function) const {
    constexpr std::array<std::int64_t, 3> none{1, 1, 1};
    const bool fixed = function.cluster[0] > 0;
    if (launch.cluster == none && !fixed) return std::nullopt;
    if (launch.cluster != none && !launches_clusters_) return "this device or its driver has no clusters";
    auto cluster = launch.cluster;
    for (std::size_t axis = 0; fixed && axis < 3; ++axis) {
      cluster[axis] = std::max<std::int64_t>(function.cluster[axis], 1);
      if (launch.cluster != none && launch.cluster[axis] != cluster[axis])
        return "the launch line asks for other clusters than `__cluster_dims__` of `" + launch.entry + '`';
    }
    return reason_against_cluster(launch.grid, cluster);
  }

  [[nodiscard]] std::optional<std::string> translate(const CudaTurn& turn, const LaunchArgument& argument,
                                                     CudaParameter parameter, ReadyLaunch& ready) const {
    auto& value = ready.values.emplace_back();
    if (argument.kind == LaunchArgument::Kind::scalar) {
      const auto bits = cuda_parameter_bits(argument, parameter);
      if (!bits) return "= " + std::to_string(argument.integer) + " does not fit the type of its parameter";
      value.words[0] = *bits;
      return std::nullopt;
    }
    if (argument.bound.handle == 0)
      throw Error(error_id::backend_memory, "argument `" + argument.name + "` is bound to no buffer",
                  "Bind every buffer of a plan to memory that this backend allocated");
    if (argument.byte_offset < 0 || argument.byte_offset > argument.bound.bytes)
      return "begins " + std::to_string(argument.byte_offset) + " bytes behind the start of a buffer of " +
             std::to_string(argument.bound.bytes);
    value.words[0] =
        argument.bound.handle + static_cast<std::uint64_t>(argument.bound.offset + argument.byte_offset);
    if (argument.kind == LaunchArgument::Kind::tensor_map) return make_tensor_map(turn, argument, value);
    return std::nullopt;
  }

  /// Replaces a buffer's address by a tensor map of it.
  [[nodiscard]] std::optional<std::string>
  make_tensor_map(const CudaTurn& turn, const LaunchArgument& argument, CudaParameterBytes& value) const {
    if (!reads_tensor_maps_)
      return "is a tensor map, which this device or its driver does not have; it takes Hopper (sm_90)";
    TensorMapRequest request;
    const auto address = value.words[0];
    if (auto reason = read_tensor_map(argument, address, request); !reason.empty()) return reason;
    const auto code =
        turn.driver.encode_tensor_map(&value, request.type, request.rank, address, request.extents.data(),
                                      request.strides.data(), request.box.data(), request.steps.data(),
                                      request.interleave, request.swizzle, request.promotion, request.fill);
    if (code != cuda_code::success) return "cannot become a tensor map: " + turn.driver.describe(code);
    return std::nullopt;
  }

  std::array<std::int64_t, 3> limits_;
  int dynamic_shared_limit_;
  bool launches_clusters_;
  bool reads_tensor_maps_;
};

} // namespace mtmc::detail
