#pragma once

#include <mtmc/requirements.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>

namespace mtmc::inline MTMC_ABI {

/// Which block of random bits: any of 2^128, in any order.
using PhiloxCounter = std::array<std::uint32_t, 4>;
/// Which sequence of blocks: sequences of different keys are independent.
using PhiloxKey = std::array<std::uint32_t, 2>;

namespace detail {

inline constexpr std::uint32_t philox_multiplier_0 = 0xD2511F53;
inline constexpr std::uint32_t philox_multiplier_1 = 0xCD9E8D57;
inline constexpr std::uint32_t philox_step_0 = 0x9E3779B9;
inline constexpr std::uint32_t philox_step_1 = 0xBB67AE85;
inline constexpr int philox_rounds = 10;

[[nodiscard]] constexpr std::uint32_t low_half(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value);
}
[[nodiscard]] constexpr std::uint32_t high_half(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value >> 32);
}

/// Writes the `Blocks` blocks from counter `first` on to `out`, 4 * Blocks values in all. Kept as loops of a
/// fixed length over separate words, because that is what GCC 12 vectorizes at -O2.
template <std::size_t Blocks>
void philox_blocks(std::uint32_t* out, PhiloxKey key, std::uint64_t first, std::uint64_t stream) noexcept {
  std::array<std::uint32_t, Blocks> a, b, c, d;
  for (std::size_t i = 0; i < Blocks; ++i) {
    a[i] = low_half(first + i);
    b[i] = high_half(first + i);
    c[i] = low_half(stream);
    d[i] = high_half(stream);
  }
  for (int round = 0; round < philox_rounds; ++round) {
    for (std::size_t i = 0; i < Blocks; ++i) {
      const std::uint64_t left = std::uint64_t{philox_multiplier_0} * a[i];
      const std::uint64_t right = std::uint64_t{philox_multiplier_1} * c[i];
      a[i] = high_half(right) ^ b[i] ^ key[0];
      b[i] = low_half(right);
      c[i] = high_half(left) ^ d[i] ^ key[1];
      d[i] = low_half(left);
    }
    key[0] += philox_step_0;
    key[1] += philox_step_1;
  }
  for (std::size_t i = 0; i < Blocks; ++i) {
    out[4 * i] = a[i];
    out[4 * i + 1] = b[i];
    out[4 * i + 2] = c[i];
    out[4 * i + 3] = d[i];
  }
}

#if defined(__x86_64__)
/// The same twelve blocks at a time, in three independent groups of 64-bit lanes of which only the lower
/// halves count: what GCC makes of the loops above for AVX2 is slower than what it makes for SSE2.
inline constexpr std::size_t philox_avx2_blocks = 12;
__attribute__((target("avx2"))) inline void philox_avx2(std::uint32_t* out, PhiloxKey key,
                                                        std::uint64_t first, std::uint64_t stream) noexcept {
  using Lanes = unsigned long long __attribute__((vector_size(32)));
  using Halves = int __attribute__((vector_size(32)));
  constexpr int half = 32;
  const Lanes low = Lanes{} + 0xffffffffu;
  const Halves multiplier_0 = Halves(Lanes{} + philox_multiplier_0);
  const Halves multiplier_1 = Halves(Lanes{} + philox_multiplier_1);
  Lanes a0 = Lanes{0, 1, 2, 3} + first, a1 = a0 + 4, a2 = a0 + 8;
  Lanes b0 = a0 >> half, b1 = a1 >> half, b2 = a2 >> half;
  Lanes c0 = Lanes{} + stream, c1 = c0, c2 = c0;
  Lanes d0 = c0 >> half, d1 = d0, d2 = d0;
  for (int round = 0; round < philox_rounds; ++round) {
    const Lanes k0 = Lanes{} + key[0], k1 = Lanes{} + key[1];
    const Lanes left_0 = Lanes(__builtin_ia32_pmuludq256(Halves(a0), multiplier_0));
    const Lanes left_1 = Lanes(__builtin_ia32_pmuludq256(Halves(a1), multiplier_0));
    const Lanes left_2 = Lanes(__builtin_ia32_pmuludq256(Halves(a2), multiplier_0));
    const Lanes right_0 = Lanes(__builtin_ia32_pmuludq256(Halves(c0), multiplier_1));
    const Lanes right_1 = Lanes(__builtin_ia32_pmuludq256(Halves(c1), multiplier_1));
    const Lanes right_2 = Lanes(__builtin_ia32_pmuludq256(Halves(c2), multiplier_1));
    a0 = (right_0 >> half) ^ b0 ^ k0, b0 = right_0, c0 = (left_0 >> half) ^ d0 ^ k1, d0 = left_0;
    a1 = (right_1 >> half) ^ b1 ^ k0, b1 = right_1, c1 = (left_1 >> half) ^ d1 ^ k1, d1 = left_1;
    a2 = (right_2 >> half) ^ b2 ^ k0, b2 = right_2, c2 = (left_2 >> half) ^ d2 ^ k1, d2 = left_2;
    key[0] += philox_step_0;
    key[1] += philox_step_1;
  }
  const Lanes front[] = {(a0 & low) | b0 << half, (a1 & low) | b1 << half, (a2 & low) | b2 << half};
  const Lanes back[] = {(c0 & low) | d0 << half, (c1 & low) | d1 << half, (c2 & low) | d2 << half};
  for (std::size_t group = 0; group < 3; ++group) {
    const Lanes blocks[] = {__builtin_shufflevector(front[group], back[group], 0, 4, 1, 5),
                            __builtin_shufflevector(front[group], back[group], 2, 6, 3, 7)};
    std::memcpy(out + 16 * group, blocks, sizeof blocks);
  }
}
#endif

} // namespace detail

