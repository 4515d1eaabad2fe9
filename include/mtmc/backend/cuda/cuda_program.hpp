#pragma once
/// A kernel's binary in a context of the device.

#include <mtmc/backend/cuda/context.hpp>
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/backend/cuda/occupancy.hpp>
#include <mtmc/backend/probed_assembly.hpp>
#include <mtmc/core/branch.hpp>
#include <mtmc/core/program_binary.hpp>
#include <mtmc/support/demangle.hpp>
#include <mtmc/support/sha256.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {
class CudaLauncher;
}

/// A compiled kernel, loaded into the context it was compiled for.
class CudaProgram {
public:
  /// Made by `CudaBackend::compile`, which compiled for `context`.
  CudaProgram(std::shared_ptr<detail::CudaContext> context, detail::CudaCompilation compilation)
      : context_(std::move(context)), compilation_(std::move(compilation)) {
    load();
  }
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;
  ~CudaProgram() { unload(); }

  /// Loads the binary anew, in this context: whatever a kernel left in its own memory of the device is gone.
  void reload() {
    unload();
    load();
  }
  /// The same, since there is no process to end.
  void retire() { reload(); }

  /// SHA-256 of the CUBIN that is loaded, in 64 lower-case hexadecimal digits; of several, one behind the
  /// other.
  [[nodiscard]] std::string binary_hash() const {
    if (compilation_.further.empty()) return sha256_hex(compilation_.cubin);
    auto all = compilation_.cubin;
    for (const auto& one : compilation_.further) all += one.cubin;
    return sha256_hex(all);
  }

  /// That CUBIN, and what it calls the entries of the launches; nothing where there are several.
  [[nodiscard]] ProgramBinary binary() const {
    if (!compilation_.further.empty()) return {};
    ProgramBinary binary{compilation_.cubin, {}};
    for (const auto& entry : compilation_.entries) binary.entries.push_back(entry.name);
    return binary;
  }

  /// Registers, spills, shared and local memory, each of the entry that uses most; and what `resource_key`
  /// names, of the launch that has most threads in the plan it was compiled for.
  [[nodiscard]] const std::map<std::string, double>& resources() const noexcept {
    return compilation_.resources;
  }

  /// Of a program that was compiled with probes: its branches, and which ways they have gone since it was
  /// loaded. Else empty.
  [[nodiscard]] std::vector<Branch> branches() const {
    if (compilation_.branches.empty()) return {};
    const detail::CudaTurn turn(*context_);
    detail::CudaAddress table = 0;
    std::size_t bytes = 0;
    turn.demand(turn.driver.module_global(&table, &bytes, modules_.front(),
                                          std::string(detail::branch_table).c_str()),
                "cuModuleGetGlobal");
    std::vector<std::byte> ways(bytes);
    turn.demand(turn.driver.copy_out(ways.data(), table, bytes, turn.stream), "cuMemcpyDtoHAsync");
    turn.demand(turn.driver.stream_synchronize(turn.stream), "cuStreamSynchronize");
    return detail::with_ways(compilation_.branches, ways);
  }

private:
  friend class CudaBackend;
  friend class detail::CudaLauncher;

  /// One of the kernel's functions, with what the driver knows of it.
  struct Function {
    detail::CudaHandle handle = nullptr;
    int max_threads = 0;
    int registers = 0;
    int static_shared_bytes = 0;
    int allowed_dynamic_bytes = 0;
    /// Whether it has run: the driver has made room for its local memory.
    bool launched = false;
    /// Extents of `__cluster_dims__`; 0 without it.
    std::array<int, 3> cluster{};
  };

  /// A variable of the device, with what it held before anything ran.
  struct Variable {
    std::string name;
    detail::CudaAddress address = 0;
    std::vector<std::byte> image{};
  };

