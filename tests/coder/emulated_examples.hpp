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

  static constexpr const char* more = R"cpp(
#define VECTORS(type, name) \
  struct alignas(2 * sizeof(type)) name##2 { type x, y; }; \
  struct alignas(sizeof(type) < 8 ? 4 * sizeof(type) : 16) name##4 { type x, y, z, w; }; \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; } \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
VECTORS(float, float)
VECTORS(double, double)
VECTORS(int, int)
VECTORS(short, short)
VECTORS(unsigned short, ushort)
VECTORS(signed char, char)
VECTORS(unsigned char, uchar)
struct alignas(8) uint2 { unsigned x, y; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
template <class T> static inline T __ldg(const T* place) { return *place; }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline long long min(long long a, long long b) { return a < b ? a : b; }
static inline long long max(long long a, long long b) { return a > b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static inline unsigned min(int a, unsigned b) { return min(static_cast<unsigned>(a), b); }
static inline unsigned max(int a, unsigned b) { return max(static_cast<unsigned>(a), b); }
static inline unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
static inline unsigned max(unsigned a, int b) { return max(a, static_cast<unsigned>(b)); }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline float emulated_rsqrtf(float x) { return 1.0f / sqrtf(x); }
#define rsqrtf emulated_rsqrtf
static inline void __threadfence() {} // threads take turns
static inline unsigned atomicAdd(unsigned* place, unsigned more) {
  const unsigned before = *place;
  *place += more;
  return before;
}
#line 1 "kernel.cu"
)cpp";

  [[nodiscard]] mtmc::CompileResult<Program>
  compile(const mtmc::Kernel& kernel, const mtmc::CompileOptions& options, std::stop_token stop) {
    return EmulatedDevice::compile({kernel.language, more + kernel.source, {}}, options, std::move(stop));
  }
};

static_assert(mtmc::check_backend<ExampleDevice>());

} // namespace mtmc_test
