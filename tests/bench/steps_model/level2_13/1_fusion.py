import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_P": 32}, num_warps=4),
        triton.Config({"BLOCK_P": 64}, num_warps=4),
        triton.Config({"BLOCK_P": 64}, num_warps=8),
        triton.Config({"BLOCK_P": 128}, num_warps=8),
        triton.Config({"BLOCK_P": 128}, num_warps=16),
    ],
    key=["HW", "C", "D"],
)
@triton.jit
def mean_bias_softmax_tanh_scale(
    y,
    bias,
    out,
    HW,
    scale,
    C: tl.constexpr,
    D: tl.constexpr,
    UNROLL: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    blocks = tl.cdiv(HW, BLOCK_P)
    batch = pid // blocks
    start = (pid % blocks) * BLOCK_P

    channel = tl.arange(0, BLOCK_C)
    at = start + tl.arange(0, BLOCK_P)
    channel_ok = channel < C
    mask = channel_ok[:, None] & (at < HW)[None, :]

    # sum over the depth, all channels of the block of positions in registers
    source = y + batch * C * D * HW + channel[:, None].to(tl.int64) * D * HW + at[None, :]
    total = tl.zeros((BLOCK_C, BLOCK_P), dtype=tl.float32)
    for d in range(0, D, UNROLL):
        for u in tl.static_range(UNROLL):
            total += tl.load(source + u * HW, mask=mask, other=0.0, eviction_policy="evict_first")
        source += UNROLL * HW

    shift = tl.load(bias + channel, mask=channel_ok, other=0.0)
    value = total / D + shift[:, None]
    value = tl.where(channel_ok[:, None], value, float("-inf"))

    # softmax over the channels
    top = tl.max(value, axis=0)
    e = tl.exp(value - top[None, :])
    p = e / tl.sum(e, axis=0)[None, :]

    result = libdevice.tanh(p) * scale
    target = out + batch * C * HW + channel[:, None].to(tl.int64) * HW + at[None, :]
    tl.store(target, result, mask=mask)


class ModelNew(nn.Module):
    """
    Model that performs a series of operations:
    1. Transposed 3D convolution
    2. Mean pooling (across depth), addition, softmax (across channels),
       tanh and scaling, in one kernel
    """
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, scaling_factor):
        super(ModelNew, self).__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.bias = nn.Parameter(torch.randn(1, out_channels, 1, 1, 1))  # Broadcastable bias over channels
        self.scaling_factor = scaling_factor

    def forward(self, x):
        y = self.conv_transpose(x).contiguous()               # (B, C, D, H, W)
        B, C, D, H, W = y.shape
        HW = H * W
        out = torch.empty((B, C, 1, H, W), device=y.device, dtype=y.dtype)

        if D % 4 == 0:
            unroll = 4
        elif D % 2 == 0:
            unroll = 2
        else:
            unroll = 1

        grid = lambda meta: (B * triton.cdiv(HW, meta["BLOCK_P"]),)
        mean_bias_softmax_tanh_scale[grid](
            y,
            self.bias,
            out,
            HW,
            float(self.scaling_factor),
            C=C,
            D=D,
            UNROLL=unroll,
            BLOCK_C=triton.next_power_of_2(C),
        )
        return out
