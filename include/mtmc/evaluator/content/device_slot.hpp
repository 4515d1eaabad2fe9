#pragma once
/// What evaluator/content/slot.hpp does from the host, done by the judge's kernel on the device.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/content/device_work.hpp>
#include <mtmc/evaluator/content/double_truth.hpp>
#include <mtmc/evaluator/content/secret_keys.hpp>
#include <mtmc/evaluator/content/slot.hpp>
#include <mtmc/support/parallel.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Memory for a masked content of so many bytes, under a key that nobody can foresee.
[[nodiscard]] inline MaskedContent masked_memory(AnyBackend& backend, std::size_t bytes, SecretKeys& keys) {
  auto memory = std::make_shared<AnyBackend::Buffer>(backend.allocate(bytes));
  return {static_cast<std::uint64_t>(memory->handle()), keys.next(), bytes, memory, {}};
}

} // namespace detail

/// `load_slot`, but that the work is only queued: it is done after the next `work.run()`. Inputs without a
/// recipe are uploaded once, and kept on the device for the next time. Where the layout is that of a twin in
/// double precision, inputs of f32 become f64.
inline void queue_loading(AnyBackend& backend, DeviceWork& work, Slot& slot, const ProblemLayout& layout,
                          const CaseInputs& inputs, const Poison& poison, SecretKeys& keys,
                          const EvaluatorDefences& defences, Refill refill) {
  const auto red_zone_key = keys.next();
  const auto renew = [&](GuardedBuffer& buffer) {
    if (!defences.red_zones) return;
    const auto start = static_cast<std::uint64_t>(buffer.memory.handle());
    const auto& around = buffer.layout;
    buffer.key = red_zone_key;
    work.write_noise(start, around.front, red_zone_key, 2 * buffer.place);
    work.write_noise(start + around.front + around.bytes, around.back, red_zone_key, 2 * buffer.place + 1);
  };
  const auto poison_it = [&](const GuardedBuffer& buffer) {
    if (!defences.poison) return;
    const auto address = static_cast<std::uint64_t>(buffer.memory.handle()) + buffer.layout.front;
    if (poison.noise)
      work.write_repeated_noise(address, buffer.layout.bytes, *poison.noise,
                                detail::poison_stream + buffer.place);
    else
      work.write_byte(address, buffer.layout.bytes, detail::poison_byte);
  };
  for (std::size_t i = 0; i < slot.buffers.size(); ++i) {
    auto& buffer = slot.buffers[i];
    const auto role = layout.buffers[i].role;
    renew(buffer);
    if (role == ArgumentRole::output)
      poison_it(buffer);
    else if (role == ArgumentRole::inout || refill == Refill::all) {
      auto& masked = inputs.masked(i);
      const auto type = layout.buffers[i].type;
      if (const auto* recipe = inputs.recipe(i)) {
        work.write_values(slot.address(i), *recipe, type);
      } else if (const auto& narrow = inputs.host(i); layout.buffers[i].bytes == 2 * narrow.size()) {
        backend.upload(buffer.memory, buffer.layout.front, in_double_precision(narrow));
      } else if (masked.bytes > 0) {
        work.write_masked(slot.address(i), masked.address, masked.bytes, masked.key);
      } else if (const auto& content = inputs.host(i); !content.empty()) {
        backend.upload(buffer.memory, buffer.layout.front, std::span<const std::byte>(content));
        masked = detail::masked_memory(backend, content.size(), keys);
        work.write_masked(masked.address, slot.address(i), masked.bytes, masked.key);
      }
    }
  }
  for (auto& buffer : slot.scratch) {
    renew(buffer);
    poison_it(buffer);
  }
}

/// A look of `find_damage` at one slot, in two parts: what is queued before `work.run()`, and the answer
/// after it.
class DamageLook {
public:
  /// Queues the look at one slot.
  DamageLook(DeviceWork& work, Slot& slot, const ProblemLayout& layout, const CaseInputs* inputs,
             const EvaluatorDefences& defences)
      : work_(work), slot_(slot), layout_(layout), inputs_(defences.inputs_unchanged ? inputs : nullptr) {
    if (defences.red_zones)
      for (const auto* buffers : {&slot.buffers, &slot.scratch})
        for (const auto& buffer : *buffers) {
          const auto start = static_cast<std::uint64_t>(buffer.memory.handle());
          const auto& around = buffer.layout;
          before_.push_back(work.look_for_noise(start, around.front, buffer.key, 2 * buffer.place));
          (void)work.look_for_noise(start + around.front + around.bytes, around.back, buffer.key,
                                    2 * buffer.place + 1);
        }
    if (inputs_ == nullptr) return;
    for (std::size_t i = 0; i < slot.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      if (buffer.role != ArgumentRole::input) continue;
      const auto& masked = inputs_->masked(i);
      if (const auto* recipe = inputs_->recipe(i))
        changed_.emplace_back(i, work.look_for_values(slot.address(i), *recipe));
      else if (masked.bytes > 0)
        changed_.emplace_back(
            i, work.look_for_bits(slot.address(i), buffer.type, buffer.elements, masked.address, masked.key));
    }
  }

