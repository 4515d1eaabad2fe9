#pragma once

#include <mtmc/requirements.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// SHA-256 (FIPS 180-4), fed piece by piece.
///
/// The digest depends only on the concatenation of the pieces, never on where they were cut. Used for
/// content addresses (kernels, cache keys) and to see whether a buffer changed.
class Sha256 {
public:
  /// Appends `bytes` to the message. Never fails; the message may be up to 2^61 bytes long.
  void update(std::span<const std::byte> bytes) noexcept {
    length_ += bytes.size();
    if (pending_ > 0) {
      const std::size_t space = block_.size() - pending_;
      const std::size_t taken = bytes.size() < space ? bytes.size() : space;
      if (taken > 0) std::memcpy(block_.data() + pending_, bytes.data(), taken);
      pending_ += taken;
      bytes = bytes.subspan(taken);
      if (pending_ < block_.size()) return;
      compress(block_.data());
      pending_ = 0;
    }
    for (; bytes.size() >= block_.size(); bytes = bytes.subspan(block_.size())) compress(bytes.data());
    if (!bytes.empty()) std::memcpy(block_.data(), bytes.data(), bytes.size());
    pending_ = bytes.size();
  }

  /// Appends the characters of `text` to the message.
  void update(std::string_view text) noexcept { update(std::as_bytes(std::span{text.data(), text.size()})); }

  /// The digest of everything appended so far. Changes nothing: more may be appended afterwards.
  [[nodiscard]] std::array<std::uint8_t, 32> digest() const noexcept {
    Sha256 finished = *this;
    finished.pad();
    std::array<std::uint8_t, 32> result{};
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = static_cast<std::uint8_t>(finished.state_[i / 4] >> (24 - 8 * (i % 4)));
    return result;
  }

  /// `digest()` as 64 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex_digest() const {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(64);
    for (const std::uint8_t byte : digest()) {
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
    return text;
  }

private:
  // Fractional parts of the cube roots of the first 64 primes (FIPS 180-4, section 4.2.2).
  static constexpr std::array<std::uint32_t, 64> round_constants{
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

  void compress(const std::byte* block) noexcept {
    std::array<std::uint32_t, 64> schedule;
    for (std::size_t i = 0; i < 16; ++i)
      schedule[i] = std::to_integer<std::uint32_t>(block[4 * i]) << 24 |
                    std::to_integer<std::uint32_t>(block[4 * i + 1]) << 16 |
                    std::to_integer<std::uint32_t>(block[4 * i + 2]) << 8 |
                    std::to_integer<std::uint32_t>(block[4 * i + 3]);
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t early = schedule[i - 15];
      const std::uint32_t late = schedule[i - 2];
      schedule[i] = schedule[i - 16] + (std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3) +
                    schedule[i - 7] + (std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t chosen = (e & f) ^ (~e & g);
      const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + chosen +
                                  round_constants[i] + schedule[i];
      const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
      const std::uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    }
    const std::array<std::uint32_t, 8> mixed{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < mixed.size(); ++i) state_[i] += mixed[i];
  }

  void pad() noexcept {
    const std::uint64_t bits = length_ * 8;
    block_[pending_++] = std::byte{0x80};
    if (pending_ > 56) {
      std::memset(block_.data() + pending_, 0, block_.size() - pending_);
      compress(block_.data());
      pending_ = 0;
    }
    std::memset(block_.data() + pending_, 0, block_.size() - 8 - pending_);
    for (std::size_t i = 0; i < 8; ++i)
      block_[56 + i] = static_cast<std::byte>(static_cast<std::uint8_t>(bits >> (56 - 8 * i)));
    compress(block_.data());
  }

  // Fractional parts of the square roots of the first 8 primes (FIPS 180-4, section 5.3.3).
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t pending_ = 0;
  std::uint64_t length_ = 0;
};

/// The SHA-256 digest of `text` as 64 lower-case hexadecimal digits.
[[nodiscard]] inline std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex_digest();
}

} // namespace mtmc
