#pragma once
/// Kernels that reach what a GPU can do, to measure its ceilings with.

#include <mtmc/core/device.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/launch_plan.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Modes of the probe.
inline constexpr int cuda_probe_read = 0;
inline constexpr int cuda_probe_f32 = 1;
inline constexpr int cuda_probe_f64 = 2;

/// Threads of its blocks, and how many blocks a multiprocessor holds.
inline constexpr std::int64_t cuda_probe_threads = 512;
inline constexpr std::int64_t cuda_probe_blocks = 2;
/// Bytes that a block has under way at once.
inline constexpr std::int64_t cuda_probe_tile = std::int64_t{8} * 16 * cuda_probe_threads;
/// Multiply-adds that one thread makes in one repetition of `cuda_probe_f32` or `cuda_probe_f64`.
inline constexpr int cuda_probe_steps = 8 * 32;

/// Reads `tiles` tiles of `data` past the first-level cache, or multiplies and adds in registers, `repeats`
/// times. Writes to `sink` what is never the case, so that nothing can be left out.
inline constexpr std::string_view cuda_probe_text = R"probe(
//@ launch probe<<<1, 512>>>(data, sink, tiles, repeats, mode)

// Eight chains hide the latency of the multiply-add (4 cycles) together with the other warps.
template <class T> __device__ T multiply_add(long long repeats) {
  const T factor = T(1) - T(1e-7) * T(repeats);
  const T summand = T(1) - factor;
  T a = factor, b = factor * 2, c = factor * 3, d = factor * 4;
  T e = factor * 5, f = factor * 6, g = factor * 7, h = factor * 8;
  for (long long repeat = 0; repeat < repeats; ++repeat) {
#pragma unroll
    for (int step = 0; step < 32; ++step) {
      a = a * factor + summand, b = b * factor + summand, c = c * factor + summand, d = d * factor + summand;
      e = e * factor + summand, f = f * factor + summand, g = g * factor + summand, h = h * factor + summand;
    }
  }
  return ((a + b) + (c + d)) + ((e + f) + (g + h));
}

__device__ unsigned read(const uint4* data, long long tiles, long long repeats) {
  unsigned sum = 0;
  for (long long visit = blockIdx.x; visit < tiles * repeats; visit += gridDim.x) {
    const uint4* tile = data + visit % tiles * (8 * 512) + threadIdx.x;
    uint4 v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = __ldcg(tile + k * 512);
#pragma unroll
    for (int k = 0; k < 8; ++k) sum = sum * 3 + (v[k].x ^ v[k].y ^ v[k].z ^ v[k].w);
  }
  return sum;
}

__global__ void __launch_bounds__(512, 2)
probe(const unsigned* data, unsigned* sink, long long tiles, long long repeats, int mode) {
  unsigned sum = 0;
  if (mode == 0) sum = read((const uint4*)data, tiles, repeats);
  if (mode == 1) sum = __float_as_uint(multiply_add<float>(repeats));
  if (mode == 2) sum = __double2hiint(multiply_add<double>(repeats));
  if (sum == 0x9e3779b9u) sink[0] = sum;
}
)probe";

