#pragma once
/// Definitions of evaluator/content/host_content.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/content/comparison.hpp>
#include <mtmc/evaluator/content/double_precision_content.hpp>
#include <mtmc/evaluator/content/host_content.hpp>
#include <mtmc/evaluator/content/poison.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::size_t LazyLooks::add(std::function<ContentFinding()> look) {
  if (std::exchange(ended_, false)) looks_.clear();
  looks_.push_back({std::move(look)});
  return looks_.size() - 1;
}

MTMC_INLINE const ContentFinding& LazyLooks::found(std::size_t number) {
  auto& asked = looks_.at(number);
  if (!asked.finding) asked.finding = asked.look();
  return *asked.finding;
}

MTMC_INLINE ContentFinding different_bits(const CallResults& results, std::size_t i,
                                          const KeptContents& kept) {
  const auto type = results.layout().buffers[i].type;
  const auto here = results[i];
  ContentFinding finding;
  finding.wrong = static_cast<std::uint64_t>(count_different(here, kept[i], type));
  if (finding.wrong > 0)
    finding.first_wrong = static_cast<std::uint64_t>(*first_different(here, kept[i], type));
  return finding;
}

MTMC_INLINE ContentFinding compared(const CallResults& results, std::size_t i, const KeptContents& wanted,
                                    DataType wanted_type, const Tolerance& tolerance) {
  const auto type = results.layout().buffers[i].type;
  // Of two types `compare_output` wants the wider one second. What is allowed differs by a rounding error.
  const bool swapped = type == DataType::f64 && wanted_type != type;
  const auto answer = swapped ? compare_output(wanted[i], wanted_type, results[i], type, tolerance)
                              : compare_output(results[i], type, wanted[i], wanted_type, tolerance);
  ContentFinding finding;
  finding.checked = static_cast<std::uint64_t>(answer.checked);
  finding.wrong = static_cast<std::uint64_t>(answer.wrong);
  if (answer.wrong > 0) finding.first_wrong = static_cast<std::uint64_t>(answer.first_wrong);
  finding.largest_error = answer.largest_error;
  return finding;
}

MTMC_INLINE void HostContent::write_byte(const BufferPart& part, std::byte value) {
  fill_buffer(backend_, part.buffer, part.offset, part.bytes, value);
}

MTMC_INLINE void HostContent::write_noise(const BufferPart& part, std::uint64_t key, std::uint64_t stream) {
  fill_with_noise(backend_, part.buffer, part.offset, part.bytes, key, stream);
}

MTMC_INLINE void HostContent::write_repeated_noise(const BufferPart& part, std::uint64_t key,
                                                   std::uint64_t stream) {
  fill_with_repeated_noise(backend_, part.buffer, part.offset, part.bytes, key, stream);
}

MTMC_INLINE void HostContent::write_input(const BufferPart& part, const CaseInputs& inputs, std::size_t i,
                                          DataType type, const std::shared_ptr<const void>& owner) {
  const auto& content = inputs.host(i);
  if (type != inputs.type(i))
    upload_shared(backend_, part.buffer, part.offset,
                  std::span<const std::byte>(mtmc::in_double_precision(content)), {});
  else
    upload_shared(backend_, part.buffer, part.offset, std::span<const std::byte>(content), owner);
}

MTMC_INLINE std::size_t HostContent::look_for_noise(const BufferPart& part, std::uint64_t key,
                                                    std::uint64_t stream) {
  return looks_.add([this, part, key, stream] {
    std::vector<std::uint32_t> wanted((part.bytes + 3) / 4);
    philox_fill(wanted, key, 0, stream);
    const auto noise = std::as_bytes(std::span<const std::uint32_t>(wanted));
    std::vector<std::byte> room;
    const auto got = look_at(backend_, part.buffer, part.offset, part.bytes, room);
    ContentFinding finding;
    if (part.bytes == 0 || std::memcmp(got.data(), noise.data(), part.bytes) == 0) return finding;
    for (std::size_t at = 0; at < part.bytes; ++at) {
      if (got[at] == noise[at]) continue;
      finding.first_wrong = std::min<std::uint64_t>(finding.first_wrong, at);
      finding.last_wrong = at;
      ++finding.wrong;
    }
    return finding;
  });
}

MTMC_INLINE std::size_t HostContent::look_for_input(const BufferPart& part, const CaseInputs& inputs,
                                                    std::size_t i, DataType /*type*/) {
  return looks_.add([this, part, &inputs, i] {
    const auto& wanted = inputs.host(i);
    std::vector<std::byte> room;
    ContentFinding finding;
    for (std::size_t done = 0; done < wanted.size() && finding.wrong == 0; done += fill_chunk) {
      const std::size_t piece = std::min(fill_chunk, wanted.size() - done);
      const auto seen = look_at(backend_, part.buffer, part.offset + done, piece, room);
      if (std::memcmp(seen.data(), wanted.data() + done, piece) != 0) finding.wrong = 1;
    }
    return finding;
  });
}

MTMC_INLINE std::size_t HostContent::look_for_bits(const CallResults& results, std::size_t i,
                                                   const KeptContents& kept) {
  return looks_.add([&results, i, &kept] { return different_bits(results, i, kept); });
}

MTMC_INLINE std::size_t HostContent::compare(const CallResults& results, std::size_t i,
                                             const KeptContents& wanted, DataType wanted_type,
                                             const Tolerance& tolerance) {
  return looks_.add([&results, i, &wanted, wanted_type, tolerance] {
    return compared(results, i, wanted, wanted_type, tolerance);
  });
}

MTMC_INLINE std::size_t HostContent::look_for_scale(const CallResults& results, std::size_t i) {
  return looks_.add([&results, i] {
    ContentFinding finding;
    finding.magnitudes = output_scale(results[i], results.layout().buffers[i].type);
    finding.finite = 1;
    return finding;
  });
}

MTMC_INLINE KeptContents HostContent::keep(CallResults& results) { return KeptContents(results.take()); }

} // namespace mtmc::detail
