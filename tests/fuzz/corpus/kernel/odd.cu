#define TILE 16
template <int N> __device__ float f(const float (&x)[N]) { return x[0] + x[N - 1]; }
enum { a = 1 << 3 };
struct S { int i; float v[4]; };
__global__ void k(float* __restrict__ x, const float* y, int n) {
  __shared__ float t[TILE][TILE + 1];
  auto g = [=](int i) { return y[i] * 2.0f; };
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
#pragma unroll 4
    for (int j = n - 1; j >= 0; --j) x[i * n + j] += g(j) > 0 ? y[j] : -y[j];
    do { t[threadIdx.y][threadIdx.x] = (float)i; } while (false);
    switch (i & 3) { case 0: continue; default: break; }
    goto end;
  end:;
  }
  __syncthreads();
  while (n-- > 0) if (n % 2) x[n] = 0x1p-3f; else x[n] = 1'000.5e-2f;
}
//@ scratch T: f32[M, N]
//@ launch k<<<(ceil_div(N, 16), 2), (16, 16), 4096>>>(A, B, N)
