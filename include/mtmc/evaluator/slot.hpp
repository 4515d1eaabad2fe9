#pragma once
/// One set of guarded buffers, bound to a launch plan.

#include <mtmc/core/launch_plan.hpp>
#include <mtmc/evaluator/guarded_buffer.hpp>
#include <mtmc/evaluator/poison.hpp>
#include <mtmc/evaluator/problem_layout.hpp>
#include <mtmc/evaluator/refusal.hpp>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc {

/// Contents of the buffers of a layout, in its order; empty where there is none.
using BufferContents = std::vector<std::vector<std::byte>>;

/// Buffers for one call: those of the arguments, in the order of the layout, those of the scratch lines, and
/// the plan that names them.
template <class B> struct Slot {
  std::vector<GuardedBuffer<B>> buffers;
  std::vector<GuardedBuffer<B>> scratch;
  LaunchPlan plan;
};

namespace detail {

inline void bind_buffer(LaunchPlan& plan, const std::string& name, const BoundBuffer& bound) {
  for (auto& launch : plan.launches)
    for (auto& argument : launch.arguments)
      if (argument.kind != LaunchArgument::Kind::scalar && argument.name == name) argument.bound = bound;
}

} // namespace detail

/// Allocates the buffers of a plan and binds them.
template <class B>
[[nodiscard]] Slot<B> make_slot(B& backend, const ProblemLayout& layout, const LaunchPlan& plan,
                                const RedZonePattern& pattern, std::size_t red_zone_bytes) {
  Slot<B> slot;
  slot.plan = plan;
  const auto add = [&](std::vector<GuardedBuffer<B>>& buffers, const std::string& name, std::size_t bytes) {
    buffers.push_back(allocate_guarded(backend, guard_layout(bytes, red_zone_bytes), pattern));
    const auto& added = buffers.back();
    detail::bind_buffer(slot.plan, name,
                        {static_cast<std::uint64_t>(added.memory.handle()),
                         static_cast<std::int64_t>(added.layout.front), static_cast<std::int64_t>(bytes)});
  };
  for (const auto& buffer : layout.buffers) add(slot.buffers, buffer.name, buffer.bytes);
  for (const auto& scratch : slot.plan.scratch)
    add(slot.scratch, scratch.name, static_cast<std::size_t>(scratch.bytes()));
  return slot;
}

/// Which buffers get their contents before a call.
enum class Refill {
  all,
  /// Inputs are known to be as they were: only inout arguments are written again.
  inout_only
};

/// Readies a slot for a call: inputs get their contents, outputs and scratch buffers the poison.
template <class B>
void load_slot(B& backend, Slot<B>& slot, const ProblemLayout& layout, const BufferContents& inputs,
               Poison poison, Refill refill = Refill::all) {
  for (std::size_t i = 0; i < slot.buffers.size(); ++i) {
    auto& buffer = slot.buffers[i];
    const auto role = layout.buffers[i].role;
    if (role == ArgumentRole::output)
      fill_buffer(backend, buffer.memory, buffer.layout.front, buffer.layout.bytes, byte_of(poison));
    else if (refill == Refill::all || role == ArgumentRole::inout)
      backend.upload(buffer.memory, buffer.layout.front, std::span<const std::byte>(inputs[i]));
  }
  for (auto& buffer : slot.scratch)
    fill_buffer(backend, buffer.memory, buffer.layout.front, buffer.layout.bytes, byte_of(poison));
}

/// Contents of all results after a call; empty for inputs.
template <class B>
[[nodiscard]] BufferContents download_results(B& backend, Slot<B>& slot, const ProblemLayout& layout) {
  BufferContents results(slot.buffers.size());
  for (std::size_t i = 0; i < slot.buffers.size(); ++i) {
    if (!layout.buffers[i].is_written()) continue;
    results[i].resize(slot.buffers[i].layout.bytes);
    backend.download(slot.buffers[i].memory, slot.buffers[i].layout.front, std::span(results[i]));
  }
  return results;
}

/// Removes the results of a call from the device, where another program could find them.
template <class B> void forget_results(B& backend, Slot<B>& slot, const ProblemLayout& layout) {
  for (std::size_t i = 0; i < slot.buffers.size(); ++i)
    if (layout.buffers[i].is_written())
      fill_buffer(backend, slot.buffers[i].memory, slot.buffers[i].layout.front, slot.buffers[i].layout.bytes,
                  byte_of(Poison::all_ones));
}

/// Looks for writes where none are allowed: all red zones, and, where `inputs` are given, every byte of every
/// input.
template <class B>
[[nodiscard]] std::optional<Refusal> find_damage(B& backend, Slot<B>& slot, const ProblemLayout& layout,
                                                 const BufferContents* inputs,
                                                 const RedZonePattern& pattern) {
  for (std::size_t i = 0; i < slot.buffers.size(); ++i)
    if (const auto damage = find_red_zone_damage(backend, slot.buffers[i], pattern))
      return red_zone_refusal(layout.buffers[i].name, *damage, layout.size);
  for (std::size_t i = 0; i < slot.scratch.size(); ++i)
    if (const auto damage = find_red_zone_damage(backend, slot.scratch[i], pattern))
      return red_zone_refusal("scratch buffer " + slot.plan.scratch[i].name, *damage, layout.size);
  if (inputs == nullptr) return std::nullopt;
  constexpr std::size_t chunk = std::size_t{1} << 18;
  std::vector<std::byte> seen;
  for (std::size_t i = 0; i < slot.buffers.size(); ++i) {
    if (layout.buffers[i].role != ArgumentRole::input) continue;
    const std::span<const std::byte> wanted((*inputs)[i]);
    for (std::size_t done = 0; done < wanted.size(); done += chunk) {
      const std::size_t piece = std::min(chunk, wanted.size() - done);
      seen.resize(piece);
      backend.download(slot.buffers[i].memory, slot.buffers[i].layout.front + done, std::span(seen));
      if (std::memcmp(seen.data(), wanted.data() + done, piece) != 0)
        return modified_refusal(layout.buffers[i].name, layout.size);
    }
  }
  return std::nullopt;
}

} // namespace mtmc
