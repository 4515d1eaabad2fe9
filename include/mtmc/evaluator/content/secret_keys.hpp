#pragma once

#include <mtmc/support/philox.hpp>

#include <atomic>
#include <cstdint>

namespace mtmc::inline MTMC_ABI {

/// An endless sequence of keys that cannot be predicted without the first. May be used from several
/// threads.
class SecretKeys {
public:
  /// The sequence that belongs to a first key.
  explicit SecretKeys(std::uint64_t master) noexcept : master_(master) {}

  /// The next key; no key comes twice, but for a chance of one in 2^64.
  [[nodiscard]] std::uint64_t next() noexcept {
    const std::uint64_t serial = given_.fetch_add(1, std::memory_order_relaxed);
    constexpr std::uint32_t stream = 0x5ec2e7;
    return philox_key(
        {static_cast<std::uint32_t>(serial), static_cast<std::uint32_t>(serial >> 32), 0, stream}, master_);
  }

private:
  const std::uint64_t master_;
  std::atomic<std::uint64_t> given_{0};
};

} // namespace mtmc
