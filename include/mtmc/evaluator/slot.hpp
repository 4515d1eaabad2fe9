#pragma once
/// One set of guarded buffers, bound to a launch plan.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/evaluator/guarded_buffer.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/poison.hpp>
#include <mtmc/evaluator/problem_layout.hpp>
#include <mtmc/evaluator/refusal.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
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

/// Allocates the buffers of a plan and binds them. A guard page needs a backend that has them.
template <class B>
[[nodiscard]] Slot<B> make_slot(B& backend, const ProblemLayout& layout, const LaunchPlan& plan,
                                std::size_t red_zone_bytes, BufferGuard guard = BufferGuard::red_zones) {
  Slot<B> slot;
  slot.plan = plan;
  constexpr std::size_t usual_page = 4096;
  const std::size_t page = std::max(usual_page, guard_page_bytes_of(backend));
  std::uint64_t place = 0;
  const auto add = [&](std::vector<GuardedBuffer<B>>& buffers, const std::string& name, std::size_t bytes) {
    const auto around = guard_layout(bytes, red_zone_bytes, guard, page);
    buffers.push_back({backend.allocate(around.total()), around, 0, place++});
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

/// Gives two slots of one layout each other's argument buffers; scratch buffers stay.
template <class B> void swap_buffers(Slot<B>& a, Slot<B>& b, const ProblemLayout& layout) {
  std::swap(a.buffers, b.buffers);
  for (auto* slot : {&a, &b})
    for (std::size_t i = 0; i < slot->buffers.size(); ++i) {
      const auto& buffer = slot->buffers[i];
      detail::bind_buffer(slot->plan, layout.buffers[i].name,
                          {static_cast<std::uint64_t>(buffer.memory.handle()),
                           static_cast<std::int64_t>(buffer.layout.front),
                           static_cast<std::int64_t>(buffer.layout.bytes)});
    }
}

/// Which buffers get their contents before a call.
enum class Refill {
  all,
  /// Inputs are known to be as they were: only inout arguments are written again.
  inout_only
};

namespace detail {

template <class B> void poison_buffer(B& backend, GuardedBuffer<B>& buffer, const Poison& poison) {
  // Apart from the streams of the red zones.
  constexpr std::uint64_t contents = std::uint64_t{1} << 32;
  const auto& layout = buffer.layout;
  if (poison.noise)
    fill_with_repeated_noise(backend, buffer.memory, layout.front, layout.bytes, *poison.noise,
                             contents + buffer.place);
  else
    fill_buffer(backend, buffer.memory, layout.front, layout.bytes, poison_byte);
}

} // namespace detail

/// Readies a slot for a call: inputs get their contents, outputs and scratch buffers the poison, red zones
/// new bytes. `locks` may leave out the latter two. Where `owner` is given, it keeps `inputs` alive and
/// unchanged until the call, which saves copies.
template <class B>
void load_slot(B& backend, Slot<B>& slot, const ProblemLayout& layout, const BufferContents& inputs,
               const Poison& poison, std::uint64_t red_zone_key, const EvaluatorLocks& locks,
               Refill refill = Refill::all, const std::shared_ptr<const void>& owner = {}) {
  for (std::size_t i = 0; i < slot.buffers.size(); ++i) {
    auto& buffer = slot.buffers[i];
    const auto role = layout.buffers[i].role;
    if (locks.red_zones) renew_red_zones(backend, buffer, red_zone_key);
    if (role == ArgumentRole::output && locks.poison)
      detail::poison_buffer(backend, buffer, poison);
    else if (role == ArgumentRole::inout || (role == ArgumentRole::input && refill == Refill::all))
      upload_shared(backend, buffer.memory, buffer.layout.front, std::span<const std::byte>(inputs[i]),
                    owner);
  }
  for (auto& buffer : slot.scratch) {
    if (locks.red_zones) renew_red_zones(backend, buffer, red_zone_key);
    if (locks.poison) detail::poison_buffer(backend, buffer, poison);
  }
}

/// Contents of all results after a call, in the order of the layout; empty for inputs. They lie in the slot
/// where the backend shows it: valid until its next call, unless they are kept.
class CallResults {
public:
  CallResults() = default;
  CallResults(CallResults&&) noexcept = default;
  CallResults& operator=(CallResults&&) noexcept = default;
  CallResults(const CallResults&) = delete;
  CallResults& operator=(const CallResults&) = delete;
  ~CallResults() = default;

  template <class B> CallResults(B& backend, Slot<B>& slot, const ProblemLayout& layout) {
    contents_.resize(slot.buffers.size());
    shown_.resize(slot.buffers.size());
    for (std::size_t i = 0; i < slot.buffers.size(); ++i)
      if (layout.buffers[i].is_written())
        shown_[i] = look_at(backend, slot.buffers[i].memory, slot.buffers[i].layout.front,
                            slot.buffers[i].layout.bytes, contents_[i]);
  }

  [[nodiscard]] std::size_t size() const noexcept { return shown_.size(); }
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const noexcept { return shown_[i]; }

  /// Copies what still lies in the slot.
  void keep() {
    for (std::size_t i = 0; i < shown_.size(); ++i) {
      if (shown_[i].data() == contents_[i].data()) continue;
      contents_[i].assign(shown_[i].begin(), shown_[i].end());
      shown_[i] = contents_[i];
    }
  }
  /// The contents themselves, copied if need be.
  [[nodiscard]] BufferContents take() && {
    keep();
    shown_.clear();
    return std::move(contents_);
  }

private:
  BufferContents contents_;
  std::vector<std::span<const std::byte>> shown_;
};

/// Removes what a call left on the device, where another program could find it: its results, and what led to
/// them in scratch buffers.
template <class B> void forget_results(B& backend, Slot<B>& slot, const ProblemLayout& layout) {
  const auto wipe = [&](GuardedBuffer<B>& buffer) {
    fill_buffer(backend, buffer.memory, buffer.layout.front, buffer.layout.bytes, detail::poison_byte);
  };
  for (std::size_t i = 0; i < slot.buffers.size(); ++i)
    if (layout.buffers[i].is_written()) wipe(slot.buffers[i]);
  for (auto& scratch : slot.scratch) wipe(scratch);
}

/// Looks for writes where none are allowed, as far as `locks` say so: all red zones, and, where `inputs` are
/// given, every byte of every input.
template <class B>
[[nodiscard]] std::optional<Refusal> find_damage(B& backend, Slot<B>& slot, const ProblemLayout& layout,
                                                 const BufferContents* inputs, const EvaluatorLocks& locks) {
  for (std::size_t i = 0; i < slot.buffers.size() && locks.red_zones; ++i)
    if (const auto damage = find_red_zone_damage(backend, slot.buffers[i]))
      return red_zone_refusal(layout.buffers[i].name, *damage, layout.size);
  for (std::size_t i = 0; i < slot.scratch.size() && locks.red_zones; ++i)
    if (const auto damage = find_red_zone_damage(backend, slot.scratch[i]))
      return red_zone_refusal("scratch buffer " + slot.plan.scratch[i].name, *damage, layout.size);
  if (inputs == nullptr || !locks.inputs_unchanged) return std::nullopt;
  std::vector<std::byte> room;
  for (std::size_t i = 0; i < slot.buffers.size(); ++i) {
    if (layout.buffers[i].role != ArgumentRole::input) continue;
    const std::span<const std::byte> wanted((*inputs)[i]);
    for (std::size_t done = 0; done < wanted.size(); done += detail::fill_chunk) {
      const std::size_t piece = std::min(detail::fill_chunk, wanted.size() - done);
      const auto seen =
          look_at(backend, slot.buffers[i].memory, slot.buffers[i].layout.front + done, piece, room);
      if (std::memcmp(seen.data(), wanted.data() + done, piece) != 0)
        return modified_refusal(layout.buffers[i].name, layout.size);
    }
  }
  return std::nullopt;
}

} // namespace mtmc
