#pragma once

#include <mtmc/requirements.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sys/random.h>
#include <system_error>

namespace mtmc::inline MTMC_ABI {

/// 64 unpredictable bits from the operating system's generator (getrandom): a fresh secret key for inputs
/// that a candidate must not be able to foresee. Waits only if the machine has just booted and has no entropy
/// yet. Throws std::system_error if the kernel refuses, as an old container sandbox may.
[[nodiscard]] inline std::uint64_t random_key_from_os() {
  std::uint64_t key = 0;
  for (;;) {
    const ssize_t got = ::getrandom(&key, sizeof key, 0);
    if (got == static_cast<ssize_t>(sizeof key)) return key;
    if (got < 0 && errno != EINTR)
      throw std::system_error{errno, std::generic_category(),
                              "getrandom gave no random key; allow the getrandom system call in the sandbox "
                              "(seccomp) profile of this process"};
  }
}

} // namespace mtmc
