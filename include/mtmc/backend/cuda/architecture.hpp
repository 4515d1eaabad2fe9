#pragma once
/// What a multiprocessor of each architecture has, and does in a cycle.

#include <mtmc/requirements.hpp>

#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Operations of one multiprocessor in a cycle, dense; a multiply-add counts two. 0 = it has no units for it,
/// or boards of this architecture differ (some sum products of f16 at half the rate of others).
struct MultiprocessorRates {
  int f64 = 0;
  int f32 = 0;
  int f64_matrix = 0;
  int tf32 = 0;
  int f16 = 0;
  int f8 = 0;
  int i8 = 0;
  int f4 = 0;
};

/// One multiprocessor, by the table of compute capabilities in the CUDA programming guide and the white
/// papers of the architectures. Common to all: warps of 32 threads and at most 32 of them in a block; 65536
/// registers, a quarter for each of four groups of warps, given to a warp in units of 256, at most 255 to a
/// thread.
struct CudaMultiprocessor {
  /// Ten times the major compute capability plus the minor.
  int capability = 0;
  /// Most that can reside at once.
  int warps = 0;
  int blocks = 0;
  /// Most shared memory, in KiB, and the memory it is a part of; the rest of that is first-level cache.
  int shared_kib = 0;
  int l1_kib = 0;
  MultiprocessorRates rates{};

  [[nodiscard]] int shared_bytes() const noexcept { return shared_kib * 1024; }
  /// What the system takes of the shared memory for each block: from Ampere on.
  [[nodiscard]] int reserved_bytes() const noexcept { return capability >= 80 ? 1024 : 0; }
  /// Most that one block can have.
  [[nodiscard]] int shared_bytes_of_a_block() const noexcept { return shared_bytes() - reserved_bytes(); }
  /// A block's shared memory is rounded up to a multiple of this.
  [[nodiscard]] int shared_unit() const noexcept { return capability >= 80 ? 128 : 256; }
};

inline constexpr MultiprocessorRates gv100_rates{64, 128, 0, 0, 1024};
inline constexpr MultiprocessorRates ga100_rates{64, 128, 128, 1024, 2048, 0, 4096};
inline constexpr MultiprocessorRates gh100_rates{128, 256, 256, 2048, 4096, 8192, 8192};
inline constexpr MultiprocessorRates gb100_rates{128, 256, 128, 4096, 8192, 16384, 16384, 32768};
// What it does of f64 is not told well enough by its sheet.
inline constexpr MultiprocessorRates gb300_rates{0, 256, 0, 4096, 8192, 16384};
inline constexpr MultiprocessorRates turing_rates{4, 128};
inline constexpr MultiprocessorRates graphics_rates{4, 256};

inline constexpr std::array<CudaMultiprocessor, 12> cuda_multiprocessors{{
    {70, 64, 32, 96, 128, gv100_rates},
    {75, 32, 16, 64, 96, turing_rates},
    {80, 64, 32, 164, 192, ga100_rates},
    {86, 48, 16, 100, 128, graphics_rates},
    {87, 48, 16, 164, 192, graphics_rates},
    {89, 48, 24, 100, 128, graphics_rates},
    {90, 64, 32, 228, 256, gh100_rates},
    {100, 64, 32, 228, 256, gb100_rates},
    {103, 64, 32, 228, 256, gb300_rates},
    {110, 48, 24, 228, 256, graphics_rates},
    {120, 48, 24, 100, 128, graphics_rates},
    {121, 48, 24, 100, 128, graphics_rates},
}};

/// The multiprocessor of an architecture such as "sm_90a"; nothing for one that this library does not know.
[[nodiscard]] inline std::optional<CudaMultiprocessor> multiprocessor_of(std::string_view architecture) {
  constexpr std::string_view prefix = "sm_";
  if (!architecture.starts_with(prefix)) return std::nullopt;
  architecture.remove_prefix(prefix.size());
  int capability = 0;
  std::from_chars(architecture.data(), architecture.data() + architecture.size(), capability);
  for (const auto& known : cuda_multiprocessors)
    if (known.capability == capability) return known;
  return std::nullopt;
}

/// The rates of so many multiprocessors, in operations per second, under the names of `Device::peak_rates`.
/// `clock` in Hz is that of the ordinary units, `matrix_clock` that of the matrix units but for f64.
[[nodiscard]] inline std::map<std::string, double> peak_rates_of(const MultiprocessorRates& rates, int units,
                                                                 double clock, double matrix_clock) {
  std::map<std::string, double> map;
  const auto add = [&](const char* type, int a_cycle, double hertz) {
    if (a_cycle > 0 && hertz > 0) map[type] = static_cast<double>(a_cycle) * units * hertz;
  };
  add("f64", rates.f64, clock);
  add("f32", rates.f32, clock);
  add("f64_matrix", rates.f64_matrix, clock);
  add("tf32", rates.tf32, matrix_clock);
  add("f16", rates.f16, matrix_clock);
  if (rates.tf32 > 0) add("bf16", rates.f16, matrix_clock);
  add("f8", rates.f8, matrix_clock);
  add("i8", rates.i8, matrix_clock);
  add("f4", rates.f4, matrix_clock);
  return map;
}

} // namespace mtmc::detail
