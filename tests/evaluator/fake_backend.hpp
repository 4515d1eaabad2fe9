#pragma once
/// A backend whose programs are C++ functions and whose clock is made up, so that every rule of the protocol
/// can be tried without a compiler and without waiting.

#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace fake {

/// What a program sees of a call.
struct Call {
  const mtmc::Launch& launch;
  const mtmc::LaunchPlan& plan;
  /// How often this program has been called before.
  int earlier = 0;

  [[nodiscard]] const mtmc::LaunchArgument& argument(const std::string& name) const {
    for (const auto& candidate : launch.arguments)
      if (candidate.name == name) return candidate;
    throw std::runtime_error("no argument " + name);
  }
  template <class T> [[nodiscard]] std::span<T> buffer(const std::string& name) const {
    const auto& found = argument(name);
    return {static_cast<T*>(address(name)), static_cast<std::size_t>(found.bound.bytes) / sizeof(T)};
  }
  [[nodiscard]] void* address(const std::string& name) const {
    const auto& found = argument(name);
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(found.bound.handle)) + found.bound.offset;
  }
  [[nodiscard]] std::int64_t scalar(const std::string& name) const { return argument(name).integer; }
};

/// True for about half of a program's calls, in a sequence without a period, so that the two runs of some
/// check differ whatever is called between them.
inline bool is_odd_one(const Call& call) {
  return std::popcount(static_cast<unsigned>(call.earlier)) % 2 == 1;
}

/// A program: what it computes, and how long it pretends to take.
struct Kernel {
  std::function<void(const Call&)> body;
  /// Seconds of one call; the mean of the noise.
  double seconds = 1e-3;
  /// Relative width of the noise.
  double noise = 0.02;
  /// How a call ends, and after how many calls it starts to end so.
  mtmc::RunOutcome outcome = mtmc::RunOutcome::finished;
  int ends_after = 0;
};

/// Where all buffers lie that have not been freed, and their bytes.
using Memory = std::map<std::byte*, std::size_t>;

/// Entry functions by name; shared by a test and the backend it gave away.
struct World {
  std::map<std::string, Kernel> kernels;
  std::atomic<int> compilations{0};
  int runs = 0;
  int timed_groups = 0;
  std::size_t largest_group = 0;
  /// Calls of the last timed group, by the entry of its first launch.
  std::map<std::string, std::size_t> last_group;
  /// Entries of timed groups, in order.
  std::vector<std::string> timed;
  mtmc::Device device{.name = "fake", .kind = "fake", .compute_units = 4};
  /// What the screen says of a text.
  std::map<std::string, std::vector<mtmc::Diagnostic>> screened;
  /// Writes a kernel anew in double precision; without it nothing is written.
  std::function<std::optional<mtmc::Kernel>(const mtmc::Kernel&)> in_double;
  /// What measuring the read bandwidth again gives.
  double bandwidth_now = 0;
  /// What a reading of the counters says, by how many groups have been timed; may be empty.
  std::function<mtmc::Conditions(int)> conditions;
  /// Profiles that were taken.
  int profiles = 0;
  /// As on a device, every kernel could write anywhere.
  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
  /// Most bytes and buffers that can be allocated at a time.
  std::size_t memory_limit = std::numeric_limits<std::size_t>::max();
  std::size_t buffer_limit = std::numeric_limits<std::size_t>::max();
  /// Called with what is compiled; may throw.
  std::function<void(const mtmc::Kernel&)> on_compile;

  [[nodiscard]] std::size_t bytes_in_use() const {
    std::size_t bytes = 0;
    for (const auto& [at, size] : *memory) bytes += size;
    return bytes;
  }
};

class Backend {
public:
  struct Program {
    std::map<std::string, int> calls;
    bool dead = false;

    /// Ends the process, so to speak.
    void retire() { calls.clear(); }
  };
  class Buffer {
  public:
    explicit Buffer(std::size_t bytes, std::shared_ptr<Memory> all = std::make_shared<Memory>())
        : memory_(new std::byte[bytes](), Free{std::move(all)}) {
      memory_.get_deleter().all->emplace(memory_.get(), bytes);
    }
    [[nodiscard]] std::uint64_t handle() const { return reinterpret_cast<std::uintptr_t>(memory_.get()); }
    [[nodiscard]] std::byte* data() const { return memory_.get(); }

  private:
    struct Free {
      std::shared_ptr<Memory> all;
      void operator()(std::byte* memory) const {
        all->erase(memory);
        delete[] memory;
      }
    };
    std::unique_ptr<std::byte[], Free> memory_;
  };

  explicit Backend(std::shared_ptr<World> world) : world_(std::move(world)) {}

  [[nodiscard]] const mtmc::Device& device() const { return world_->device; }
  [[nodiscard]] std::vector<mtmc::Diagnostic> screen(const mtmc::Kernel& kernel) const {
    const auto found = world_->screened.find(kernel.source);
    return found == world_->screened.end() ? std::vector<mtmc::Diagnostic>{} : found->second;
  }

