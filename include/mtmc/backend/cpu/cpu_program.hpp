#pragma once
/// A compiled kernel, and the calls its runner makes.

#include <mtmc/backend/cpu/runner.hpp>
#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/backend/cpu/trampolines.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::detail {

/// A shared object on disk, removed with this object.
struct CompiledObject {
  TemporaryFolder folder;
  /// In the order of the plan's launches; the position is the trampoline's number.
  std::vector<LaunchSignature> signatures;

  [[nodiscard]] std::string path() const { return folder.path() + "/program.so"; }
};

/// A group of plans as a runner is told of it.
struct BoundGroup {
  std::vector<RunnerLaunch> launches;
  /// For messages about the launch of the same position.
  std::vector<const Launch*> sources;
  std::map<std::uint64_t, std::shared_ptr<const SharedMemory>> buffers;
  /// What the launches read or write.
  std::vector<std::span<std::byte>> ranges;
};

[[nodiscard]] inline RunStatus launch_failed(std::string message) {
  return {RunOutcome::launch_failed, std::move(message)};
}

/// The place a buffer argument is bound to. Throws `Error` (`mtmc.backend.002`) if that is none of a live
/// buffer.
inline void bind_buffer(const LaunchArgument& argument, const BufferRegistry& registry, BoundGroup& group,
                        RunnerArgument& bound) {
  const auto& place = argument.bound;
  auto memory = registry.find(place.handle);
  const auto refuse = [&](const std::string& reason) {
    throw Error(error_id::backend_memory, "argument `" + argument.name + "` " + reason,
                "Bind every buffer of a plan to memory that this backend allocated and that is still alive");
  };
  if (memory == nullptr) return refuse("is bound to no buffer of this backend");
  const auto size = memory->content().size();
  if (place.offset < 0 || place.bytes < 0 || static_cast<std::uint64_t>(place.offset) > size ||
      static_cast<std::uint64_t>(place.bytes) > size - static_cast<std::uint64_t>(place.offset))
    return refuse("is bound to bytes beyond its buffer");
  bound = {runner_protocol::argument_buffer, place.handle, static_cast<std::uint64_t>(place.offset)};
  group.ranges.push_back(memory->content().subspan(static_cast<std::size_t>(place.offset),
                                                   static_cast<std::size_t>(place.bytes)));
  group.buffers.emplace(place.handle, std::move(memory));
}

/// Translates plans for a program of those signatures. Gives the reason if they do not belong together.
[[nodiscard]] inline std::optional<std::string> bind_plans(std::span<const LaunchPlan> plans,
                                                           const std::vector<LaunchSignature>& signatures,
                                                           const BufferRegistry& registry,
                                                           BoundGroup& group) {
  for (const auto& plan : plans) {
    if (plan.launches.size() != signatures.size())
      return "the plan has another number of launches than the program was compiled for";
    for (std::size_t i = 0; i < signatures.size(); ++i) {
      const auto& launch = plan.launches[i];
      if (!signatures[i].same_call(signature_of(launch)))
        return "launch " + std::to_string(i + 1) + " of the plan (" + launch.entry +
               ") has other arguments than the program was compiled for";
      RunnerLaunch& translated = group.launches.emplace_back();
      group.sources.push_back(&launch);
      translated.trampoline = i;
      for (const auto& argument : launch.arguments) {
        auto& bound = translated.arguments.emplace_back();
        if (argument.kind == LaunchArgument::Kind::buffer)
          bind_buffer(argument, registry, group, bound);
        else
          bound.value = is_floating(argument.type) ? std::bit_cast<std::uint64_t>(argument.real)
                                                   : static_cast<std::uint64_t>(argument.integer);
      }
    }
  }
  return std::nullopt;
}

/// The same bytes without overlaps, in order of address.
[[nodiscard]] inline std::vector<std::span<std::byte>> merged(std::vector<std::span<std::byte>> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.data() < b.data(); });
  std::vector<std::span<std::byte>> result;
  for (const auto range : ranges) {
    if (result.empty() || range.data() > result.back().data() + result.back().size()) {
      result.push_back(range);
      continue;
    }
    auto& last = result.back();
    const auto end = std::max(last.data() + last.size(), range.data() + range.size());
    last = {last.data(), static_cast<std::size_t>(end - last.data())};
  }
  return result;
}

} // namespace mtmc::detail

