#pragma once

#include <array>
#include <string_view>

/// Kernels as engineers write them, for the tests of the front end. All of them are fully understood: no
/// opaque nodes.

namespace mtmc::samples {

struct SampleKernel {
  std::string_view name;
  std::string_view source;
};

inline constexpr std::string_view gemm = R"cpp(// C = A * B, row-major.
//@ launch gemm(A, B, C, M, N, K)

extern "C" void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;  // accumulate in a register
      for (int k = 0; k < K; ++k) {
        sum += A[i * K + k] * B[k * N + j];
      }
      C[i * N + j] = sum;
    }
  }
}
)cpp";

inline constexpr std::string_view softmax = R"cpp(#include <algorithm>
#include <cmath>

//@ launch softmax(x, y, rows, cols)
void softmax(const float* x, float* y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        float max_value = x[r * cols];
        for (int c = 1; c < cols; c++)
            max_value = std::max<float>(max_value, x[r * cols + c]);

        double sum = 0.0;
        for (int c = 0; c < cols; c++) {
            const float e = std::exp(x[r * cols + c] - max_value);
            y[r * cols + c] = e;
            sum += static_cast<double>(e);
        }
        /* normalise
           the row */
        for (int c = 0; c < cols; c++) y[r * cols + c] /= float(sum);
    }
}
)cpp";

inline constexpr std::string_view layer_norm = R"cpp(#include <cmath>
#include <cstddef>

namespace kernels {

static inline float square(float value) { return value * value; }

void layer_norm(const float* __restrict__ x, const float* __restrict__ gamma,
                const float* __restrict__ beta, float* __restrict__ y,
                std::size_t rows, std::size_t cols, float epsilon)
{
  for (std::size_t r = 0; r < rows; ++r)
  {
    const float* const row = x + r * cols;
    float mean = 0.f, variance = 0.f;
    for (std::size_t c = 0; c < cols; ++c)
      mean += row[c];
    mean /= (float)cols;
    for (std::size_t c = 0; c < cols; ++c)
      variance += square(row[c] - mean);
    variance /= static_cast<float>(cols);
    const float scale = 1.0f / std::sqrt(variance + epsilon);
    for (std::size_t c = 0; c < cols; ++c)
    {
      y[r * cols + c] = (row[c] - mean) * scale * gamma[c] + beta[c];
    }
  }
}

}  // namespace kernels
)cpp";

inline constexpr std::string_view convolution =
    R"cpp(#define IN(n, c, h, w) in[(((n) * C + (c)) * H + (h)) * W + (w)]

//@ launch conv2d(in, weight, out, N, C, H, W, O, R, S)
void conv2d(const float *in, const float *weight, float *out, int N, int C, int H, int W, int O, int R, int S) {
  const int P = H - R + 1, Q = W - S + 1;
  for (int n = 0; n < N; ++n)
    for (int o = 0; o < O; ++o)
      for (int p = 0; p < P; ++p)
        for (int q = 0; q < Q; ++q) {
          float acc = 0;
          for (int c = 0; c < C; ++c)
            for (int r = 0; r < R; ++r)
              for (int s = 0; s < S; ++s)
                acc += IN(n, c, p + r, q + s) * weight[((o * C + c) * R + r) * S + s];
          out[((n * O + o) * P + p) * Q + q] = acc;
        }
}
)cpp";

inline constexpr std::string_view stencil =
    R"cpp(void stencil(double const *__restrict a, double *__restrict b, int n, int m)
{
	int i, j;
	for (i = 1; i < n - 1; i++)
	{
		for (j = 1; j < m - 1; j++)
		{
			if (i % 2 == 0 && (j & 1) != 0)
				b[i*m+j] = 0.25*(a[(i-1)*m+j]+a[(i+1)*m+j]+a[i*m+j-1]+a[i*m+j+1]);
			else if (a[i*m+j] < 0 || !b[i*m+j])
			{
				b[i*m+j] = -a[i*m+j];
			}
			else
				continue;
		}
	}
}
)cpp";

inline constexpr std::string_view elementwise = R"cpp(#include <cmath>
//@ scratch T0: f32[N]
//@ scratch T1: f32[N]
//@ launch scale(X, T0, N)
//@ launch shift(T0, T1, N)
//@ launch activate(T1, Y, N)
void scale(const float* x, float* y, int n) { for (int i = 0; i < n; ++i) { y[i] = 2.0f * x[i]; } }
void shift(const float* x, float* y, int n) { for (int i = 0; i < n; ++i) y[i] = x[i] + 1.0f; }

void activate(const float* x, float* y, int n) {
#pragma omp simd
  for (int i = 0; i < n; ++i)
    y[i] = x[i] > 0.0f ? std::tanh(x[i]) : 0.0f;
}
)cpp";

inline constexpr std::string_view cuda_gemm = R"cuda(constexpr int TILE = 16;

//@ launch gemm_tiled<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, C, M, N, K)
template <int Tile>
__global__ void __launch_bounds__(256) gemm_tiled(const float* __restrict__ A, const float* __restrict__ B,
                                                  float* __restrict__ C, int M, int N, int K) {
  __shared__ float As[TILE][TILE], Bs[TILE][TILE + 1];
  const int row = blockIdx.y * TILE + threadIdx.y;
  const int col = blockIdx.x * TILE + threadIdx.x;
  float acc = 0.0f;

  for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
    As[threadIdx.y][threadIdx.x] = row < M && t * TILE + threadIdx.x < K ? A[row * K + t * TILE + threadIdx.x] : 0.0f;
    Bs[threadIdx.y][threadIdx.x] = 0.0f;
    if (col < N && t * TILE + threadIdx.y < K)
      Bs[threadIdx.y][threadIdx.x] = B[(t * TILE + threadIdx.y) * N + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) acc = fmaf(As[threadIdx.y][k], Bs[k][threadIdx.x], acc);
    __syncthreads();
  }

  float4 packed = *reinterpret_cast<const float4*>(&A[0]);
  if (row < M && col < N) { C[row * N + col] = acc + packed.x; }
}
)cuda";

