#pragma once

#include <mtmc/requirements.hpp>

#include <chrono>

namespace mtmc::inline MTMC_ABI {

/// Wall-clock seconds that have passed since `begin`.
[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace mtmc
