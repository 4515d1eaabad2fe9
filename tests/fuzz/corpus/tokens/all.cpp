#include <cmath>
#include "x.h" // no
%:define F(a) #a ## a
#if defined(N) && N > 2 || __has_include(<vector>)
#pragma omp parallel for simd
#endif
static const char* s = u8R"x(a\
)x" L"\"b"_k; /* c */ constexpr auto n = 0x1p-3f + 1'000'000.5e+2 + 'a' + .5f;
__attribute__((noinline, section(".x"))) float f(float x) noexcept { return sqrtf(x) * 2.0f; }
[[gnu::always_inline]] inline double g<::f>(int \
  i) { asm volatile("nop"); return i <=> 2 ? f(1.f) : __builtin_memcpy; }
_Pragma("once") $dollar Ã¤name ??= <: :> ->* ...
# 12 "kernel.cpp" 2
#embed "/etc/passwd"