namespace mtmc {

/// A compiled kernel. Runs in a runner process of its own, which is started with the first run, keeps its
/// state between runs, and is given up when a run ends `timed_out` or `faulted`; should the program be run
/// again, a fresh one is started. May be used from several threads, one call at a time goes through.
class CpuProgram {
public:
  CpuProgram(std::shared_ptr<const detail::CompiledObject> object, std::shared_ptr<const void> backend)
      : backend_(std::move(backend)), object_(std::move(object)) {}

  /// Ends the runner, if there is one. The next run starts a fresh one, with nothing left of earlier runs.
  void retire() {
    const std::scoped_lock lock(mutex_);
    runner_.reset();
  }

private:
  friend class CpuBackend;

  // Processor time of the present runner; 0 without one. To be called with the mutex held.
  [[nodiscard]] std::optional<double> runner_seconds() const noexcept {
    return runner_ == nullptr ? 0 : runner_->cpu_seconds();
  }

  /// Puts right what others changed about the runner since it stopped, or gives it up where that is not
  /// possible.
  void restore_settings() {
    if (runner_ != nullptr && !runner_->restore_settings()) runner_.reset();
  }

  // Starts a runner and has it load the program.
  [[nodiscard]] RunStatus start(const detail::RunnerSetup& setup, Deadline deadline) {
    runner_ = std::make_unique<detail::Runner>(setup);
    const auto loaded = runner_->load(object_->path(), object_->signatures.size(), deadline);
    if (!loaded.status.finished()) return give_up(loaded.status);
    if (loaded.accepted) return {};
    runner_.reset();
    return detail::launch_failed("the compiled kernel cannot be loaded: " + loaded.text);
  }

  // Gets the runner ready for `group`.
  [[nodiscard]] RunStatus prepare(const detail::BoundGroup& group, Deadline deadline) {
    const auto mapped = runner_->map(group.buffers, deadline);
    if (!mapped.status.finished()) return give_up(mapped.status);
    if (!mapped.accepted) {
      // Whoever's code has run there may have done anything to that process, and lie about it.
      const bool is_fault = runner_->called();
      runner_.reset();
      if (is_fault)
        return {RunOutcome::faulted,
                "the kernel left its process in a state in which no buffer can be mapped"};
      throw Error(error_id::backend_memory,
                  "a buffer cannot be mapped into the runner: " +
                      std::string(std::strerror(static_cast<int>(mapped.first))),
                  "Choose smaller sizes or raise the limit on address space (ulimit -v)");
    }
    const auto prepared = runner_->prepare(group.launches, deadline);
    if (!prepared.status.finished()) return give_up(prepared.status);
    if (prepared.accepted) return {};
    return detail::launch_failed("the runner refused the launch: " + prepared.text);
  }

  /// What the answer of a program means that did not take a value.
  [[nodiscard]] static RunStatus misfit(const detail::BoundGroup& group,
                                        const detail::RunnerReply& prepared) {
    if (prepared.first >= group.sources.size() || prepared.second < 1 ||
        prepared.second > group.sources[prepared.first]->arguments.size())
      return detail::launch_failed("the runner refused the launch: " + prepared.text);
    const auto& launch = *group.sources[prepared.first];
    const auto& argument = launch.arguments[prepared.second - 1];
    return detail::launch_failed("argument " + std::to_string(prepared.second) + " of the launch in line " +
                                 std::to_string(launch.line) + " (`" + argument.name +
                                 "` = " + std::to_string(argument.integer) +
                                 ") does not fit the type of its parameter in `" + launch.entry + '`');
  }

  [[nodiscard]] RunStatus go(const detail::BoundGroup& group, int processor, Deadline deadline,
                             double& seconds) {
    runner_->keep_to(processor);
    const auto reply = runner_->go(deadline, seconds);
    if (!reply.status.finished()) return give_up(reply.status);
    return reply.accepted ? reply.status : misfit(group, reply);
  }

  [[nodiscard]] RunStatus give_up(RunStatus status) {
    runner_.reset();
    return status;
  }

  // Keeps the backend's folder and settings alive; the object lies in that folder.
  std::shared_ptr<const void> backend_;
  std::shared_ptr<const detail::CompiledObject> object_;
  std::mutex mutex_;
  std::unique_ptr<detail::Runner> runner_;
};

} // namespace mtmc
