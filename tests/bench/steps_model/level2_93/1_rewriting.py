import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 1024}, num_warps=4),
        triton.Config({"BLOCK": 2048}, num_warps=4),
        triton.Config({"BLOCK": 2048}, num_warps=8),
        triton.Config({"BLOCK": 4096}, num_warps=4),
        triton.Config({"BLOCK": 4096}, num_warps=8),
        triton.Config({"BLOCK": 8192}, num_warps=8),
    ],
    key=["total"],
)
@triton.jit
def bias_add_min_gelu_mul(y, bias, out, total, add_value, multiply_value,
                          C: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr):
    # from the end: what the convolution wrote last is still in L2
    pid = tl.num_programs(0) - 1 - tl.program_id(0)
    start = pid.to(tl.int64) * BLOCK
    lane = tl.arange(0, BLOCK)
    offs = start + lane
    inside = offs < total

    v = tl.load(y + offs, mask=inside, other=0.0)

    if BLOCK <= P:
        # a block touches at most two planes, so two channels
        plane = start // P
        left = ((plane + 1) * P - start).to(tl.int32)
        c0 = (plane % C).to(tl.int32)
        c1 = ((plane + 1) % C).to(tl.int32)
        b0 = tl.load(bias + c0)
        b1 = tl.load(bias + c1)
        b = tl.where(lane < left, b0, b1)
    else:
        c = (offs // P) % C
        b = tl.load(bias + c, mask=inside, other=0.0)

    # the same roundings in the same order as the separate operators
    v = v + b
    v = v + add_value
    v = tl.where(v > 0.0, 0.0, v)  # a NaN stays
    e = tl.math.erf(v * 0.7071067811865476)
    v = (v * 0.5) * (1.0 + e)
    v = v * multiply_value

    tl.store(out + offs, v, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, add_value, multiply_value):
        super(ModelNew, self).__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride=stride)
        self.add_value = add_value
        self.multiply_value = multiply_value

    def forward(self, x):
        conv = self.conv_transpose
        # without the bias: the library would add it in a pass of its own
        y = F.conv_transpose2d(
            x, conv.weight, None, conv.stride, conv.padding,
            conv.output_padding, conv.groups, conv.dilation,
        )
        y = y.contiguous()
        N, C, OH, OW = y.shape
        out = torch.empty((N, C, OH, OW), dtype=y.dtype, device=y.device)
        total = N * C * OH * OW

        grid = lambda meta: (triton.cdiv(total, meta["BLOCK"]),)
        bias_add_min_gelu_mul[grid](
            y, conv.bias, out, total,
            float(self.add_value), float(self.multiply_value),
            C=C, P=OH * OW,
        )
        return out
