#pragma once
/// Definitions of evaluator/content/device_content.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/content/device_content.hpp>
#include <mtmc/evaluator/content/double_precision_content.hpp>
#include <mtmc/support/parallel.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

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

[[nodiscard]] inline std::uint64_t address_of(const BufferPart& part) {
  return static_cast<std::uint64_t>(part.buffer.handle()) + part.offset;
}

MTMC_INLINE void DeviceContent::write_byte(const BufferPart& part, std::byte value) {
  work_.write_byte(address_of(part), part.bytes, value);
}

MTMC_INLINE void DeviceContent::write_noise(const BufferPart& part, std::uint64_t key, std::uint64_t stream) {
  work_.write_noise(address_of(part), part.bytes, key, stream);
}

MTMC_INLINE void DeviceContent::write_repeated_noise(const BufferPart& part, std::uint64_t key,
                                                     std::uint64_t stream) {
  work_.write_repeated_noise(address_of(part), part.bytes, key, stream);
}

MTMC_INLINE void DeviceContent::write_input(const BufferPart& part, const CaseInputs& inputs, std::size_t i,
                                            DataType type, const std::shared_ptr<const void>& /*owner*/) {
  auto& masked = inputs.masked(i);
  if (const auto* recipe = inputs.recipe(i)) {
    work_.write_values(address_of(part), *recipe, type);
  } else if (type != inputs.type(i)) {
    backend_.upload(part.buffer, part.offset, mtmc::in_double_precision(inputs.host(i)));
  } else if (masked.bytes > 0) {
    work_.write_masked(address_of(part), masked.address, masked.bytes, masked.key);
  } else if (const auto& content = inputs.host(i); !content.empty()) {
    backend_.upload(part.buffer, part.offset, std::span<const std::byte>(content));
    masked = masked_memory(content.size());
    work_.write_masked(masked.address, address_of(part), masked.bytes, masked.key);
  }
}

MTMC_INLINE std::size_t DeviceContent::look_for_noise(const BufferPart& part, std::uint64_t key,
                                                      std::uint64_t stream) {
  return on_device(work_.look_for_noise(address_of(part), part.bytes, key, stream));
}

MTMC_INLINE std::size_t DeviceContent::look_for_input(const BufferPart& part, const CaseInputs& inputs,
                                                      std::size_t i, DataType type) {
  if (const auto* recipe = inputs.recipe(i))
    return on_device(work_.look_for_values(address_of(part), *recipe));
  const auto& masked = inputs.masked(i);
  if (masked.bytes == 0) return looks_.add([] { return ContentFinding{}; });
  const auto elements = static_cast<std::int64_t>(part.bytes / size_of(type));
  return on_device(work_.look_for_bits(address_of(part), type, elements, masked.address, masked.key));
}

MTMC_INLINE std::size_t DeviceContent::look_for_bits(const CallResults& results, std::size_t i,
                                                     const KeptContents& kept) {
  const auto* masked = kept.on_device(i);
  if (masked == nullptr || results.kept().size() > 0)
    return looks_.add([&results, i, &kept] { return different_bits(results, i, kept); });
  const auto& buffer = results.layout().buffers[i];
  return on_device(work_.look_for_bits(results.slot().address(i), buffer.type, buffer.elements,
                                       masked->address, masked->key));
}

MTMC_INLINE std::size_t DeviceContent::compare(const CallResults& results, std::size_t i,
                                               const KeptContents& wanted, DataType wanted_type,
                                               const Tolerance& tolerance) {
  const auto* masked = wanted.on_device(i);
  if (masked == nullptr)
    return looks_.add([&results, i, &wanted, wanted_type, tolerance] {
      return compared(results, i, wanted, wanted_type, tolerance);
    });
  const auto& buffer = results.layout().buffers[i];
  return on_device(work_.compare(results.slot().address(i), buffer.type, buffer.elements, masked->address,
                                 wanted_type, masked->key, tolerance));
}

MTMC_INLINE std::size_t DeviceContent::look_for_scale(const CallResults& results, std::size_t i) {
  const auto& buffer = results.layout().buffers[i];
  return on_device(work_.add_magnitudes(results.slot().address(i), buffer.type, buffer.elements));
}

MTMC_INLINE KeptContents DeviceContent::keep(CallResults& results) {
  const auto& layout = results.layout();
  std::vector<MaskedContent> kept(layout.buffers.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto& buffer = layout.buffers[i];
    if (!buffer.is_written() || buffer.bytes == 0) continue;
    auto& masked = kept[i];
    masked = masked_memory(buffer.bytes);
    work_.write_masked(masked.address, results.slot().address(i), masked.bytes, masked.key);
    masked.fetch = [&backend = backend_, memory = std::static_pointer_cast<AnyBackend::Buffer>(masked.memory),
                    bytes = masked.bytes, key = masked.key] {
      std::vector<std::byte> content(bytes);
      backend.download(*memory, 0, content);
      take_mask_off(content, key);
      return content;
    };
  }
  return KeptContents(std::move(kept));
}

MTMC_INLINE void DeviceContent::run() {
  work_.run();
  looks_.end_round();
}

MTMC_INLINE void DeviceContent::forget() noexcept {
  work_.forget();
  looks_.end_round();
}

MTMC_INLINE std::size_t DeviceContent::on_device(std::size_t number) {
  return looks_.add([this, number] { return work_.found(number); });
}

MTMC_INLINE MaskedContent DeviceContent::masked_memory(std::size_t bytes) {
  auto memory = std::make_shared<AnyBackend::Buffer>(backend_.allocate(bytes));
  return {static_cast<std::uint64_t>(memory->handle()), keys_.next(), bytes, memory, {}};
}

} // namespace mtmc::detail
