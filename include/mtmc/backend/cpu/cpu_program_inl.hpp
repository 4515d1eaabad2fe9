#pragma once
/// Definitions of backend/cpu/cpu_program.hpp.

#include <mtmc/backend/cpu/cpu_program.hpp>
#include <mtmc/backend/cpu/runner.hpp>
#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/backend/cpu/trampolines.hpp>
#include <mtmc/backend/probed_assembly.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/sha256.hpp>
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
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE RunStatus launch_failed(std::string message) {
  return {RunOutcome::launch_failed, std::move(message)};
}

MTMC_INLINE void bind_buffer(const LaunchArgument& argument, const BufferRegistry& registry,
                             BoundGroup& group, RunnerArgument& bound) {
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
  bound = {argument.zeroed ? runner_protocol::argument_zeroed : runner_protocol::argument_buffer,
           place.handle, static_cast<std::uint64_t>(place.offset), static_cast<std::uint64_t>(place.bytes)};
  group.ranges.push_back(memory->content().subspan(static_cast<std::size_t>(place.offset),
                                                   static_cast<std::size_t>(place.bytes)));
  group.buffers.emplace(place.handle, std::move(memory));
}

MTMC_INLINE std::optional<std::string> bind_plans(std::span<const LaunchPlan> plans,
                                                  const std::vector<LaunchSignature>& signatures,
                                                  const BufferRegistry& registry, BoundGroup& group) {
  for (const auto& plan : plans) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
      const auto& launch = plan.launches[i];
      const auto place = place_of_call(launch, signatures, next);
      if (place == signatures.size())
        return "launch " + std::to_string(i + 1) + " of the plan (" + launch.entry +
               ") has other arguments than the program was compiled for";
      next = place + 1;
      RunnerLaunch& translated = group.launches.emplace_back();
      group.sources.push_back(&launch);
      translated.trampoline = place;
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

MTMC_INLINE std::vector<std::span<std::byte>> merged(std::vector<std::span<std::byte>> ranges) {
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

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE void CpuProgram::retire() {
  const std::scoped_lock lock(mutex_);
  runner_.reset();
}

MTMC_INLINE std::optional<double> CpuProgram::runner_seconds() const noexcept {
  return runner_ == nullptr ? 0 : runner_->cpu_seconds();
}

MTMC_INLINE void CpuProgram::restore_settings() {
  if (runner_ != nullptr && !runner_->restore_settings()) runner_.reset();
}

MTMC_INLINE void CpuProgram::check_object() const {
  std::string reason;
  try {
    if (sha256_hex(read_file(object_->path())) == object_->hash) return;
    reason = "it has other bytes";
  } catch (const std::system_error& error) {
    reason = error.what();
  }
  throw Error(error_id::backend_runner,
              "the compiled kernel in " + object_->path() + " is not what the compiler left there: " + reason,
              "Keep other programs out of the folder for temporary files, or name another one")
      .about("CpuBackendOptions::temporary_folder");
}

MTMC_INLINE RunStatus CpuProgram::start(const detail::RunnerSetup& setup, Deadline deadline) {
  check_object();
  runner_ = std::make_unique<detail::Runner>(setup);
  const auto loaded = runner_->load(object_->path(), object_->trampolines(), deadline);
  if (!loaded.status.finished()) return give_up(loaded.status);
  if (loaded.accepted) return {};
  runner_.reset();
  return detail::launch_failed("the compiled kernel cannot be loaded: " + loaded.text);
}

MTMC_INLINE RunStatus CpuProgram::prepare(const detail::BoundGroup& group, int processor, Deadline deadline) {
  if (keeps_state_ && runner_->has_caller() && prepared_ == group.launches) return {};
  const auto mapped = runner_->map(group.buffers, deadline);
  if (!mapped.status.finished()) return give_up(mapped.status);
  if (!mapped.accepted) {
    runner_.reset();
    throw Error(error_id::backend_memory,
                "a buffer cannot be mapped into the runner: " +
                    std::string(std::strerror(static_cast<int>(mapped.first))),
                "Choose smaller sizes or raise the limit on address space (ulimit -v)");
  }
  const auto prepared = runner_->prepare(group.launches, deadline);
  if (!prepared.status.finished()) return give_up(prepared.status);
  if (!prepared.accepted) return detail::launch_failed("the runner cannot make it: " + prepared.text);
  prepared_ = group.launches;
  runner_->keep_to(processor);
  const auto begun = runner_->begin(deadline);
  return begun.status.finished() ? begun.status : give_up(begun.status);
}

MTMC_INLINE RunStatus CpuProgram::misfit(const detail::BoundGroup& group,
                                         const detail::RunnerReply& prepared) {
  if (prepared.first >= group.sources.size() || prepared.second < 1 ||
      prepared.second > group.sources[prepared.first]->arguments.size())
    return detail::launch_failed("the runner cannot make it: " + prepared.text);
  const auto& launch = *group.sources[prepared.first];
  const auto& argument = launch.arguments[prepared.second - 1];
  return detail::launch_failed("argument " + std::to_string(prepared.second) + " of the launch in line " +
                               std::to_string(launch.line) + " (`" + argument.name +
                               "` = " + std::to_string(argument.integer) +
                               ") does not fit the type of its parameter in `" + launch.entry + '`');
}

MTMC_INLINE RunStatus CpuProgram::go(const detail::BoundGroup& group, Deadline deadline, double& seconds) {
  const auto reply = runner_->go(deadline, seconds, keeps_state_);
  if (!reply.status.finished()) return give_up(reply.status);
  return reply.accepted ? reply.status : misfit(group, reply);
}

MTMC_INLINE std::vector<Branch> CpuProgram::branches() {
  const std::scoped_lock lock(mutex_);
  return ways_ ? detail::with_ways(object_->branches, ways_->content()) : object_->branches;
}

MTMC_INLINE void CpuProgram::add_branches(detail::BoundGroup& group) const {
  if (!ways_) return;
  group.launches.push_back(
      {object_->signatures.size(), {{detail::runner_protocol::argument_buffer, ways_->handle(), 0, 0}}});
  group.buffers.emplace(ways_->handle(), ways_->memory_);
}

MTMC_INLINE RunStatus CpuProgram::give_up(RunStatus status) {
  runner_.reset();
  return status;
}

} // namespace mtmc
