#pragma once
/// A kernel that empties the second-level cache by reading other memory through it.

#include <mtmc/core/device.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/launch_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view cuda_sweep_text = R"sweep(
//@ launch read_all<<<1, 512>>>(memory, words)
__global__ void read_all(unsigned* memory, long long words) {
  unsigned sum = 0;
  long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < words; i += stride)
    sum += memory[i];
  if (sum == 0x9e3779b9u) memory[0] = sum;
}
)sweep";

/// Memory of one device that nobody else uses, and the kernel that reads it. Not thread-safe.
template <class B> class CudaCacheSweep {
public:
  /// More than the cache of a device holds: once it is read, what was there is written back and gone.
  [[nodiscard]] static std::size_t bytes_for(const Device& device) {
    return static_cast<std::size_t>(std::max<std::int64_t>(2 * device.caches.back().bytes, 8 << 20));
  }

  /// Throws `Error` where the memory could not be allocated or the kernel does not compile.
  explicit CudaCacheSweep(B& backend)
      : memory_(backend.allocate(bytes_for(backend.device()))), plan_(plan_on(backend.device(), memory_)),
        program_(backend.compile({languages::cuda, std::string(cuda_sweep_text), {}}, {.plan = plan_}, {})
                     .program_or_throw("empties the cache")) {
    backend.fill(memory_, 0, memory_.bytes(), std::byte{0});
  }

  [[nodiscard]] typename B::Program& program() noexcept { return *program_; }
  /// A launch that reads the whole memory, or nothing of it.
  [[nodiscard]] const Launch& launch(bool whole) {
    auto& launch = plan_.launches.front();
    launch.arguments[1].integer =
        whole ? static_cast<std::int64_t>(memory_.bytes() / sizeof(std::uint32_t)) : 0;
    return launch;
  }

private:
  [[nodiscard]] static LaunchPlan plan_on(const Device& device, const typename B::Buffer& memory) {
    constexpr std::int64_t blocks_of_a_unit = 4;
    Launch launch{.entry = "read_all", .line = 2};
    launch.grid = {blocks_of_a_unit * device.compute_units, 1, 1};
    launch.block = {512, 1, 1};
    launch.arguments = {{.name = "memory",
                         .type = DataType::u32,
                         .bound = {memory.handle(), 0, static_cast<std::int64_t>(memory.bytes())}},
                        {.kind = LaunchArgument::Kind::scalar, .name = "words", .type = DataType::i64}};
    return {.size = {}, .launches = {std::move(launch)}};
  }

  typename B::Buffer memory_;
  LaunchPlan plan_;
  std::shared_ptr<typename B::Program> program_;
};

} // namespace mtmc::detail
