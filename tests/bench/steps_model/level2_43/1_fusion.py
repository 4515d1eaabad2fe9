import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_W": 64}, num_warps=8),
        triton.Config({"BLOCK_W": 64}, num_warps=16),
        triton.Config({"BLOCK_W": 32}, num_warps=4),
        triton.Config({"BLOCK_W": 32}, num_warps=8),
        triton.Config({"BLOCK_W": 16}, num_warps=4),
        triton.Config({"BLOCK_W": 16}, num_warps=8),
    ],
    key=["C", "PW"],
)
@triton.jit
def pool_logsumexp_relu(x, out, C, D, H, W, PD, PH, PW,
                        BLOCK_C: tl.constexpr, BLOCK_W: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    pieces = tl.cdiv(PW, BLOCK_W)
    row = pid // pieces
    piece = (pid % pieces).to(tl.int32)
    ph = row % PH
    pd = (row // PH) % PD
    n = row // (PH * PD)

    volume = D * H * W
    base = x + n * C * volume + (2 * pd * H + 2 * ph) * W

    c = tl.arange(0, BLOCK_C)
    col = piece * (2 * BLOCK_W) + tl.arange(0, 2 * BLOCK_W)
    at = base + (c.to(tl.int64) * volume)[:, None] + col[None, :]
    inside = (c[:, None] < C) & (col[None, :] < 2 * PW)

    v00 = tl.load(at, mask=inside, other=float("-inf"))
    v01 = tl.load(at + W, mask=inside, other=float("-inf"))
    v10 = tl.load(at + H * W, mask=inside, other=float("-inf"))
    v11 = tl.load(at + H * W + W, mask=inside, other=float("-inf"))
    v0 = tl.maximum(v00, v01, propagate_nan=tl.PropagateNan.ALL)
    v1 = tl.maximum(v10, v11, propagate_nan=tl.PropagateNan.ALL)
    v = tl.maximum(v0, v1, propagate_nan=tl.PropagateNan.ALL)

    even, odd = tl.split(tl.reshape(v, (BLOCK_C, BLOCK_W, 2)))
    pooled = tl.maximum(even, odd, propagate_nan=tl.PropagateNan.ALL)

    top = tl.max(pooled, axis=0)
    top = tl.where(tl.abs(top) == float("inf"), 0.0, top)
    total = tl.sum(tl.exp(pooled - top[None, :]), axis=0)
    result = tl.log(total) + top
    result = tl.maximum(result, 0.0, propagate_nan=tl.PropagateNan.ALL)

    w = piece * BLOCK_W + tl.arange(0, BLOCK_W)
    tl.store(out + row * PW + w, result, mask=w < PW)


class ModelNew(nn.Module):
    """
    Model that performs a 3D convolution, max pooling, log sum exp, and ReLU activation.
    """
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.max_pool = nn.MaxPool3d(kernel_size=2, stride=2)

    def forward(self, x):
        """
        Args:
            x: Input tensor of shape (batch_size, in_channels, depth, height, width)
        Returns:
            Output tensor of shape (batch_size, 1, depth', height', width')
        """
        x = self.conv(x).contiguous()
        N, C, D, H, W = x.shape
        PD, PH, PW = D // 2, H // 2, W // 2
        out = torch.empty((N, 1, PD, PH, PW), device=x.device, dtype=x.dtype)
        grid = lambda meta: (N * PD * PH * triton.cdiv(PW, meta["BLOCK_W"]),)
        pool_logsumexp_relu[grid](
            x, out, C, D, H, W, PD, PH, PW,
            BLOCK_C=triton.next_power_of_2(C),
        )
        return out