  [[nodiscard]] std::optional<mtmc::Kernel> in_double_precision(const mtmc::Kernel& kernel) const {
    return world_->in_double ? world_->in_double(kernel) : std::nullopt;
  }

  [[nodiscard]] mtmc::CompileResult<Program> compile(const mtmc::Kernel& kernel,
                                                     const mtmc::CompileOptions& options, std::stop_token) {
    ++world_->compilations;
    if (world_->on_compile) world_->on_compile(kernel);
    mtmc::CompileResult<Program> result;
    result.seconds = 0.25;
    if (kernel.source.find("endless template") != std::string::npos) {
      result.timed_out = true;
      return result;
    }
    for (const auto& launch : options.plan.launches)
      if (!world_->kernels.contains(launch.entry)) {
        mtmc::Diagnostic diagnostic;
        diagnostic.line = launch.line;
        diagnostic.message = "'" + launch.entry + "' was not declared";
        result.diagnostics.push_back(diagnostic);
      }
    if (result.diagnostics.empty()) result.program = std::make_shared<Program>();
    result.resources["registers"] = 32;
    return result;
  }

  [[nodiscard]] mtmc::Conditions conditions() const {
    return world_->conditions ? world_->conditions(world_->timed_groups) : mtmc::Conditions{};
  }
  [[nodiscard]] double measure_read_bandwidth() const { return world_->bandwidth_now; }
  /// Says which kernel, how many of its buffers are bound, and what the first of them begins with.
  [[nodiscard]] mtmc::Profile profile(Program&, const mtmc::LaunchPlan& plan) {
    ++world_->profiles;
    mtmc::Profile result;
    double bound = 0;
    for (const auto& argument : plan.launches.front().arguments) bound += argument.bound.handle != 0 ? 1 : 0;
    result.evidence = mtmc::Evidence::counters;
    result.reason = plan.launches.front().entry;
    const auto begins = Call{plan.launches.front(), plan}.buffer<const float>("A").front();
    result.metrics = {{"bound", bound, {}, {}}, {"begins", static_cast<double>(begins), {}, {}}};
    return result;
  }
  [[nodiscard]] Buffer allocate(std::size_t bytes) {
    const auto used = world_->bytes_in_use();
    if (world_->memory->size() >= world_->buffer_limit || used > world_->memory_limit ||
        bytes > world_->memory_limit - used)
      throw mtmc::Error(mtmc::error_id::backend_memory,
                        "a buffer of " + std::to_string(bytes) + " bytes cannot be allocated",
                        "Choose smaller sizes");
    return Buffer(bytes, world_->memory);
  }
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
    std::memcpy(buffer.data() + offset, content.data(), content.size());
  }
  void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
    std::memcpy(target.data(), buffer.data() + offset, target.size());
  }

  [[nodiscard]] mtmc::RunStatus run(Program& program, const mtmc::LaunchPlan& plan, mtmc::Deadline) {
    ++world_->runs;
    double unused = 0;
    return call(program, plan, unused);
  }

  [[nodiscard]] mtmc::TimedRun time(Program& program, std::span<const mtmc::LaunchPlan> group, bool,
                                    mtmc::Deadline) {
    ++world_->timed_groups;
    world_->largest_group = std::max(world_->largest_group, group.size());
    world_->timed.push_back(group.front().launches.front().entry);
    world_->last_group[world_->timed.back()] = group.size();
    mtmc::TimedRun result;
    for (const auto& plan : group) {
      result.status = call(program, plan, result.seconds);
      if (!result.status.finished()) break;
    }
    return result;
  }

private:
  mtmc::RunStatus call(Program& program, const mtmc::LaunchPlan& plan, double& seconds) {
    if (program.dead) return {mtmc::RunOutcome::faulted, "the program is dead"};
    for (const auto& launch : plan.launches) {
      auto& kernel = world_->kernels.at(launch.entry);
      auto& calls = program.calls[launch.entry];
      if (kernel.outcome != mtmc::RunOutcome::finished && calls >= kernel.ends_after) {
        program.dead = kernel.outcome != mtmc::RunOutcome::launch_failed;
        return {kernel.outcome, "as planned"};
      }
      const Call call{launch, plan, calls};
      for (const auto& argument : launch.arguments)
        if (argument.zeroed)
          std::memset(call.address(argument.name), 0, static_cast<std::size_t>(argument.bound.bytes));
      kernel.body(call);
      ++calls;
      // A long tail to one side, as real machines have.
      const double noise = 1 + kernel.noise * (random_.uniform() + 5 * std::pow(random_.uniform(), 20.0));
      seconds += kernel.seconds * noise;
    }
    return {};
  }

  std::shared_ptr<World> world_;
  mtmc::PhiloxEngine random_{20240607};
};

} // namespace fake
