import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_P": 64, "BLOCK_C": 64}, num_warps=4),
        triton.Config({"BLOCK_P": 64, "BLOCK_C": 64}, num_warps=8),
        triton.Config({"BLOCK_P": 128, "BLOCK_C": 64}, num_warps=8),
        triton.Config({"BLOCK_P": 128, "BLOCK_C": 32}, num_warps=4),
    ],
    key=["C", "P"],
)
@triton.jit
def nchw_to_nhwc(x, out, C: tl.constexpr, P: tl.constexpr,
                 BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr):
    NP: tl.constexpr = (P + BLOCK_P - 1) // BLOCK_P
    NC: tl.constexpr = (C + BLOCK_C - 1) // BLOCK_C
    pid = tl.program_id(0)
    cb = pid % NC
    t = pid // NC
    pb = t % NP
    n = t // NP
    base = n.to(tl.int64) * (C * P)

    p = pb * BLOCK_P + tl.arange(0, BLOCK_P)
    c = cb * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = (p[:, None] < P) & (c[None, :] < C)

    v = tl.load(x + base + (c[None, :] * P + p[:, None]), mask=inside, other=0.0)
    tl.store(out + base + (p[:, None] * C + c[None, :]), v, mask=inside)


@triton.jit
def gelu_erf(v):
    e = tl.math.erf(v * 0.7071067811865476)
    return (v * 0.5) * (1.0 + e)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_P": 64, "BLOCK_C": 128, "SKIP": True}, num_warps=8),
        triton.Config({"BLOCK_P": 64, "BLOCK_C": 128, "SKIP": False}, num_warps=8),
        triton.Config({"BLOCK_P": 128, "BLOCK_C": 64, "SKIP": True}, num_warps=8),
        triton.Config({"BLOCK_P": 128, "BLOCK_C": 64, "SKIP": False}, num_warps=8),
        triton.Config({"BLOCK_P": 64, "BLOCK_C": 64, "SKIP": True}, num_warps=4),
        triton.Config({"BLOCK_P": 64, "BLOCK_C": 64, "SKIP": False}, num_warps=4),
        triton.Config({"BLOCK_P": 32, "BLOCK_C": 128, "SKIP": True}, num_warps=4),
        triton.Config({"BLOCK_P": 128, "BLOCK_C": 32, "SKIP": True}, num_warps=4),
    ],
    key=["C", "P"],
)
@triton.jit
def bias_add_min_gelu_mul_nchw(y, bias, out, add_value, multiply_value,
                               C: tl.constexpr, P: tl.constexpr,
                               BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
                               SKIP: tl.constexpr):
    # y is [N, P, C], out is [N, C, P]
    NP: tl.constexpr = (P + BLOCK_P - 1) // BLOCK_P
    NC: tl.constexpr = (C + BLOCK_C - 1) // BLOCK_C
    # from the end: what the convolution wrote last is still in L2
    pid = tl.num_programs(0) - 1 - tl.program_id(0)
    cb = pid % NC
    t = pid // NC
    pb = t % NP
    n = t // NP
    base = n.to(tl.int64) * (C * P)

    p = pb * BLOCK_P + tl.arange(0, BLOCK_P)
    c = cb * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = (p[:, None] < P) & (c[None, :] < C)

    v = tl.load(y + base + (p[:, None] * C + c[None, :]), mask=inside, other=0.0,
                eviction_policy="evict_first")
    b = tl.load(bias + c, mask=c < C, other=0.0)

    # the same roundings in the same order as the separate operators
    v = v + b[None, :]
    v = v + add_value
    v = tl.where(v > 0.0, 0.0, v)  # a NaN stays
    if SKIP:
        # the GELU of a zero is that zero: only a tile with something else needs erf
        # (a NaN differs from zero, so it takes the branch)
        if tl.max((v != 0.0).to(tl.int32)) > 0:
            v = gelu_erf(v)
    else:
        v = gelu_erf(v)
    v = v * multiply_value

    tl.store(out + base + (c[None, :] * P + p[:, None]), v, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, add_value, multiply_value):
        super(ModelNew, self).__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride=stride)
        self.add_value = add_value
        self.multiply_value = multiply_value
        # same values and shape, other strides: the layout the library computes in
        self.conv_transpose = self.conv_transpose.to(memory_format=torch.channels_last)

    def forward(self, x):
        conv = self.conv_transpose
        x = x.contiguous()
        N, CI, H, W = x.shape
        xt = torch.empty((N, CI, H, W), dtype=x.dtype, device=x.device,
                         memory_format=torch.channels_last)
        PI = H * W
        grid_in = lambda meta: (
            N * triton.cdiv(PI, meta["BLOCK_P"]) * triton.cdiv(CI, meta["BLOCK_C"]),
        )
        nchw_to_nhwc[grid_in](x, xt, C=CI, P=PI)

        # without the bias: the library would add it in a pass of its own
        y = F.conv_transpose2d(
            xt, conv.weight, None, conv.stride, conv.padding,
            conv.output_padding, conv.groups, conv.dilation,
        )
        y = y.contiguous(memory_format=torch.channels_last)
        N, C, OH, OW = y.shape
        out = torch.empty((N, C, OH, OW), dtype=y.dtype, device=y.device)
        P = OH * OW

        grid_out = lambda meta: (
            N * triton.cdiv(P, meta["BLOCK_P"]) * triton.cdiv(C, meta["BLOCK_C"]),
        )
        bias_add_min_gelu_mul_nchw[grid_out](
            y, conv.bias, out,
            float(self.add_value), float(self.multiply_value),
            C=C, P=P,
        )
        return out