/// The block of 128 random bits that belongs to `counter` and `key`: Philox4x32 with 10 rounds (Salmon et
/// al., "Parallel random numbers: as easy as 1, 2, 3", SC11). A pure function, so that any element of any
/// sequence can be computed at once, in any order, on any device.
[[nodiscard]] constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) noexcept {
  for (int round = 0; round < detail::philox_rounds; ++round) {
    const std::uint64_t left = std::uint64_t{detail::philox_multiplier_0} * counter[0];
    const std::uint64_t right = std::uint64_t{detail::philox_multiplier_1} * counter[2];
    counter = {detail::high_half(right) ^ counter[1] ^ key[0], detail::low_half(right),
               detail::high_half(left) ^ counter[3] ^ key[1], detail::low_half(left)};
    key[0] += detail::philox_step_0;
    key[1] += detail::philox_step_1;
  }
  return counter;
}

/// The first 64 bits of the block that belongs to `counter` and `key` (its low half first): one of as many
/// independent keys as there are counters.
[[nodiscard]] constexpr std::uint64_t philox_key(PhiloxCounter counter, std::uint64_t key) noexcept {
  const auto words = philox4x32(counter, {detail::low_half(key), detail::high_half(key)});
  return static_cast<std::uint64_t>(words[1]) << 32 | words[0];
}

/// Fills `out` with random bits: `out[i]` is word i % 4 of the block with counter `first_counter` + i / 4
/// (64-bit, low words of the Philox counter) and `stream` (high words) under `key` (its low half first). So
/// each element depends on key, stream and its place alone: a long sequence may be filled in pieces, in any
/// order and by several threads, with piece p of length 4n starting at `first_counter` + p * n.
///
/// Vectorized from -O2 on: 3.9 GB/s on one core of an AMD EPYC (Zen, GCC 12.2), 2.5 GB/s without AVX2.
inline void philox_fill(std::span<std::uint32_t> out, std::uint64_t key, std::uint64_t first_counter,
                        std::uint64_t stream = 0) noexcept {
  // GCC 12 -O3 unrolls loops of 16 and fewer completely and then fails to vectorize: 1.0 instead of 2.5 GB/s.
  constexpr std::size_t batch = 32;
  const PhiloxKey words{detail::low_half(key), detail::high_half(key)};
#if defined(__x86_64__)
  constexpr std::size_t wide = detail::philox_avx2_blocks;
  if (__builtin_cpu_supports("avx2"))
    for (; out.size() >= 4 * wide; out = out.subspan(4 * wide), first_counter += wide)
      detail::philox_avx2(out.data(), words, first_counter, stream);
#endif
  for (; out.size() >= 4 * batch; out = out.subspan(4 * batch), first_counter += batch)
    detail::philox_blocks<batch>(out.data(), words, first_counter, stream);
  for (std::size_t i = 0; i < out.size(); i += 4, ++first_counter) {
    const PhiloxCounter counter{detail::low_half(first_counter), detail::high_half(first_counter),
                                detail::low_half(stream), detail::high_half(stream)};
    const PhiloxCounter block = philox4x32(counter, words);
    for (std::size_t j = 0; j < 4 && i + j < out.size(); ++j) out[i + j] = block[j];
  }
}

/// A sequential generator for seeded decisions: the words of `philox_fill` with key `seed` and the given
/// stream, one after the other. Equal on every platform, unlike the distributions of `<random>`; also models
/// std::uniform_random_bit_generator. Not for secrets: see random_key_from_os() for a key.
class PhiloxEngine {
public:
  using result_type = std::uint32_t; ///< what `operator()` answers

  /// The sequence that belongs to a key and one of its streams.
  explicit PhiloxEngine(std::uint64_t seed, std::uint64_t stream = 0) noexcept
      : seed_{seed}, stream_{stream} {}

  /// Least value.
  [[nodiscard]] static constexpr result_type min() noexcept { return 0; }
  /// Largest value.
  [[nodiscard]] static constexpr result_type max() noexcept {
    return std::numeric_limits<result_type>::max();
  }

  /// The next 32 random bits.
  result_type operator()() noexcept {
    if (used_ == block_.size()) {
      philox_fill(block_, seed_, next_counter_++, stream_);
      used_ = 0;
    }
    return block_[used_++];
  }

  /// A number from [0, 1), uniform over the multiples of 2^-53. Takes two words.
  double uniform() noexcept { return static_cast<double>(next_64() >> 11) * 0x1p-53; }

  /// An integer from [0, `bound`), each equally likely. Takes two words, rarely more.
  /// Throws std::invalid_argument if `bound` is 0.
  std::uint64_t below(std::uint64_t bound) {
    if (bound == 0)
      throw std::invalid_argument{"PhiloxEngine::below(0): there is no integer in [0, 0); pass at least 1"};
    // 2^64 mod bound: values under it would make the small remainders likelier.
    const std::uint64_t rejected = (0 - bound) % bound;
    for (;;)
      if (const std::uint64_t value = next_64(); value >= rejected) return value % bound;
  }

private:
  std::uint64_t next_64() noexcept {
    const std::uint64_t low = (*this)();
    return static_cast<std::uint64_t>((*this)()) << 32 | low;
  }

  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t next_counter_ = 0;
  PhiloxCounter block_{};
  std::size_t used_ = 4;
};

} // namespace mtmc