/// Measures a GPU through its backend, by whose `compile` and `time` the probe goes like any other kernel.
/// Not thread-safe.
template <class B> class CudaCeilingsProbe {
public:
  using Program = std::shared_ptr<typename B::Program>;

  /// `program` is the compiled probe, or null; it is compiled when first needed.
  CudaCeilingsProbe(B& backend, Program& program) : backend_(backend), program_(program) {}

  /// What all multiprocessors together reach, each figure the best of several tries. Throws `Error` where the
  /// memory for it could not be allocated or the device does not compute.
  [[nodiscard]] MeasuredCeilings measure() {
    prepare();
    MeasuredCeilings ceilings;
    // A GPU that had nothing to do takes its time to get to its clock.
    constexpr double warm_up = 20e-3;
    (void)once(0, repeats_for(cuda_probe_f32, warm_up), cuda_probe_f32, false);
    ceilings.f32_rate = arithmetic_rate(cuda_probe_f32);
    ceilings.f64_rate = arithmetic_rate(cuda_probe_f64);
    ceilings.read_bandwidth = read_bandwidth();
    ceilings.cache_bandwidth = cache_bandwidth();
    return ceilings;
  }

  /// Bytes per second read from memory, nothing of it from the cache. Throws as `measure`.
  [[nodiscard]] double measure_read_bandwidth() {
    prepare();
    return read_bandwidth();
  }

private:
  using Buffer = typename B::Buffer;

  /// Bytes that all blocks have under way at once: amounts are multiples of it, so that no block has more to
  /// do than others.
  [[nodiscard]] std::int64_t round_bytes() const {
    return cuda_probe_tile * cuda_probe_blocks * std::max(1, backend_.device().compute_units);
  }
  [[nodiscard]] std::int64_t cache_bytes() const {
    const auto& caches = backend_.device().caches;
    return caches.empty() ? 0 : caches.back().bytes;
  }

  /// Memory much larger than the cache, and so large that a launch's overhead (some 2 us) does not matter;
  /// less where a host leaves no more, but four times the cache.
  void prepare() {
    constexpr std::int64_t ample = std::int64_t{1} << 30;
    const auto least = round_up_to_round(4 * cache_bytes());
    auto bytes = std::max(least, round_up_to_round(std::min(std::max(ample, 8 * cache_bytes()),
                                                            backend_.device().memory_bytes / 16)));
    for (;; bytes = std::max(least, round_up_to_round(bytes / 2))) {
      try {
        memory_.emplace(backend_.allocate(static_cast<std::size_t>(bytes)));
        break;
      } catch (const Error& error) {
        if (error.id() != error_id::backend_memory || bytes == least) throw;
      }
    }
    memory_bytes_ = bytes;
    sink_.emplace(backend_.allocate(64));
    backend_.fill(*memory_, 0, static_cast<std::size_t>(bytes), std::byte{0});
    plan_ = plan();
    if (program_) return;
    program_ = backend_.compile({languages::cuda, std::string(cuda_probe_text), {}}, {.plan = plan_}, {})
                   .program_or_throw("measures ceilings");
  }
  [[nodiscard]] std::int64_t round_up_to_round(std::int64_t bytes) const {
    return (bytes + round_bytes() - 1) / round_bytes() * round_bytes();
  }

  [[nodiscard]] LaunchPlan plan() const {
    using Kind = LaunchArgument::Kind;
    Launch launch{.entry = "probe", .line = 2};
    launch.grid = {cuda_probe_blocks * backend_.device().compute_units, 1, 1};
    launch.block = {cuda_probe_threads, 1, 1};
    launch.arguments = {
        {.name = "data", .type = DataType::u32, .bound = {memory_->handle(), 0, memory_bytes_}},
        {.name = "sink", .type = DataType::u32, .writable = true, .bound = {sink_->handle(), 0, 64}}};
    for (const char* const name : {"tiles", "repeats", "mode"})
      launch.arguments.push_back({.kind = Kind::scalar, .name = name, .type = DataType::i64});
    return {.size = {}, .launches = {std::move(launch)}};
  }

  /// Seconds of one launch.
  [[nodiscard]] double once(std::int64_t bytes, std::int64_t repeats, int mode, bool cold) {
    auto& arguments = plan_.launches.front().arguments;
    arguments[2].integer = bytes / cuda_probe_tile;
    arguments[3].integer = repeats;
    arguments[4].integer = mode;
    constexpr std::chrono::seconds patience{20};
    const auto timed =
        backend_.time(*program_, {&plan_, 1}, cold, std::chrono::steady_clock::now() + patience);
    if (timed.status.finished() && timed.seconds > 0) return timed.seconds;
    throw Error(error_id::backend_device, "a probe of this library does not run: " + timed.status.message,
                "Check with nvidia-smi that the device still works");
  }

  /// The least of several times, and of more where others make the device so busy that they go on getting
  /// better.
  [[nodiscard]] double best(std::int64_t bytes, std::int64_t repeats, int mode, bool cold) {
    constexpr int max_tries = 16;
    constexpr int last_without_progress = 4;
    double least = once(bytes, repeats, mode, cold);
    for (int i = 1, stale = 0; i < max_tries && stale < last_without_progress; ++i) {
      const double seconds = once(bytes, repeats, mode, cold);
      stale = seconds < 0.99 * least ? 0 : stale + 1;
      least = std::min(least, seconds);
    }
    return least;
  }

  /// Repetitions of arithmetic that take so long.
  [[nodiscard]] std::int64_t repeats_for(int mode, double seconds) {
    constexpr std::int64_t few = 100;
    // The first launch loads the program.
    (void)once(0, 1, mode, false);
    return std::max<std::int64_t>(
        few, static_cast<std::int64_t>(seconds / once(0, few, mode, false) * static_cast<double>(few)));
  }
  [[nodiscard]] double arithmetic_rate(int mode) {
    constexpr double long_enough = 1e-3;
    const auto repeats = repeats_for(mode, long_enough);
    const double operations = 2.0 * cuda_probe_steps * static_cast<double>(repeats) *
                              static_cast<double>(cuda_probe_threads * plan_.launches.front().grid[0]);
    return operations / best(0, repeats, mode, false);
  }
  [[nodiscard]] double read_bandwidth() {
    return static_cast<double>(memory_bytes_) / best(memory_bytes_, 1, cuda_probe_read, true);
  }
  /// Of a quarter of the cache: on some devices it keeps two copies of what both of its halves are asked for.
  [[nodiscard]] double cache_bandwidth() {
    const auto bytes = cache_bytes() / 4 / cuda_probe_tile * cuda_probe_tile;
    if (bytes <= 0) return 0;
    const auto repeats = std::max<std::int64_t>(1, memory_bytes_ / bytes);
    (void)once(bytes, 1, cuda_probe_read, false);
    return static_cast<double>(bytes * repeats) / best(bytes, repeats, cuda_probe_read, false);
  }

  B& backend_;
  Program& program_;
  std::optional<Buffer> memory_;
  std::optional<Buffer> sink_;
  std::int64_t memory_bytes_ = 0;
  LaunchPlan plan_;
};

} // namespace mtmc::detail
