#pragma once
/// Kernels that overwrite what earlier ones left in shared and in local memory, which no launch clears.

#include <mtmc/core/device.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/launch_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What both kernels begin with. Blocks wait until all of a launch have arrived, so that each is on a place
/// of its own; not for ever (some 300 us), since another process may hold a multiprocessor.
inline constexpr std::string_view cuda_residue_text = R"residue(
__device__ __forceinline__ unsigned noise(unsigned long long key, unsigned long long place) {
  unsigned long long mixed = key + 0x9e3779b97f4a7c15ull * (place + 1);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
  return (unsigned)(mixed >> 32);
}
__device__ __forceinline__ void meet(unsigned* arrived, long long all) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1u);
  for (int i = 0; i < 512 && (int)((unsigned)all - *(volatile unsigned*)arrived) > 0; ++i) {}
}
)residue";

/// The text of the kernel that overwrites shared memory.
[[nodiscard]] inline std::string cuda_shared_residue_text() {
  return std::string(cuda_residue_text) + R"residue(
extern __shared__ unsigned shared_words[];
__global__ void __launch_bounds__(1024) overwrite_shared(unsigned* arrived, long long all, long long key, int words) {
  volatile unsigned* const to = shared_words;
  for (int i = threadIdx.x; i < words; i += blockDim.x) to[i] = noise(key, blockIdx.x * (long long)words + i);
  meet(arrived, all);
}
)residue";
}

/// The text of the kernel that overwrites `bytes` of local memory of each thread, where `blocks` of 512
/// threads fill a multiprocessor.
[[nodiscard]] inline std::string cuda_local_residue_text(std::int64_t bytes, int blocks) {
  return std::string(cuda_residue_text) + "\n__global__ void __launch_bounds__(512, " +
         std::to_string(blocks) +
         ") overwrite_local(unsigned* arrived, long long all, long long key) {\n  constexpr int words = " +
         std::to_string(bytes / 4) + R"residue(;
  volatile unsigned frame[words];
  const long long first = (blockIdx.x * 512ll + threadIdx.x) * words;
#pragma unroll 1
  for (int i = 0; i < words; ++i) frame[i] = noise(key, first + i);
  meet(arrived, all);
}
)residue";
}

/// The launches, and the programs they need, on one device. Not thread-safe.
template <class B> class CudaResidue {
public:
  static constexpr std::int64_t local_threads = 512;
  /// Bytes of local memory that each thread has, whatever the kernel (CU_LIMIT_STACK_SIZE), and the steps in
  /// which larger frames are overwritten.
  static constexpr std::int64_t usual_frame = 1024;
  /// No kernel has more than 512 KiB, and this one needs some for itself: what lies beyond stays as it is.
  static constexpr std::int64_t max_frame = std::int64_t{448} << 10;
  /// Frames of different sizes whose programs are kept.
  static constexpr std::size_t kept_frames = 8;

  /// `shared_bytes`: most dynamic shared memory of a block; `threads`: most that a multiprocessor holds.
  /// Throws `Error` where the memory could not be allocated or a kernel does not compile, like `prepare`.
  CudaResidue(B& backend, std::int64_t shared_bytes, std::int64_t threads)
      : arrivals_(backend.allocate(sizeof(std::uint32_t))),
        units_(std::max(backend.device().compute_units, 1)),
        blocks_(std::max<std::int64_t>(threads / local_threads, 1)),
        shared_(shared_part(backend, shared_bytes)) {
    backend.fill(arrivals_, 0, arrivals_.bytes(), std::byte{0});
  }

  /// One launch of a program of the judge's own.
  struct Part {
    std::shared_ptr<typename B::Program> program;
    Launch launch;
  };

  /// Compiles what a kernel needs whose threads have `local_bytes` of local memory.
  void prepare(B& backend, double local_bytes) {
    if (local_bytes <= 0) return;
    const auto bytes = frame_for(local_bytes);
    if (frames_.contains(bytes)) return;
    if (frames_.size() >= kept_frames) frames_.clear();
    frames_.emplace(bytes, local_part(backend, bytes));
  }

  /// Overwrites all shared memory, under a key.
  [[nodiscard]] Part& shared(std::uint64_t key) { return ready(shared_, key); }
  /// Overwrites the local memory that such a kernel's threads have, `prepare`d or not; null where they have
  /// none.
  [[nodiscard]] Part* local(B& backend, double local_bytes, std::uint64_t key) {
    if (local_bytes <= 0) return nullptr;
    prepare(backend, local_bytes);
    return &ready(frames_.at(frame_for(local_bytes)), key);
  }
  /// To be called when a launch has been queued, and only then: its blocks will arrive.
  void queued(const Part& part) noexcept { arriving_ += part.launch.grid[0]; }

private:
  [[nodiscard]] static std::int64_t frame_for(double local_bytes) noexcept {
    const auto bytes = static_cast<std::int64_t>(local_bytes);
    return std::min((bytes + usual_frame - 1) / usual_frame * usual_frame, max_frame);
  }

  [[nodiscard]] Part shared_part(B& backend, std::int64_t bytes) {
    Launch launch{.entry = "overwrite_shared", .line = 1};
    launch.grid = {units_, 1, 1};
    launch.block = {1024, 1, 1};
    launch.shared_bytes = bytes;
    launch.arguments = arguments();
    launch.arguments.push_back({.kind = LaunchArgument::Kind::scalar,
                                .name = "words",
                                .type = DataType::i32,
                                .integer = bytes / static_cast<std::int64_t>(sizeof(std::uint32_t))});
    return compiled(backend, cuda_shared_residue_text(), std::move(launch));
  }
  [[nodiscard]] Part local_part(B& backend, std::int64_t bytes) {
    Launch launch{.entry = "overwrite_local", .line = 1};
    launch.grid = {units_ * blocks_, 1, 1};
    launch.block = {local_threads, 1, 1};
    launch.arguments = arguments();
    return compiled(backend, cuda_local_residue_text(bytes, static_cast<int>(blocks_)), std::move(launch));
  }
  [[nodiscard]] std::vector<LaunchArgument> arguments() const {
    const auto bytes = static_cast<std::int64_t>(arrivals_.bytes());
    return {{.name = "arrived", .type = DataType::u32, .bound = {arrivals_.handle(), 0, bytes}},
            {.kind = LaunchArgument::Kind::scalar, .name = "all", .type = DataType::i64},
            {.kind = LaunchArgument::Kind::scalar, .name = "key", .type = DataType::i64}};
  }
  [[nodiscard]] static Part compiled(B& backend, std::string text, Launch launch) {
    LaunchPlan plan{.size = {}, .launches = {std::move(launch)}};
    auto program = backend.compile({languages::cuda, std::move(text), {}}, {.plan = plan}, {})
                       .program_or_throw("overwrites what kernels leave");
    return {std::move(program), std::move(plan.launches.front())};
  }
  [[nodiscard]] Part& ready(Part& part, std::uint64_t key) const noexcept {
    part.launch.arguments[1].integer = arriving_ + part.launch.grid[0];
    part.launch.arguments[2].integer = static_cast<std::int64_t>(key);
    return part;
  }

  typename B::Buffer arrivals_;
  std::int64_t units_;
  /// Of the kernel for local memory that fill a multiprocessor.
  std::int64_t blocks_;
  Part shared_;
  std::map<std::int64_t, Part> frames_;
  /// Blocks of all launches so far.
  std::int64_t arriving_ = 0;
};

} // namespace mtmc::detail
