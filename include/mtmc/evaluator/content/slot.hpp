#pragma once
/// One set of guarded buffers, bound to a launch plan.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/evaluator/content/case_inputs.hpp>
#include <mtmc/evaluator/content/device_kernel.hpp>
#include <mtmc/evaluator/content/guarded_buffer.hpp>
#include <mtmc/evaluator/content/kept_contents.hpp>
#include <mtmc/evaluator/content/poison.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>

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

namespace mtmc::inline MTMC_ABI {

/// Buffers for one call: those of the arguments, in the order of the layout, those of the scratch lines, and
/// the plan that names them.
struct Slot {
  std::vector<GuardedBuffer> buffers; ///< of the arguments
  std::vector<GuardedBuffer> scratch; ///< of the scratch lines
  LaunchPlan plan;                    ///< names them in its arguments

  /// Address of the content of a buffer, on backends whose handles are addresses.
  [[nodiscard]] std::uint64_t address(std::size_t i) const {
    return static_cast<std::uint64_t>(buffers[i].memory.handle()) + buffers[i].layout.front;
  }
};

namespace detail {

inline void bind_buffer(LaunchPlan& plan, const std::string& name, const BoundBuffer& bound) {
  for (auto& launch : plan.launches)
    for (auto& argument : launch.arguments)
      if (argument.kind != LaunchArgument::Kind::scalar && argument.name == name) argument.bound = bound;
}

} // namespace detail

/// Allocates the buffers of a plan and binds them. A guard page needs a backend that has them.
[[nodiscard]] inline Slot make_slot(AnyBackend& backend, const ProblemLayout& layout, const LaunchPlan& plan,
                                    std::size_t red_zone_bytes, BufferGuard guard = BufferGuard::red_zones) {
  Slot slot;
  slot.plan = plan;
  constexpr std::size_t usual_page = 4096;
  const std::size_t page = std::max(usual_page, guard_page_bytes_of(backend));
  std::uint64_t place = 0;
  const auto add = [&](std::vector<GuardedBuffer>& buffers, const std::string& name, std::size_t bytes) {
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
inline void swap_buffers(Slot& a, Slot& b, const ProblemLayout& layout) {
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

/// Streams of the noise in contents, apart from those of the red zones.
inline constexpr std::uint64_t poison_stream = std::uint64_t{1} << 32;

inline void poison_buffer(AnyBackend& backend, GuardedBuffer& buffer, const Poison& poison) {
  const auto& layout = buffer.layout;
  if (poison.noise)
    fill_with_repeated_noise(backend, buffer.memory, layout.front, layout.bytes, *poison.noise,
                             poison_stream + buffer.place);
  else
    fill_buffer(backend, buffer.memory, layout.front, layout.bytes, poison_byte);
}

} // namespace detail

/// Readies a slot for a call: inputs get their contents, outputs and scratch buffers the poison, red zones
/// new bytes. `defences` may leave out the latter two. Where `owner` is given, it keeps `inputs` alive and
/// unchanged until the call, which saves copies.
inline void load_slot(AnyBackend& backend, Slot& slot, const ProblemLayout& layout, const CaseInputs& inputs,
                      const Poison& poison, std::uint64_t red_zone_key, const EvaluatorDefences& defences,
                      Refill refill = Refill::all, const std::shared_ptr<const void>& owner = {}) {
  for (std::size_t i = 0; i < slot.buffers.size(); ++i) {
    auto& buffer = slot.buffers[i];
    const auto role = layout.buffers[i].role;
    if (defences.red_zones) renew_red_zones(backend, buffer, red_zone_key);
    if (role == ArgumentRole::output && defences.poison)
      detail::poison_buffer(backend, buffer, poison);
    else if (role == ArgumentRole::inout || (role == ArgumentRole::input && refill == Refill::all))
      upload_shared(backend, buffer.memory, buffer.layout.front, std::span<const std::byte>(inputs.host(i)),
                    owner);
  }
  for (auto& buffer : slot.scratch) {
    if (defences.red_zones) renew_red_zones(backend, buffer, red_zone_key);
    if (defences.poison) detail::poison_buffer(backend, buffer, poison);
  }
}

/// Contents of all results after a call, in the order of the layout; empty for inputs. They lie in the slot
/// until they are kept: valid until its next call.
class CallResults {
public:
  CallResults() = default;
  /// Results that lie in a slot. Backend, slot and layout must outlive them.
  CallResults(AnyBackend& backend, Slot& slot, const ProblemLayout& layout)
      : backend_(&backend), slot_(&slot), layout_(&layout) {
    contents_.resize(slot.buffers.size());
    shown_.resize(slot.buffers.size());
  }
  /// Movable.
  CallResults(CallResults&&) noexcept = default;
  /// Takes over what the other holds.
  CallResults& operator=(CallResults&&) noexcept = default;
  CallResults(const CallResults&) = delete;
  CallResults& operator=(const CallResults&) = delete;
  ~CallResults() = default;

  /// Number of contents.
  [[nodiscard]] std::size_t size() const noexcept { return shown_.size(); }
  /// One content, looked at where it lies if the backend shows it; else brought here.
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const {
    if (kept_.size() > 0) return kept_[i];
    if (shown_[i].empty() && layout_->buffers[i].is_written())
      shown_[i] = look_at(*backend_, slot_->buffers[i].memory, slot_->buffers[i].layout.front,
                          slot_->buffers[i].layout.bytes, contents_[i]);
    return shown_[i];
  }

  /// Where they lie, and what is where.
  [[nodiscard]] Slot& slot() const noexcept { return *slot_; }
  /// What is where in the slot.
  [[nodiscard]] const ProblemLayout& layout() const noexcept { return *layout_; }
  /// What has been kept; nothing before `keep`.
  [[nodiscard]] const KeptContents& kept() const noexcept { return kept_; }

  /// All contents, copied to this process's memory.
  [[nodiscard]] BufferContents take() {
    for (std::size_t i = 0; i < shown_.size(); ++i)
      if (const auto content = (*this)[i]; content.data() != contents_[i].data())
        contents_[i].assign(content.begin(), content.end());
    return std::move(contents_);
  }
  /// From now on the contents are these, whatever becomes of the slot.
  void keep(KeptContents contents) {
    kept_ = std::move(contents);
    shown_.assign(kept_.size(), {});
  }

private:
  AnyBackend* backend_ = nullptr;
  Slot* slot_ = nullptr;
  const ProblemLayout* layout_ = nullptr;
  mutable BufferContents contents_;
  mutable std::vector<std::span<const std::byte>> shown_;
  KeptContents kept_;
};

/// Removes what a call left on the device, where another program could find it: its results, and what led to
/// them in scratch buffers.
inline void forget_results(AnyBackend& backend, Slot& slot, const ProblemLayout& layout) {
  const auto wipe = [&](GuardedBuffer& buffer) {
    fill_buffer(backend, buffer.memory, buffer.layout.front, buffer.layout.bytes, detail::poison_byte);
  };
  for (std::size_t i = 0; i < slot.buffers.size(); ++i)
    if (layout.buffers[i].is_written()) wipe(slot.buffers[i]);
  for (auto& scratch : slot.scratch) wipe(scratch);
}

namespace detail {

/// Whether an input still holds what it did before a call.
[[nodiscard]] inline bool is_unchanged(AnyBackend& backend, GuardedBuffer& buffer,
                                       std::span<const std::byte> wanted) {
  std::vector<std::byte> room;
  for (std::size_t done = 0; done < wanted.size(); done += fill_chunk) {
    const std::size_t piece = std::min(fill_chunk, wanted.size() - done);
    const auto seen = look_at(backend, buffer.memory, buffer.layout.front + done, piece, room);
    if (std::memcmp(seen.data(), wanted.data() + done, piece) != 0) return false;
  }
  return true;
}

} // namespace detail

/// Looks for writes where none are allowed, as far as `defences` say so: all red zones, and, where `inputs`
/// are given, every byte of every input.
[[nodiscard]] inline std::optional<Refusal> find_damage(AnyBackend& backend, Slot& slot,
                                                        const ProblemLayout& layout, const CaseInputs* inputs,
                                                        const EvaluatorDefences& defences) {
  for (std::size_t i = 0; i < slot.buffers.size() && defences.red_zones; ++i)
    if (const auto damage = find_red_zone_damage(backend, slot.buffers[i]))
      return red_zone_refusal(layout.buffers[i].name, *damage, layout.size);
  for (std::size_t i = 0; i < slot.scratch.size() && defences.red_zones; ++i)
    if (const auto damage = find_red_zone_damage(backend, slot.scratch[i]))
      return red_zone_refusal("scratch buffer " + slot.plan.scratch[i].name, *damage, layout.size);
  if (inputs == nullptr || !defences.inputs_unchanged) return std::nullopt;
  for (std::size_t i = 0; i < slot.buffers.size(); ++i)
    if (layout.buffers[i].role == ArgumentRole::input &&
        !detail::is_unchanged(backend, slot.buffers[i], inputs->host(i)))
      return modified_refusal(layout.buffers[i].name, layout.size);
  return std::nullopt;
}

} // namespace mtmc
