#pragma once
/// What the buffers of a call hold before it, and what must not have changed after it.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/content/case_inputs.hpp>
#include <mtmc/evaluator/content/content_work.hpp>
#include <mtmc/evaluator/content/guarded_buffer.hpp>
#include <mtmc/evaluator/content/poison.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/evaluator/content/slot.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Which buffers get their contents before a call.
enum class Refill {
  all,
  /// Inputs are known to be as they were: only inout arguments are written again.
  inout_only,
  /// Outputs and scratch buffers keep what the call before left there, as a host's do.
  inputs_only
};

/// The zone before the content of a buffer.
[[nodiscard]] inline BufferPart zone_before(GuardedBuffer& buffer) noexcept {
  return {buffer.memory, 0, buffer.layout.front};
}
/// What the kernel may use.
[[nodiscard]] inline BufferPart content_part(GuardedBuffer& buffer) noexcept {
  return {buffer.memory, buffer.layout.front, buffer.layout.bytes};
}
/// The zone behind the content.
[[nodiscard]] inline BufferPart zone_behind(GuardedBuffer& buffer) noexcept {
  return {buffer.memory, buffer.layout.front + buffer.layout.bytes, buffer.layout.back};
}

/// Writes both zones of a buffer, each with a key of its own.
inline void write_zones(ContentWork& work, GuardedBuffer& buffer, std::uint64_t before,
                        std::uint64_t behind) {
  work.write_noise(zone_before(buffer), before, 2 * buffer.place);
  work.write_noise(zone_behind(buffer), behind, 2 * buffer.place + 1);
}

/// Writes both red zones anew.
inline void renew_red_zones(ContentWork& work, GuardedBuffer& buffer, std::uint64_t key) {
  buffer.key = key;
  write_zones(work, buffer, key, key);
}

/// A look at every byte of both red zones of a buffer; the answer comes after `work.run()`.
class RedZoneLook {
public:
  /// Asks for the looks at both zones.
  RedZoneLook(ContentWork& work, GuardedBuffer& buffer)
      : work_(&work), front_(buffer.layout.front),
        before_(work.look_for_noise(zone_before(buffer), buffer.key, 2 * buffer.place)),
        behind_(work.look_for_noise(zone_behind(buffer), buffer.key, 2 * buffer.place + 1)) {}

  /// Nothing if they are whole.
  [[nodiscard]] std::optional<RedZoneDamage> damage() const {
    if (const auto& before = work_->found(before_); before.wrong > 0)
      return RedZoneDamage{true, front_ - 1 - static_cast<std::size_t>(before.last_wrong)};
    if (const auto& behind = work_->found(behind_); behind.wrong > 0)
      return RedZoneDamage{false, static_cast<std::size_t>(behind.first_wrong)};
    return std::nullopt;
  }

private:
  ContentWork* work_;
  std::size_t front_;
  std::size_t before_;
  std::size_t behind_;
};

namespace detail {

/// Streams of the noise in contents, apart from those of the red zones.
inline constexpr std::uint64_t poison_stream = std::uint64_t{1} << 32;

inline void poison_content(ContentWork& work, GuardedBuffer& buffer, const Poison& poison) {
  if (poison.noise)
    work.write_repeated_noise(content_part(buffer), *poison.noise, poison_stream + buffer.place);
  else
    work.write_byte(content_part(buffer), poison.byte);
}

} // namespace detail

/// Readies a slot for a call: as `refill` has it, inputs get their contents, outputs and scratch buffers the
/// poison, red zones new bytes; done after the next `work.run()`. `defences` may leave out the latter two.
/// Where `owner` is given, it keeps `inputs` alive and unchanged until the call, which saves copies. Where
/// the layout is that of a twin in double precision, inputs of f32 become f64.
inline void load_slot(ContentWork& work, Slot& slot, const ProblemLayout& layout, const CaseInputs& inputs,
                      const Poison& poison, std::uint64_t red_zone_key, const EvaluatorDefences& defences,
                      Refill refill = Refill::all, const std::shared_ptr<const void>& owner = {}) {
  for (std::size_t i = 0; i < slot.buffers.size(); ++i) {
    auto& buffer = slot.buffers[i];
    const auto role = layout.buffers[i].role;
    if (defences.red_zones) renew_red_zones(work, buffer, red_zone_key);
    if (role == ArgumentRole::output && refill != Refill::inputs_only && defences.poison)
      detail::poison_content(work, buffer, poison);
    else if (role == ArgumentRole::inout || (role == ArgumentRole::input && refill != Refill::inout_only))
      work.write_input(content_part(buffer), inputs, i, layout.buffers[i].type, owner);
  }
  for (auto& buffer : slot.scratch) {
    if (defences.red_zones) renew_red_zones(work, buffer, red_zone_key);
    if (defences.poison && refill != Refill::inputs_only) detail::poison_content(work, buffer, poison);
  }
}

/// Looks for writes where none are allowed, as far as `defences` say so: all red zones, and, where `inputs`
/// are given, every byte of every input. The answer comes after `work.run()`.
class DamageLook {
public:
  /// Asks for the looks.
  DamageLook(ContentWork& work, Slot& slot, const ProblemLayout& layout, const CaseInputs* inputs,
             const EvaluatorDefences& defences)
      : work_(&work), slot_(&slot), layout_(&layout) {
    if (defences.red_zones)
      for (auto* buffers : {&slot.buffers, &slot.scratch})
        for (auto& buffer : *buffers) zones_.emplace_back(work, buffer);
    for (std::size_t i = 0; i < slot.buffers.size() && inputs != nullptr && defences.inputs_unchanged; ++i)
      if (layout.buffers[i].role == ArgumentRole::input)
        inputs_.emplace_back(
            i, work.look_for_input(content_part(slot.buffers[i]), *inputs, i, layout.buffers[i].type));
  }

  /// The first damage; nothing if there is none.
  [[nodiscard]] std::optional<Refusal> answer() const {
    for (std::size_t i = 0; i < zones_.size(); ++i)
      if (const auto damage = zones_[i].damage()) return red_zone_refusal(name(i), *damage, layout_->size);
    for (const auto& [i, number] : inputs_)
      if (work_->found(number).wrong > 0) return modified_refusal(layout_->buffers[i].name, layout_->size);
    return std::nullopt;
  }

private:
  [[nodiscard]] std::string name(std::size_t i) const {
    const auto arguments = layout_->buffers.size();
    return i < arguments ? layout_->buffers[i].name
                         : "scratch buffer " + slot_->plan.scratch[i - arguments].name;
  }

  ContentWork* work_;
  const Slot* slot_;
  const ProblemLayout* layout_;
  /// Of the arguments, then of the scratch buffers.
  std::vector<RedZoneLook> zones_;
  /// Buffers and the numbers of their looks.
  std::vector<std::pair<std::size_t, std::size_t>> inputs_;
};

/// Removes what a call left on the device, where another program could find it: its results, and what led to
/// them in scratch buffers.
inline void forget_results(AnyBackend& backend, Slot& slot, const ProblemLayout& layout) {
  const auto wipe = [&](GuardedBuffer& buffer) {
    fill_buffer(backend, buffer.memory, buffer.layout.front, buffer.layout.bytes, Poison{}.byte);
  };
  for (std::size_t i = 0; i < slot.buffers.size(); ++i)
    if (layout.buffers[i].is_written()) wipe(slot.buffers[i]);
  for (auto& scratch : slot.scratch) wipe(scratch);
}

} // namespace mtmc