inline constexpr std::string_view opencl_sum = R"cl(#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void row_sum(__global const float4 *in, __global float *out, __local float *scratch, const uint n)
{
    const size_t gid = get_global_id(0);
    const uint lid = get_local_id(0);
    float4 v = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
    for (uint i = gid; i < n; i += get_global_size(0)) v += in[i];
    scratch[lid] = v.x + v.y + v.z + v.w;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint s = get_local_size(0) >> 1; s > 0; s >>= 1) {
        if (lid < s) scratch[lid] += scratch[lid + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lid == 0u) out[get_group_id(0)] = scratch[0];
}
)cl";

inline constexpr std::string_view blocked = R"cpp(#include <array>
#include <cstdint>
#include <vector>

namespace {
  template <typename T, int N = 4>
  [[nodiscard]] constexpr T dot(const std::array<T, N>& a, const std::array<T, N>& b) noexcept {
    T sum{};
    for (int i = 0; i < N; ++i) sum += a[i] * b[i];
    return sum;
  }
} // namespace

void transpose(const float* in, float* out, std::int64_t rows, std::int64_t cols) {
  // Scratch of one block.
  std::vector<float> block(32 * 32);
  std::vector<std::array<float, 4>> unused;
  alignas(64) float line[4][8] = {{0.0f}, {1.0f, 2.0f}};
  static const unsigned long long mask = 0xFFull, wide = 1'000'000;
  float *first = block.data(), *last = first + block.size();
  for (std::int64_t i0 = 0; i0 < rows; i0 += 32) {
    for (std::int64_t j0 = 0; j0 < cols; j0 += 32) {
      const std::int64_t i1 = std::min(i0 + 32, rows), j1 = std::min<std::int64_t>(j0 + 32, cols);

      // Through the block, so that both sides are read along their rows.
      for (std::int64_t i = i0; i < i1; ++i)
        for (std::int64_t j = j0; j < j1; ++j) block[(j - j0) * 32 + (i - i0)] = in[i * cols + j];
      while (first != last) *first++ = 0.0f;
      do { --last; } while (last - first > 0);
      (void)mask; (void)(wide << (2 + 1)); (void)sizeof(float);
      if (unused.empty()) { line[0][1] += dot<float, 4>({1, 2, 3, 4}, {}); } else return;
      /* trailing */ out[j0 * rows + i0] = block[0];
      // nothing after this
    }
  }
}
)cpp";

inline constexpr std::string_view dense =
    R"cpp(void saxpy(int n,float a,float*x,float*y){for(int i=0;i<n;i++){y[i]=a*x[i]+y[i];}}
void swap_halves(int n,float*x){int h=n/2;for(int i=0,j=h;i<h&&j<n;i++,j++){float t=x[i];x[i]=x[j];x[j]=t;}})cpp";

inline constexpr std::string_view odd = R"cpp(

static
void
odd ( float * x ,
      int   n   )   // why so wide
{

    int i = 0 ;  ;
    for ( ; ; )
    {
        if ( i >= n )
            break ;  // done
        x [ i ] =
            ( x [ i ] + 1 )   /* one */
            * 2 ;
        i ++ ;
    }
    return ;

}
)cpp";

inline constexpr auto all = std::to_array<SampleKernel>({
    {"gemm", gemm},
    {"softmax", softmax},
    {"layer_norm", layer_norm},
    {"convolution", convolution},
    {"stencil", stencil},
    {"elementwise", elementwise},
    {"cuda_gemm", cuda_gemm},
    {"opencl_sum", opencl_sum},
    {"blocked", blocked},
    {"dense", dense},
    {"odd", odd},
});

/// Valid code of which parts are not modelled: they become opaque and print as they stood.
inline constexpr std::string_view partly_opaque = R"cpp(#include <vector>
struct Point { float x, y; };
enum class Mode { fast, exact };
using Row = std::vector<float>;
typedef float (*function)(float);
float later(float);
template <typename T> struct Box { T value; };
static_assert(sizeof(float) == 4, "binary32");

int count(const Row& row, Mode mode, float (*f)(float)) {
  int total = 0;
  for (float value : row)
    if (value > 0) ++total; else --total;
  switch (mode) {
  case Mode::fast: total += 1; break;
  default: break;
  }
  auto [a, b] = Point{1, 2};
  float (*matrix)[4] = nullptr;
  try { total += f(a) > b; } catch (...) { throw; }
  auto add = [&total](int n) -> int { return total + n; };
  asm volatile("nop" : : : "memory");
  Point p = {.x = 1, .y = 2};
again:
  if (auto q = add(1); q > 3) goto again;
  UNROLL(4)
  for (int i = 0; i < 3; ++i) total += i;
  _Pragma("omp simd") for (int i = 0; i < 3; ++i) total -= i;
  int* heap = new int[3];
  delete[] heap;
  return total;
}
)cpp";

} // namespace mtmc::samples
