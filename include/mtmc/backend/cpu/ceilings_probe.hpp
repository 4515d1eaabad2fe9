#pragma once
/// Kernels that reach what the processor can do, to measure its ceilings with.

#include <mtmc/core/device.hpp>
#include <mtmc/core/launch_plan.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Modes of the probe.
inline constexpr int probe_read = 0;
inline constexpr int probe_f32 = 1;
inline constexpr int probe_f64 = 2;

/// Vector multiply-adds one thread makes in one repetition of `probe_f32` or `probe_f64`.
inline constexpr int probe_chains = 12;

/// A kernel that reads `bytes` of `data` (`probe_read`) or multiplies and adds in registers, `repeats` times,
/// with all threads. Compiled and run like any candidate, so that neither the host's flags nor its sanitizers
/// matter. Writes the vector's bytes and the number of threads to `sink`.
inline constexpr std::string_view probe_text = R"probe(
//@ launch probe(data, sink, bytes, repeats, mode)
#if defined(__AVX512F__)
#define PROBE_VECTOR 64
#elif defined(__AVX__)
#define PROBE_VECTOR 32
#else
#define PROBE_VECTOR 16
#endif

namespace {

template <class T> struct Lanes { typedef T Type __attribute__((vector_size(PROBE_VECTOR))); };

// Twelve chains hide the latency of the multiply-add (4 cycles, 2 a cycle) and fit into 16 registers.
template <class T> double multiply_add(long repeats) {
  typedef typename Lanes<T>::Type Vector;
  volatile T opaque = T(0.999);
  Vector factor = {};
  factor += opaque;
  Vector summand = {};
  summand += T(1) - opaque;
  Vector a = factor, b = factor, c = factor, d = factor, e = factor, f = factor;
  Vector g = factor, h = factor, i = factor, j = factor, k = factor, l = factor;
  for (long repeat = 0; repeat < repeats; ++repeat) {
    a = a * factor + summand, b = b * factor + summand, c = c * factor + summand, d = d * factor + summand;
    e = e * factor + summand, f = f * factor + summand, g = g * factor + summand, h = h * factor + summand;
    i = i * factor + summand, j = j * factor + summand, k = k * factor + summand, l = l * factor + summand;
  }
  const Vector sum = ((a + b) + (c + d)) + ((e + f) + (g + h)) + ((i + j) + (k + l));
  return double(sum[0]);
}

double read(const float* data, long bytes, long repeats, int part, int parts) {
  typedef Lanes<int>::Type Vector;
  const long all = bytes / PROBE_VECTOR;
  const long begin = all / parts * part, end = all / parts * (part + 1);
  const Vector* volatile opaque = reinterpret_cast<const Vector*>(data);
  Vector a = {}, b = {}, c = {}, d = {}, e = {}, f = {}, g = {}, h = {};
  for (long repeat = 0; repeat < repeats; ++repeat) {
    const Vector* v = opaque;
    for (long n = begin; n + 8 <= end; n += 8) {
      a ^= v[n], b ^= v[n + 1], c ^= v[n + 2], d ^= v[n + 3];
      e ^= v[n + 4], f ^= v[n + 5], g ^= v[n + 6], h ^= v[n + 7];
    }
  }
  const Vector sum = ((a ^ b) ^ (c ^ d)) ^ ((e ^ f) ^ (g ^ h));
  return double(sum[0]);
}

} // namespace

#ifdef _OPENMP
#include <omp.h>
#endif

void probe(const float* data, double* sink, long bytes, long repeats, int mode) {
  double total = 0;
  int threads = 1;
#pragma omp parallel reduction(+ : total)
  {
    int part = 0, parts = 1;
#ifdef _OPENMP
    part = omp_get_thread_num(), parts = omp_get_num_threads();
    if (part == 0) threads = parts;
#endif
    if (mode == 0) total += read(data, bytes, repeats, part, parts);
    if (mode == 1) total += multiply_add<float>(repeats);
    if (mode == 2) total += multiply_add<double>(repeats);
  }
  sink[0] = PROBE_VECTOR;
  sink[1] = threads;
  sink[2] = total;
}
)probe";

/// A call of the probe with places for its three numbers.
[[nodiscard]] inline LaunchPlan probe_plan(std::uint64_t data, std::int64_t bytes, std::uint64_t sink) {
  using Kind = LaunchArgument::Kind;
  Launch launch{.entry = "probe", .line = 2};
  launch.arguments = {{.name = "data", .type = DataType::f32, .bound = {data, 0, bytes}},
                      {.name = "sink", .type = DataType::f64, .writable = true, .bound = {sink, 0, 24}}};
  for (const char* const name : {"bytes", "repeats", "mode"})
    launch.arguments.push_back({.kind = Kind::scalar, .name = name, .type = DataType::i64});
  return {.size = {}, .launches = {std::move(launch)}};
}

/// How much to read so that it lies in the last-level cache and nowhere nearer: half a thread's share of it,
/// but more than the next nearer cache holds. 0 without a cache that is known.
[[nodiscard]] inline std::int64_t probe_cache_bytes(const Device& device) {
  if (device.caches.empty()) return 0;
  const auto share = [](const CacheLevel& cache) { return cache.bytes / std::max(1, cache.shared_by); };
  auto bytes = share(device.caches.back()) / 2;
  if (device.caches.size() > 1)
    bytes = std::max(
        bytes, std::min(share(device.caches.back()), 3 * share(device.caches[device.caches.size() - 2]) / 2));
  return bytes * device.compute_units;
}

} // namespace mtmc::detail
