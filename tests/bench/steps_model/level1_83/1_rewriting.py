import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"STEPS": 1, "BLOCK": 512}, num_warps=4),
        triton.Config({"STEPS": 2, "BLOCK": 512}, num_warps=4),
        triton.Config({"STEPS": 3, "BLOCK": 512}, num_warps=4),
        triton.Config({"STEPS": 6, "BLOCK": 512}, num_warps=4),
        triton.Config({"STEPS": 1, "BLOCK": 256}, num_warps=2),
        triton.Config({"STEPS": 2, "BLOCK": 256}, num_warps=2),
        triton.Config({"STEPS": 3, "BLOCK": 256}, num_warps=2),
        triton.Config({"STEPS": 6, "BLOCK": 256}, num_warps=2),
    ],
    key=["C", "H", "W"],
)
@triton.jit
def column_conv3(x, weight, bias, out,
                 C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, HO: tl.constexpr,
                 HAS_BIAS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    ROWS: tl.constexpr = STEPS * 5
    TILES: tl.constexpr = (HO + ROWS - 1) // ROWS
    STRIPS: tl.constexpr = (W + BLOCK - 1) // BLOCK

    pid = tl.program_id(0)
    tile = pid % TILES
    rest = pid // TILES
    strip = rest % STRIPS
    plane = rest // STRIPS
    channel = plane % C

    cols = strip * BLOCK + tl.arange(0, BLOCK)
    cmask = cols < W
    row = tile * ROWS

    plane64 = plane.to(tl.int64)
    row64 = row.to(tl.int64)
    src = x + plane64 * (H * W) + row64 * W + cols
    dst = out + plane64 * (HO * W) + row64 * W + cols

    w0 = tl.load(weight + channel * 3)
    w1 = tl.load(weight + channel * 3 + 1)
    w2 = tl.load(weight + channel * 3 + 2)

    a = tl.load(src, mask=cmask & (row < H), other=0.0)
    b = tl.load(src + W, mask=cmask & (row + 1 < H), other=0.0)
    src += 2 * W

    for step in tl.static_range(STEPS):
        r = row + step * 5
        c = tl.load(src, mask=cmask & (r + 2 < H), other=0.0)
        d = tl.load(src + W, mask=cmask & (r + 3 < H), other=0.0)
        e = tl.load(src + 2 * W, mask=cmask & (r + 4 < H), other=0.0)
        f = tl.load(src + 3 * W, mask=cmask & (r + 5 < H), other=0.0)
        g = tl.load(src + 4 * W, mask=cmask & (r + 6 < H), other=0.0)

        o0 = a * w0 + b * w1 + c * w2
        o1 = b * w0 + c * w1 + d * w2
        o2 = c * w0 + d * w1 + e * w2
        o3 = d * w0 + e * w1 + f * w2
        o4 = e * w0 + f * w1 + g * w2
        if HAS_BIAS:
            shift = tl.load(bias + channel)
            o0 += shift
            o1 += shift
            o2 += shift
            o3 += shift
            o4 += shift

        tl.store(dst, o0, mask=cmask & (r < HO), cache_modifier=".cs")
        tl.store(dst + W, o1, mask=cmask & (r + 1 < HO), cache_modifier=".cs")
        tl.store(dst + 2 * W, o2, mask=cmask & (r + 2 < HO), cache_modifier=".cs")
        tl.store(dst + 3 * W, o3, mask=cmask & (r + 3 < HO), cache_modifier=".cs")
        tl.store(dst + 4 * W, o4, mask=cmask & (r + 4 < HO), cache_modifier=".cs")

        a = f
        b = g
        src += 5 * W
        dst += 5 * W


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, bias: bool = False):
        super(ModelNew, self).__init__()
        self.conv2d = nn.Conv2d(in_channels, in_channels, kernel_size=(kernel_size, 1), stride=stride, padding=padding, dilation=dilation, groups=in_channels, bias=bias)
        self.simple = (
            tuple(self.conv2d.kernel_size) == (3, 1)
            and tuple(self.conv2d.stride) == (1, 1)
            and tuple(self.conv2d.padding) == (0, 0)
            and self.conv2d.dilation[0] == 1
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if (not self.simple) or x.dim() != 4 or x.dtype != torch.float32 or x.shape[2] < 3:
            return self.conv2d(x)
        x = x.contiguous()
        n, channels, height, width = x.shape
        height_out = height - 2
        out = torch.empty((n, channels, height_out, width), device=x.device, dtype=x.dtype)
        weight = self.conv2d.weight
        has_bias = self.conv2d.bias is not None
        bias = self.conv2d.bias if has_bias else weight
        grid = lambda meta: (
            n * channels * triton.cdiv(height_out, meta["STEPS"] * 5) * triton.cdiv(width, meta["BLOCK"]),
        )
        column_conv3[grid](
            x, weight, bias, out,
            C=channels, H=height, W=width, HO=height_out,
            HAS_BIAS=has_bias,
        )
        return out
