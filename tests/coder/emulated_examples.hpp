#pragma once
/// The emulated GPU with what else the examples need, judged from the host.

#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "../evaluator/emulated_device.hpp"

namespace mtmc_test {

/// Adds what CUDA C++ has and the emulated device does not know.
class ExampleDevice : public EmulatedDevice {
public:
  /// Comparing on the host spares the judge's own kernel, which takes long to compile.
  static constexpr bool runs_judge_kernels = false;

  [[nodiscard]] mtmc::CompileResult<Program>
  compile(const mtmc::Kernel& kernel, const mtmc::CompileOptions& options, std::stop_token stop) {
    constexpr const char* more = R"cpp(
struct alignas(16) float4 { float x, y, z, w; };
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline void __threadfence() {} // threads take turns
static inline unsigned atomicAdd(unsigned* place, unsigned more) {
  const unsigned before = *place;
  *place += more;
  return before;
}
static inline long long min(long long a, long long b) { return a < b ? a : b; }
static inline long long max(long long a, long long b) { return a > b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
#line 1 "kernel.cu"
)cpp";
    return EmulatedDevice::compile({kernel.language, more + kernel.source, {}}, options, std::move(stop));
  }
};

static_assert(mtmc::check_backend<ExampleDevice>());

} // namespace mtmc_test