  /// The variables' images, and the names of those whose address the driver does not give.
  void read_variables() {
    variables_.clear();
    hidden_variables_.clear();
    const detail::CudaTurn turn(*context_);
    read_variables(turn, modules_.front(), compilation_.variables);
    for (std::size_t i = 0; i < compilation_.further.size(); ++i)
      read_variables(turn, modules_[i + 1], compilation_.further[i].variables);
    if (!variables_.empty()) turn.demand(turn.driver.stream_synchronize(turn.stream), "cuStreamSynchronize");
  }
  /// The same of one binary; what is copied has not arrived yet.
  void read_variables(const detail::CudaTurn& turn, detail::CudaHandle module,
                      const std::vector<std::string>& names) {
    for (const auto& name : names) {
      detail::CudaAddress address = 0;
      std::size_t bytes = 0;
      if (turn.driver.module_global(&address, &bytes, module, name.c_str()) != detail::cuda_code::success ||
          bytes == 0) {
        hidden_variables_.push_back(name);
        continue;
      }
      auto& variable = variables_.emplace_back(Variable{name, address, std::vector<std::byte>(bytes)});
      turn.demand(turn.driver.copy_out(variable.image.data(), address, bytes, turn.stream),
                  "cuMemcpyDtoHAsync");
    }
  }
  /// The first variable that is not what it was when the program was loaded; empty if all are.
  [[nodiscard]] std::string changed_variable() {
    if (variables_.empty()) return {};
    const detail::CudaTurn turn(*context_);
    std::vector<std::vector<std::byte>> contents;
    for (const auto& variable : variables_) {
      auto& content = contents.emplace_back(variable.image.size());
      turn.demand(turn.driver.copy_out(content.data(), variable.address, content.size(), turn.stream),
                  "cuMemcpyDtoHAsync");
    }
    turn.demand(turn.driver.stream_synchronize(turn.stream), "cuStreamSynchronize");
    for (std::size_t i = 0; i < variables_.size(); ++i)
      if (contents[i] != variables_[i].image) return detail::demangled(variables_[i].name);
    return {};
  }

  void load() {
    const detail::CudaContext::Use use(*context_);
    const auto& driver = context_->driver();
    load(driver, compilation_.cubin);
    for (const auto& one : compilation_.further) load(driver, one.cubin);
    functions_.clear();
    for (const auto& entry : compilation_.entries) {
      auto& function = functions_.emplace_back();
      driver.demand(driver.module_function(&function.handle, modules_[entry.binary], entry.name.c_str()),
                    "cuModuleGetFunction");
      const auto attribute = [&](detail::FunctionAttribute which) {
        int value = 0;
        driver.demand(driver.function_attribute(&value, which, function.handle), "cuFuncGetAttribute");
        return value;
      };
      function.max_threads = attribute(detail::FunctionAttribute::max_threads);
      function.static_shared_bytes = attribute(detail::FunctionAttribute::static_shared_bytes);
      using enum detail::FunctionAttribute;
      for (std::size_t axis = 0; axis < 3; ++axis)
        // Drivers that know no clusters do not know the question.
        if (driver.function_attribute(&function.cluster[axis],
                                      std::array{cluster_x, cluster_y, cluster_z}[axis],
                                      function.handle) != detail::cuda_code::success)
          function.cluster[axis] = 0;
      const auto note = [&](const char* key, double value) {
        compilation_.resources[key] = std::max(compilation_.resources[key], value);
      };
      function.registers = attribute(detail::FunctionAttribute::registers);
      note("registers", function.registers);
      note("local_bytes", attribute(detail::FunctionAttribute::local_bytes));
      note("shared_bytes", function.static_shared_bytes);
    }
    read_variables();
  }
  void load(const detail::CudaDriver& driver, const std::string& cubin) {
    detail::CudaHandle module = nullptr;
    const auto loaded = driver.module_load(&module, cubin.data(), 0, nullptr, nullptr);
    if (loaded == detail::cuda_code::out_of_memory)
      throw Error(error_id::backend_memory,
                  "the variables and tables of a kernel do not fit into the memory of the device",
                  "Make the tables of the kernel smaller, or free memory of the device");
    driver.demand(loaded, "cuModuleLoadDataEx");
    modules_.push_back(module);
  }
  /// Adds the occupancy of the plan's main launch to the resources.
  void note_occupancy(const std::string& architecture, const LaunchPlan& plan) {
    const auto unit = detail::multiprocessor_of(architecture);
    if (!unit || functions_.empty()) return;
    const auto main = detail::main_launch(plan);
    const auto& function = functions_[main];
    detail::note_occupancy(
        *unit, detail::block_needs(plan.launches[main], function.registers, function.static_shared_bytes),
        compilation_.resources);
  }
  void unload() noexcept {
    if (modules_.empty() || context_->lost()) return;
    try {
      const detail::CudaContext::Use use(*context_);
      for (auto* const module : modules_) (void)context_->driver().module_unload(module);
    } catch (...) {
      context_->lose("a program could not be unloaded");
    }
    modules_.clear();
  }

  /// Bytes of local memory that a thread of the function with most of it has.
  [[nodiscard]] double local_bytes() const {
    const auto found = compilation_.resources.find("local_bytes");
    return found == compilation_.resources.end() ? 0 : found->second;
  }

  std::shared_ptr<detail::CudaContext> context_;
  /// Whether what others left is overwritten before the next run.
  bool overwrites_residue_ = false;
  detail::CudaCompilation compilation_;
  /// One for each binary, in their order.
  std::vector<detail::CudaHandle> modules_;
  std::vector<Function> functions_;
  std::vector<Variable> variables_;
  std::vector<std::string> hidden_variables_;
};

} // namespace mtmc
