import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def put_split(dst, v, LOW: tl.constexpr, inside):
    # v = high + low up to about 2^-17 of v; both have the exponent range of f32
    high = v.to(tl.bfloat16)
    back = high.to(tl.float32)
    rest = tl.where(tl.abs(back) == float("inf"), 0.0, v - back)
    tl.store(dst, high, mask=inside)
    tl.store(dst + LOW, rest.to(tl.bfloat16), mask=inside)


@triton.autotune(
    configs=[
        triton.Config({"BP": 128, "U": 3}, num_warps=4),
        triton.Config({"BP": 128, "U": 6}, num_warps=4),
        triton.Config({"BP": 128, "U": 5}, num_warps=8),
        triton.Config({"BP": 128, "U": 10}, num_warps=8),
        triton.Config({"BP": 64, "U": 6}, num_warps=4),
        triton.Config({"BP": 64, "U": 10}, num_warps=4),
        triton.Config({"BP": 256, "U": 3}, num_warps=8),
    ],
    key=["D", "P"],
)
@triton.jit
def depth_sums(x, s, D: tl.constexpr, P: tl.constexpr, C: tl.constexpr,
               BP: tl.constexpr, U: tl.constexpr):
    TILES: tl.constexpr = (P + BP - 1) // BP
    pid = tl.program_id(0)
    b = (pid // TILES).to(tl.int64)
    pix = (pid % TILES) * BP + tl.arange(0, BP)
    c = tl.arange(0, C)
    inside = (pix < P)[None, :]
    src = x + b * (C * D * P) + (c[:, None] * (D * P) + pix[None, :])

    first = tl.load(src, mask=inside, other=0.0, eviction_policy="evict_first")
    last = tl.load(src + (D - 1) * P, mask=inside, other=0.0, eviction_policy="evict_first")
    mid = tl.zeros((C, BP), dtype=tl.float32)
    for d0 in range(1, D - 1, U):
        for u in tl.static_range(U):
            d = d0 + u
            mid += tl.load(src + d * P, mask=inside & (d < D - 1), other=0.0,
                           eviction_policy="evict_first")

    # one pixel: high parts of (inner sum, first, last), then their low parts
    dst = s + b * (P * 6 * C) + (pix[None, :] * (6 * C) + c[:, None])
    put_split(dst, mid, 3 * C, inside)
    put_split(dst + C, first, 3 * C, inside)
    put_split(dst + 2 * C, last, 3 * C, inside)


@triton.jit
def dot_low(acc, a, b, u, v):
    acc = tl.dot(a, v, acc)
    return tl.dot(b, u, acc)


@triton.jit
def dot_all(acc, a, b, u, v):
    acc = tl.dot(a, v, acc)
    acc = tl.dot(b, u, acc)
    return tl.dot(a, u, acc)


@triton.jit
def finish(acc, shift, inv_d, scale):
    z = acc * inv_d + shift[None, :]
    z = z - tl.max(z, 1)[:, None]
    e = tl.exp(z)
    r = 1.0 / tl.sum(e, 1)
    p = e * r[:, None]
    # tanh on [0, 1]: continued fraction, exact to f32 rounding there
    t = p * p
    num = ((t + 378.0) * t + 17325.0) * t + 135135.0
    den = ((28.0 * t + 3150.0) * t + 62370.0) * t + 135135.0
    return p * (num / den) * scale


@triton.autotune(
    configs=[
        triton.Config({"BM": 64}, num_warps=4, num_stages=2),
        triton.Config({"BM": 64}, num_warps=4, num_stages=3),
        triton.Config({"BM": 64}, num_warps=4, num_stages=4),
        triton.Config({"BM": 128}, num_warps=8, num_stages=2),
        triton.Config({"BM": 128}, num_warps=8, num_stages=3),
    ],
    key=["H", "W"],
)
@triton.jit
def conv_softmax(s, taps, shift_ptr, out, inv_d, scale,
                 H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, N: tl.constexpr,
                 BK: tl.constexpr, BM: tl.constexpr):
    G: tl.constexpr = 6 * C          # values of one pixel: 3 * C high parts, 3 * C low parts
    LOW: tl.constexpr = 3 * C
    KT: tl.constexpr = 9 * C         # three neighbouring pixels times 3 * C
    CH: tl.constexpr = (3 * C) // BK  # chunks of one pixel
    ROW: tl.constexpr = W * G
    TW: tl.constexpr = (W + BM - 1) // BM
    TH: tl.constexpr = (H + 3) // 4
    TAP: tl.constexpr = N * KT

    # last written first: those sums are still in L2
    pid = tl.num_programs(0) - 1 - tl.program_id(0)
    tw = pid % TW
    th = (pid // TW) % TH
    b = (pid // (TW * TH)).to(tl.int64)
    h0 = th * 4

    m = tw * BM + tl.arange(0, BM)
    n = tl.arange(0, N)
    k = tl.arange(0, BK)
    base = s + (b * H + (h0 - 1)) * ROW

    acc0 = tl.zeros((BM, N), dtype=tl.float32)
    acc1 = tl.zeros((BM, N), dtype=tl.float32)
    acc2 = tl.zeros((BM, N), dtype=tl.float32)
    acc3 = tl.zeros((BM, N), dtype=tl.float32)

    for j in range(0, 3 * CH):
        px = m + (j // CH - 1)
        inside = ((px >= 0) & (px < W))[:, None]
        p = base + (px[:, None] * G + ((j % CH) * BK + k)[None, :])
        in0 = inside & (h0 > 0)
        in2 = inside & (h0 + 1 < H)
        in3 = inside & (h0 + 2 < H)
        in4 = inside & (h0 + 3 < H)
        in5 = inside & (h0 + 4 < H)

        a0 = tl.load(p, mask=in0, other=0.0)
        a1 = tl.load(p + ROW, mask=inside, other=0.0)
        a2 = tl.load(p + 2 * ROW, mask=in2, other=0.0)
        a3 = tl.load(p + 3 * ROW, mask=in3, other=0.0)
        a4 = tl.load(p + 4 * ROW, mask=in4, other=0.0)
        a5 = tl.load(p + 5 * ROW, mask=in5, other=0.0)
        b0 = tl.load(p + LOW, mask=in0, other=0.0)
        b1 = tl.load(p + (ROW + LOW), mask=inside, other=0.0)
        b2 = tl.load(p + (2 * ROW + LOW), mask=in2, other=0.0)
        b3 = tl.load(p + (3 * ROW + LOW), mask=in3, other=0.0)
        b4 = tl.load(p + (4 * ROW + LOW), mask=in4, other=0.0)
        b5 = tl.load(p + (5 * ROW + LOW), mask=in5, other=0.0)

        q = taps + (n[None, :] * KT + (j * BK + k)[:, None])
        u0 = tl.load(q)
        u1 = tl.load(q + TAP)
        u2 = tl.load(q + 2 * TAP)
        v0 = tl.load(q + 3 * TAP)
        v1 = tl.load(q + 4 * TAP)
        v2 = tl.load(q + 5 * TAP)

        acc0 = dot_all(acc0, a0, b0, u0, v0)
        acc1 = dot_all(acc1, a1, b1, u0, v0)
        acc2 = dot_all(acc2, a2, b2, u0, v0)
        acc3 = dot_all(acc3, a3, b3, u0, v0)
        acc0 = dot_all(acc0, a1, b1, u1, v1)
        acc1 = dot_all(acc1, a2, b2, u1, v1)
        acc2 = dot_all(acc2, a3, b3, u1, v1)
        acc3 = dot_all(acc3, a4, b4, u1, v1)
        acc0 = dot_low(acc0, a2, b2, u2, v2)
        acc1 = dot_low(acc1, a3, b3, u2, v2)
        acc2 = dot_low(acc2, a4, b4, u2, v2)
        acc3 = dot_low(acc3, a5, b5, u2, v2)
        acc0 = tl.dot(a2, u2, acc0)
        acc1 = tl.dot(a3, u2, acc1)
        acc2 = tl.dot(a4, u2, acc2)
        acc3 = tl.dot(a5, u2, acc3)

    shift = tl.load(shift_ptr + n)
    dst = out + (b * (N * H * W) + h0 * W) + (n[None, :] * (H * W) + m[:, None])
    cols = (m < W)[:, None]
    tl.store(dst, finish(acc0, shift, inv_d, scale), mask=cols)
    tl.store(dst + W, finish(acc1, shift, inv_d, scale), mask=cols & (h0 + 1 < H))
    tl.store(dst + 2 * W, finish(acc2, shift, inv_d, scale), mask=cols & (h0 + 2 < H))
    tl.store(dst + 3 * W, finish(acc3, shift, inv_d, scale), mask=cols & (h0 + 3 < H))


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, scaling_factor):
        super(ModelNew, self).__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.bias = nn.Parameter(torch.randn(1, out_channels, 1, 1, 1))
        self.scaling_factor = scaling_factor

        conv = self.conv_transpose
        self.fast = (
            tuple(conv.kernel_size) == (3, 3, 3)
            and tuple(conv.stride) == (1, 1, 1)
            and tuple(conv.padding) == (1, 1, 1)
            and in_channels in (16, 32, 64)
            and out_channels in (16, 32, 64)
        )
        if self.fast:
            with torch.no_grad():
                w = conv.weight.detach()                       # (ci, co, kd, kh, kw)
                d0, d1, d2 = w.unbind(2)
                # inner planes meet all three taps in depth; the first plane misses tap 0,
                # the last plane misses tap 2
                g = torch.stack([d0 + d1 + d2, d1 + d2, d0 + d1], 0)   # (g, ci, co, kh, kw)
                g = g.flip(3, 4).permute(3, 2, 4, 0, 1).contiguous()   # (kh, co, kw, g, ci)
                g = g.view(3, out_channels, 9 * in_channels)
                high = g.to(torch.bfloat16)
                back = high.to(torch.float32)
                rest = torch.where(torch.isinf(back), torch.zeros_like(g), g - back)
                low = rest.to(torch.bfloat16)
                # kept as bits, so that no change of the module's type touches them
                taps = torch.stack([high, low], 0).contiguous().view(torch.int16)
                shift = (conv.bias.detach() + self.bias.detach().reshape(-1)).contiguous()
            self.register_buffer("taps", taps, persistent=False)
            self.register_buffer("shift", shift, persistent=False)

    def forward(self, x):
        B, C, D, H, W = x.shape
        if not (self.fast and D >= 2 and x.dtype == torch.float32 and C * D * H * W < 2 ** 31):
            x = self.conv_transpose(x)
            x = x.mean(dim=2, keepdim=True)
            x = torch.softmax(x + self.bias, dim=1)
            return torch.tanh(x) * self.scaling_factor

        x = x.contiguous()
        N = self.shift.shape[0]
        P = H * W
        sums = torch.empty((B, H, W, 6 * C), device=x.device, dtype=torch.bfloat16)
        out = torch.empty((B, N, 1, H, W), device=x.device, dtype=torch.float32)

        depth_sums[lambda meta: (B * triton.cdiv(P, meta["BP"]),)](
            x, sums, D=D, P=P, C=C,
        )
        conv_softmax[lambda meta: (B * triton.cdiv(H, 4) * triton.cdiv(W, meta["BM"]),)](
            sums, self.taps.view(torch.bfloat16), self.shift, out, 1.0 / D, float(self.scaling_factor),
            H=H, W=W, C=C, N=N, BK=16,
        )
        return out