  /// What was damaged; nothing if all is whole. After `work.run()`.
  [[nodiscard]] std::optional<Refusal> answer() const {
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (const auto damage = red_zone_damage(i)) return red_zone_refusal(name(i), *damage, layout_.size);
    if (inputs_ == nullptr) return std::nullopt;
    for (const auto& [i, number] : changed_)
      if (work_.found(number).wrong > 0) return modified_refusal(layout_.buffers[i].name, layout_.size);
    return std::nullopt;
  }

private:
  [[nodiscard]] std::optional<RedZoneDamage> red_zone_damage(std::size_t i) const {
    const auto& buffer =
        i < slot_.buffers.size() ? slot_.buffers[i] : slot_.scratch[i - slot_.buffers.size()];
    const auto& before = work_.found(before_[i]);
    const auto& behind = work_.found(before_[i] + 1);
    if (before.wrong > 0)
      return RedZoneDamage{true, buffer.layout.front - 1 - static_cast<std::size_t>(before.last_wrong)};
    if (behind.wrong > 0) return RedZoneDamage{false, static_cast<std::size_t>(behind.first_wrong)};
    return std::nullopt;
  }
  [[nodiscard]] std::string name(std::size_t i) const {
    return i < slot_.buffers.size() ? layout_.buffers[i].name
                                    : "scratch buffer " + slot_.plan.scratch[i - slot_.buffers.size()].name;
  }

  DeviceWork& work_;
  Slot& slot_;
  const ProblemLayout& layout_;
  const CaseInputs* inputs_;
  /// Numbers of the jobs for the zones in front; those for the zones behind are the next ones.
  std::vector<std::size_t> before_;
  std::vector<std::pair<std::size_t, std::size_t>> changed_;
};

namespace detail {

/// Takes away the noise that `DeviceWork::write_masked` put on a content.
inline void take_mask_off(std::span<std::byte> content, std::uint64_t key) {
  constexpr std::size_t piece = std::size_t{1} << 16;
  constexpr std::size_t worth_a_thread = std::size_t{1} << 20;
  for_each_part(content.size(), worth_a_thread, piece, [&](std::size_t first, std::size_t bytes) {
    std::array<std::uint32_t, piece / 4> mask;
    for (std::size_t done = 0; done < bytes; done += piece) {
      const auto here = content.subspan(first + done, std::min(piece, bytes - done));
      philox_fill(std::span(mask).first((here.size() + 3) / 4), key, (first + done) / 16);
      const auto noise = std::as_bytes(std::span(mask));
      for (std::size_t i = 0; i < here.size(); ++i) here[i] ^= noise[i];
    }
  });
}

} // namespace detail

/// Keeps the results of a slot on the device, under masks that nobody can foresee; queued like
/// `queue_loading`.
[[nodiscard]] inline KeptContents queue_keeping(AnyBackend& backend, DeviceWork& work, Slot& slot,
                                                const ProblemLayout& layout, SecretKeys& keys) {
  std::vector<MaskedContent> kept(slot.buffers.size());
  for (std::size_t i = 0; i < slot.buffers.size(); ++i) {
    const auto& buffer = layout.buffers[i];
    if (!buffer.is_written() || buffer.bytes == 0) continue;
    auto& masked = kept[i];
    masked = detail::masked_memory(backend, buffer.bytes, keys);
    work.write_masked(masked.address, slot.address(i), masked.bytes, masked.key);
    masked.fetch = [&backend, memory = std::static_pointer_cast<AnyBackend::Buffer>(masked.memory),
                    bytes = masked.bytes, key = masked.key] {
      std::vector<std::byte> content(bytes);
      backend.download(*memory, 0, content);
      detail::take_mask_off(content, key);
      return content;
    };
  }
  return KeptContents(std::move(kept));
}

} // namespace mtmc
