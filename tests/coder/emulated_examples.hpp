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
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) double2 { double x, y; };
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline void __threadfence() {} // threads take turns
static inline unsigned atomicAdd(unsigned* place, unsigned more) {
  const unsigned before = *place;
  *place += more;
  return before;
}
#line 1 "kernel.cu"
)cpp";
    return EmulatedDevice::compile({kernel.language, more + kernel.source, {}}, options, std::move(stop));
  }
};

static_assert(mtmc::check_backend<ExampleDevice>());

} // namespace mtmc_test
