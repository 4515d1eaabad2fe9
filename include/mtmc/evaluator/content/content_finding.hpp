#pragma once
/// What a look at the content of a buffer found.

#include <mtmc/requirements.hpp>

#include <cstdint>

namespace mtmc::inline MTMC_ABI {

/// What looking at elements or bytes found. Its layout is that of the judge's kernel on the device.
struct ContentFinding {
  /// Elements looked at, one by one.
  std::uint64_t checked = 0;
  /// Those that are wrong.
  std::uint64_t wrong = 0;
  /// Place of the first that is wrong; this value where none is.
  std::uint64_t first_wrong = ~std::uint64_t{0};
  /// The place of the last.
  std::uint64_t last_wrong = 0;
  /// Largest error in units of what is allowed.
  double largest_error = 0;
  /// Sum of the magnitudes of finite elements.
  double magnitudes = 0;
  /// How many magnitudes the sum has.
  double finite = 0;

  /// What `output_scale` is: the mean magnitude of finite elements, 0 where there is none.
  [[nodiscard]] double scale() const noexcept { return finite > 0 ? magnitudes / finite : 0; }
};

} // namespace mtmc
