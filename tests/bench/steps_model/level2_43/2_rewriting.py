import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def nan_max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def pad_channels_last(x, out, C, D, H, W, DP, HP, WP, P0, P1, P2, total,
                      CP: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    p = pid * BLOCK + lane
    w = p % WP - P2
    r = p // WP
    h = r % HP - P1
    r = r // HP
    d = r % DP - P0
    n = r // DP
    inside = (p < total) & (w >= 0) & (w < W) & (h >= 0) & (h < H) & (d >= 0) & (d < D)

    c = tl.arange(0, CP)
    volume = tl.cast(D, tl.int64) * H * W
    where_in = n.to(tl.int64) * C * volume + (d.to(tl.int64) * H + h) * W + w
    at = x + (c.to(tl.int64) * volume)[:, None] + where_in[None, :]
    v = tl.load(at, mask=(c[:, None] < C) & inside[None, :], other=0.0)

    # round to the nearest TF32 value
    bits = v.to(tl.int32, bitcast=True)
    rounded = ((bits + 4096) & -8192).to(tl.float32, bitcast=True)
    v = tl.where(v == v, rounded, v)

    t = tl.trans(v)
    start = pid.to(tl.int64) * (BLOCK * CP)
    to = out + start + lane[:, None] * CP + c[None, :]
    tl.store(to, t, mask=(p < total)[:, None] & (c[None, :] < CP))


@triton.autotune(
    configs=[
        triton.Config({"BP": 32, "TWO": True}, num_warps=8, num_stages=2),
        triton.Config({"BP": 32, "TWO": True}, num_warps=4, num_stages=2),
        triton.Config({"BP": 16, "TWO": True}, num_warps=4, num_stages=2),
        triton.Config({"BP": 16, "TWO": True}, num_warps=4, num_stages=3),
        triton.Config({"BP": 32, "TWO": False}, num_warps=8, num_stages=4),
        triton.Config({"BP": 32, "TWO": False}, num_warps=8, num_stages=2),
        triton.Config({"BP": 16, "TWO": False}, num_warps=4, num_stages=4),
        triton.Config({"BP": 16, "TWO": False}, num_warps=8, num_stages=3),
    ],
    key=["OC", "PD", "PH", "PW"],
)
@triton.jit
def conv_pool_logsumexp_relu(xp, wt, bias, out, OC, DP, HP, WP, PD, PH, PW,
                             CP: tl.constexpr, BN: tl.constexpr,
                             BP: tl.constexpr, TWO: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    pieces = tl.cdiv(PW, BP)
    row = pid // pieces
    piece = (pid % pieces).to(tl.int32)
    ph = row % PH
    pd = (row // PH) % PD
    n = row // (PH * PD)

    # first padded row of the window
    base = ((n * DP + 2 * pd) * HP + 2 * ph) * WP

    k = tl.arange(0, CP)
    c = tl.arange(0, BN)
    b_at = wt + c[None, :] * CP + k[:, None]
    add = tl.load(bias + c, mask=c < OC, other=0.0)

    if TWO:
        # rows of the tile: (depth of the window, column); one accumulator per height
        m = tl.arange(0, 4 * BP)
        col = piece * (2 * BP) + m % (2 * BP)
        col = tl.minimum(col, 2 * PW - 1)
        pix = (m // (2 * BP)) * (HP * WP) + col
        a_at = xp + base * CP + pix[:, None] * CP + k[None, :]
        acc0 = tl.zeros((4 * BP, BN), dtype=tl.float32)
        acc1 = tl.zeros((4 * BP, BN), dtype=tl.float32)
        for t in range(0, 9):
            kd = t // 3
            kw = t % 3
            ap = a_at + (kd * HP * WP + kw) * CP
            bp = b_at + t * (3 * BN * CP)
            a0 = tl.load(ap)
            a1 = tl.load(ap + WP * CP)
            a2 = tl.load(ap + 2 * WP * CP)
            a3 = tl.load(ap + 3 * WP * CP)
            b0 = tl.load(bp)
            b1 = tl.load(bp + BN * CP)
            b2 = tl.load(bp + 2 * BN * CP)
            acc0 = tl.dot(a0, b0, acc0, input_precision="tf32")
            acc1 = tl.dot(a1, b0, acc1, input_precision="tf32")
            acc0 = tl.dot(a1, b1, acc0, input_precision="tf32")
            acc1 = tl.dot(a2, b1, acc1, input_precision="tf32")
            acc0 = tl.dot(a2, b2, acc0, input_precision="tf32")
            acc1 = tl.dot(a3, b2, acc1, input_precision="tf32")
        v = tl.maximum(acc0 + add[None, :], acc1 + add[None, :],
                       propagate_nan=tl.PropagateNan.ALL)
        windows = tl.reshape(v, (2, BP, 2, BN))
    else:
        # rows of the tile: (depth, height of the window, column)
        m = tl.arange(0, 8 * BP)
        col = piece * (2 * BP) + m % (2 * BP)
        col = tl.minimum(col, 2 * PW - 1)
        sub = m // (2 * BP)
        pix = ((sub // 2) * HP + sub % 2) * WP + col
        a_at = xp + base * CP + pix[:, None] * CP + k[None, :]
        acc = tl.zeros((8 * BP, BN), dtype=tl.float32)
        for t in range(0, 27):
            kd = t // 9
            kw = (t // 3) % 3
            kh = t % 3
            a = tl.load(a_at + ((kd * HP + kh) * WP + kw) * CP)
            b = tl.load(b_at + t * (BN * CP))
            acc = tl.dot(a, b, acc, input_precision="tf32")
        windows = tl.reshape(acc + add[None, :], (4, BP, 2, BN))

    pooled = tl.reduce(windows, 0, nan_max)
    pooled = tl.reduce(pooled, 1, nan_max)
    pooled = tl.where(c[None, :] < OC, pooled, float("-inf"))

    top = tl.max(pooled, axis=1)
    top = tl.where(tl.abs(top) == float("inf"), 0.0, top)
    total = tl.sum(tl.exp(pooled - top[:, None]), axis=1)
    result = tl.log(total) + top
    result = tl.maximum(result, 0.0, propagate_nan=tl.PropagateNan.ALL)

    w = piece * BP + tl.arange(0, BP)
    tl.store(out + row * PW + w, result, mask=w < PW)


class ModelNew(nn.Module):
    """
    Model that performs a 3D convolution, max pooling, log sum exp, and ReLU activation.
    """
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.max_pool = nn.MaxPool3d(kernel_size=2, stride=2)
        assert tuple(self.conv.kernel_size) == (3, 3, 3)
        assert tuple(self.conv.stride) == (1, 1, 1)

        self.CP = max(16, triton.next_power_of_2(in_channels))
        self.BN = max(16, triton.next_power_of_2(out_channels))
        with torch.no_grad():
            # (kd, kw, kh, out, in), rounded to the nearest TF32 value
            w = self.conv.weight.detach().permute(2, 4, 3, 0, 1).contiguous()
            rounded = ((w.view(torch.int32) + 4096) & -8192).view(torch.float32)
            w = torch.where(torch.isfinite(w), rounded, w)
            wt = torch.zeros((3, 3, 3, self.BN, self.CP), device=w.device, dtype=w.dtype)
            wt[:, :, :, :out_channels, :in_channels] = w
        self.register_buffer("wt", wt, persistent=False)

    def forward(self, x):
        """
        Args:
            x: Input tensor of shape (batch_size, in_channels, depth, height, width)
        Returns:
            Output tensor of shape (batch_size, 1, depth', height', width')
        """
        x = x.contiguous()
        N, C, D, H, W = x.shape
        P0, P1, P2 = self.conv.padding
        DP, HP, WP = D + 2 * P0, H + 2 * P1, W + 2 * P2
        PD, PH, PW = (DP - 2) // 2, (HP - 2) // 2, (WP - 2) // 2
        OC = self.conv.out_channels

        total = N * DP * HP * WP
        xp = torch.empty((N, DP, HP, WP, self.CP), device=x.device, dtype=x.dtype)
        BLOCK = 128
        pad_channels_last[(triton.cdiv(total, BLOCK),)](
            x, xp, C, D, H, W, DP, HP, WP, P0, P1, P2, total,
            CP=self.CP, BLOCK=BLOCK, num_warps=4,
        )

        out = torch.empty((N, 1, PD, PH, PW), device=x.device, dtype=x.dtype)
        grid = lambda meta: (N * PD * PH * triton.cdiv(PW, meta["BP"]),)
        conv_pool_logsumexp_relu[grid](
            xp, self.wt, self.conv.bias, out, OC, DP, HP, WP, PD, PH, PW,
            CP=self.CP, BN=self.BN,
        )
        return out
