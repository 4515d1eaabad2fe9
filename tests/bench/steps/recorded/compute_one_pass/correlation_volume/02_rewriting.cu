// Products of the features of each pixel with those of all pixels up to R away in another image; what lies outside of it
// is zero. A block takes 12 x 8 pixels, a warp 4 x 4 of them and half of the 20 x 20 pixels they meet (R == 8).

//@ launch correlation_volume<<<(ceil_div(W, 12), ceil_div(H, 8), 1), 384, 147840>>>(f, g, out, H, W, C, R)

#include <cstdint>

constexpr int CV_GW = 28;                          // columns of g that a block needs
constexpr int CV_GPIX = 672;                       // 28 x 24 pixels of g
constexpr int CV_PLANE = 768 * 32 + 64;            // bytes of 8 channels of the 672 + 96 pixels, shifted against banks
constexpr int CV_STAGE = 2 * CV_PLANE;             // bytes of 16 channels
constexpr int CV_PITCH = 100;                      // floats of the 96 results of a displacement, padded

__device__ __forceinline__ void cv_copy(uint32_t to, const float* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void cv_split(float v, uint32_t& high, uint32_t& low) {
  high = (__float_as_uint(v) + 0x1000u) & 0xffffe000u;
  low = __float_as_uint(v - __uint_as_float(high));
}

__device__ __forceinline__ void cv_mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void __launch_bounds__(384, 1)
correlation_volume(const float* __restrict__ f, const float* __restrict__ g, float* __restrict__ out, int H, int W, int C, int R) {
  extern __shared__ __align__(128) unsigned char cv_shared[];

  const int tid = (int)threadIdx.x;

  if (R != 8 || (C & 3) != 0) {
    const int side = 2 * R + 1;
    const long long total = (long long)side * side * H * W;
    const long long step = (long long)gridDim.x * gridDim.y * 384;
    for (long long p = ((long long)blockIdx.y * gridDim.x + blockIdx.x) * 384 + tid; p < total; p += step) {
      const int x = (int)(p % W);
      const long long rest = p / W;
      const int y = (int)(rest % H);
      const int d = (int)(rest / H);
      const int there_x = x + d % side - R;
      const int there_y = y + d / side - R;
      float sum = 0.0f;
      if (there_x >= 0 && there_x < W && there_y >= 0 && there_y < H) {
        for (int c = 0; c < C; ++c) sum += f[(y * W + x) * C + c] * g[(there_y * W + there_x) * C + c];
      }
      out[p] = sum;
    }
    return;
  }

  const int x0 = (int)blockIdx.x * 12;
  const int y0 = (int)blockIdx.y * 8;
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int gid = lane >> 2;
  const int tig = lane & 3;
  const int patch = warp >> 1;                     // 0 .. 5
  const int half = warp & 1;                       // upper or lower 10 rows of the pixels of g
  const int patch_y = patch / 3;                   // 0 .. 1
  const int patch_x = patch - patch_y * 3;         // 0 .. 2

  const uint32_t shared_base = (uint32_t)__cvta_generic_to_shared(cv_shared);

  auto load_stage = [&](int k, int slot) {
    const int q = tid & 3;
    const int p0 = tid >> 2;                       // 0 .. 95
    const int c = k * 16 + q * 4;
    const bool channel_ok = c < C;
    const uint32_t to = shared_base + slot * CV_STAGE + (q >> 1) * CV_PLANE + (q & 1) * 16 + p0 * 32;
#pragma unroll
    for (int i = 0; i < 7; ++i) {
      const int p = p0 + 96 * i;
      const int gy = p / CV_GW;
      const int gx = p - gy * CV_GW;
      const int yy = y0 - 8 + gy;
      const int xx = x0 - 8 + gx;
      const bool ok = channel_ok && yy >= 0 && yy < H && xx >= 0 && xx < W;
      const float* from = ok ? g + ((yy * W + xx) * C + c) : g;
      cv_copy(to + i * (96 * 32), from, ok ? 16 : 0);
    }
    {
      const int fy = p0 / 12;
      const int fx = p0 - fy * 12;
      const int yy = y0 + fy;
      const int xx = x0 + fx;
      const bool ok = channel_ok && yy < H && xx < W;
      const float* from = ok ? f + ((yy * W + xx) * C + c) : f;
      cv_copy(to + CV_GPIX * 32, from, ok ? 16 : 0);
    }
  };

  float acc[5][5][4];
#pragma unroll
  for (int a = 0; a < 5; ++a)
#pragma unroll
    for (int b = 0; b < 5; ++b)
#pragma unroll
      for (int c = 0; c < 4; ++c) acc[a][b][c] = 0.0f;

  const int steps = (C + 15) / 16;
  // bytes from the begin of a plane to what this lane reads
  const int a_at = (CV_GPIX + (patch_y * 4 + (gid >> 2)) * 12 + patch_x * 4 + (gid & 3)) * 32 + tig * 8;
  const int b_at = ((patch_y * 4 + half * 10 + (gid >> 2)) * CV_GW + patch_x * 4 + (gid & 3)) * 32 + tig * 8;

  load_stage(0, 0);
  asm volatile("cp.async.commit_group;" ::: "memory");
  if (steps > 1) load_stage(1, 1);
  asm volatile("cp.async.commit_group;" ::: "memory");

  int slot = 0;
#pragma unroll 1
  for (int k = 0; k < steps; ++k) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    int next = slot + 2;
    if (next >= 3) next -= 3;
    if (k + 2 < steps) load_stage(k + 2, next);
    asm volatile("cp.async.commit_group;" ::: "memory");

#pragma unroll 1
    for (int plane = 0; plane < 2; ++plane) {
      const unsigned char* base = cv_shared + slot * CV_STAGE + plane * CV_PLANE;
      const float2 upper = *reinterpret_cast<const float2*>(base + a_at);
      const float2 lower = *reinterpret_cast<const float2*>(base + a_at + 24 * 32);
      uint32_t ah[4], al[4];
      cv_split(upper.x, ah[0], al[0]);
      cv_split(lower.x, ah[1], al[1]);
      cv_split(upper.y, ah[2], al[2]);
      cv_split(lower.y, ah[3], al[3]);
#pragma unroll
      for (int ty = 0; ty < 5; ++ty) {
        uint32_t bh[5][2], bl[5][2];
#pragma unroll
        for (int tx = 0; tx < 5; ++tx) {
          const float2 v = *reinterpret_cast<const float2*>(base + b_at + (ty * 2 * CV_GW + tx * 4) * 32);
          cv_split(v.x, bh[tx][0], bl[tx][0]);
          cv_split(v.y, bh[tx][1], bl[tx][1]);
        }
#pragma unroll
        for (int tx = 0; tx < 5; ++tx) cv_mma(acc[ty][tx], ah, bl[tx]);
#pragma unroll
        for (int tx = 0; tx < 5; ++tx) cv_mma(acc[ty][tx], al, bh[tx]);
#pragma unroll
        for (int tx = 0; tx < 5; ++tx) cv_mma(acc[ty][tx], ah, bh[tx]);
      }
    }
    slot = slot + 1;
    if (slot >= 3) slot = 0;
  }

  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();

  // results by displacement into shared memory
  float* results = reinterpret_cast<float*>(cv_shared);
#pragma unroll
  for (int ty = 0; ty < 5; ++ty) {
#pragma unroll
    for (int tx = 0; tx < 5; ++tx) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int m = gid + (e >> 1) * 8;
        const int n = tig * 2 + (e & 1);
        const int fx = m & 3;
        const int fy = m >> 2;
        const int gx = tx * 4 + (n & 3);
        const int gy = half * 10 + ty * 2 + (n >> 2);
        const int dx = gx - fx;
        const int dy = gy - fy;
        if (dx >= 0 && dx <= 16 && dy >= 0 && dy <= 16) {
          results[(dy * 17 + dx) * CV_PITCH + (patch_y * 4 + fy) * 12 + patch_x * 4 + fx] = acc[ty][tx][e];
        }
      }
    }
  }
  __syncthreads();

  // and from there out, 4 pixels at once
  const bool wide = (W & 3) == 0;
  for (int e = tid; e < 289 * 24; e += 384) {
    const int d = e / 24;
    const int r = e - d * 24;
    const int fy = r / 3;
    const int q = r - fy * 3;
    const int dy = d / 17;
    const int dx = d - dy * 17;
    const int y = y0 + fy;
    const int x = x0 + q * 4;
    if (y < H && x < W) {
      float4 v = *reinterpret_cast<const float4*>(results + d * CV_PITCH + fy * 12 + q * 4);
      const int there_y = y + dy - 8;
      const int there_x = x + dx - 8;
      const bool row_ok = there_y >= 0 && there_y < H;
      if (!(row_ok && there_x >= 0 && there_x < W)) v.x = 0.0f;
      if (!(row_ok && there_x + 1 >= 0 && there_x + 1 < W)) v.y = 0.0f;
      if (!(row_ok && there_x + 2 >= 0 && there_x + 2 < W)) v.z = 0.0f;
      if (!(row_ok && there_x + 3 >= 0 && there_x + 3 < W)) v.w = 0.0f;
      float* to = out + ((size_t)d * H + y) * W + x;
      if (wide) {
        *reinterpret_cast<float4*>(to) = v;
      } else {
        to[0] = v.x;
        if (x + 1 < W) to[1] = v.y;
        if (x + 2 < W) to[2] = v.z;
        if (x + 3 < W) to[3] = v.w;
      }
    }
  }
}
