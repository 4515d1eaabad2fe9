import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _tap(xp, K: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    # k = channel * 9 + row * 3 + column, the order of the weights in memory
    return tl.load(xp + ((K // 9) * (H * W) + ((K % 9) // 3) * W + (K % 3)))


@triton.jit
def _sixteen(xp, K: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    # The values K .. K + 15 of each pixel: [P, 2, 2, 2, 2], all of a pixel in one thread.
    t0 = _tap(xp, K + 0, H, W)
    t1 = _tap(xp, K + 1, H, W)
    t2 = _tap(xp, K + 2, H, W)
    t3 = _tap(xp, K + 3, H, W)
    t4 = _tap(xp, K + 4, H, W)
    t5 = _tap(xp, K + 5, H, W)
    t6 = _tap(xp, K + 6, H, W)
    t7 = _tap(xp, K + 7, H, W)
    t8 = _tap(xp, K + 8, H, W)
    t9 = _tap(xp, K + 9, H, W)
    t10 = _tap(xp, K + 10, H, W)
    t11 = _tap(xp, K + 11, H, W)
    t12 = _tap(xp, K + 12, H, W)
    t13 = _tap(xp, K + 13, H, W)
    t14 = _tap(xp, K + 14, H, W)
    t15 = _tap(xp, K + 15, H, W)
    even = tl.join(tl.join(tl.join(t0, t8), tl.join(t4, t12)),
                   tl.join(tl.join(t2, t10), tl.join(t6, t14)))
    odd = tl.join(tl.join(tl.join(t1, t9), tl.join(t5, t13)),
                  tl.join(tl.join(t3, t11), tl.join(t7, t15)))
    return tl.join(even, odd)


@triton.jit
def _operand(g, P: tl.constexpr):
    return tl.trans(tl.reshape(g, (P, 16)))


@triton.autotune(
    configs=[
        triton.Config({"P": 128, "TILES": 16}, num_warps=4, num_stages=1),
        triton.Config({"P": 128, "TILES": 32}, num_warps=4, num_stages=1),
        triton.Config({"P": 256, "TILES": 16}, num_warps=8, num_stages=1),
    ],
    key=["PLANE"],
)
@triton.jit
def _conv3x3_16_128(x, w, out,
                    H: tl.constexpr, W: tl.constexpr, OW: tl.constexpr, PLANE: tl.constexpr,
                    P: tl.constexpr, TILES: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    x += image * (16 * H * W)
    out += image * (128 * PLANE)

    oc = tl.arange(0, 128)
    kk = tl.arange(0, 16)
    wp = w + oc[:, None] * 144 + kk[None, :]
    w0 = tl.load(wp)
    w1 = tl.load(wp + 16)
    w2 = tl.load(wp + 32)
    w3 = tl.load(wp + 48)
    w4 = tl.load(wp + 64)
    w5 = tl.load(wp + 80)
    w6 = tl.load(wp + 96)
    w7 = tl.load(wp + 112)
    w8 = tl.load(wp + 128)

    lane = tl.arange(0, P)
    first = tl.program_id(0) * (TILES * P)
    for t in range(TILES):
        p = first + t * P + lane
        # pixels beyond the plane read the last one, and are not stored
        q = tl.minimum(p, PLANE - 1)
        row = q // OW
        xp = x + (row * W + (q - row * OW))

        acc = tl.zeros((128, P), dtype=tl.float32)
        g0 = _sixteen(xp, 0, H, W)
        g1 = _sixteen(xp, 16, H, W)

        b0 = _operand(g0, P)
        g2 = _sixteen(xp, 32, H, W)
        acc = tl.dot(w0, b0, acc, input_precision="tf32")

        b1 = _operand(g1, P)
        g3 = _sixteen(xp, 48, H, W)
        acc = tl.dot(w1, b1, acc, input_precision="tf32")

        b2 = _operand(g2, P)
        g4 = _sixteen(xp, 64, H, W)
        acc = tl.dot(w2, b2, acc, input_precision="tf32")

        b3 = _operand(g3, P)
        g5 = _sixteen(xp, 80, H, W)
        acc = tl.dot(w3, b3, acc, input_precision="tf32")

        b4 = _operand(g4, P)
        g6 = _sixteen(xp, 96, H, W)
        acc = tl.dot(w4, b4, acc, input_precision="tf32")

        b5 = _operand(g5, P)
        g7 = _sixteen(xp, 112, H, W)
        acc = tl.dot(w5, b5, acc, input_precision="tf32")

        b6 = _operand(g6, P)
        g8 = _sixteen(xp, 128, H, W)
        acc = tl.dot(w6, b6, acc, input_precision="tf32")

        b7 = _operand(g7, P)
        acc = tl.dot(w7, b7, acc, input_precision="tf32")

        b8 = _operand(g8, P)
        acc = tl.dot(w8, b8, acc, input_precision="tf32")

        op = out + (oc[:, None] * PLANE + p[None, :])
        tl.store(op, acc, mask=(p < PLANE)[None, :], cache_modifier=".cs")


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1, bias: bool = False):
        super(ModelNew, self).__init__()
        self.conv2d = nn.Conv2d(in_channels, out_channels, (kernel_size, kernel_size), stride=stride, padding=padding, dilation=dilation, groups=groups, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        conv = self.conv2d
        weight = conv.weight
        fits = (
            x.dim() == 4
            and x.dtype == torch.float32
            and weight.dtype == torch.float32
            and tuple(weight.shape) == (128, 16, 3, 3)
            and x.shape[1] == 16
            and x.shape[2] >= 3
            and x.shape[3] >= 3
            and 16 * x.shape[2] * x.shape[3] < 2 ** 31
            and 128 * x.shape[2] * x.shape[3] < 2 ** 31
            and x.shape[0] > 0
            and x.shape[0] < 65536
            and tuple(conv.stride) == (1, 1)
            and conv.padding in ((0, 0), "valid")
            and tuple(conv.dilation) == (1, 1)
            and conv.groups == 1
            and conv.bias is None
        )
        if not fits:
            return conv(x)

        x = x.contiguous()
        weight = weight.contiguous()
        n, _, h, wd = x.shape
        oh, ow = h - 2, wd - 2
        plane = oh * ow
        out = torch.empty((n, 128, oh, ow), device=x.device, dtype=x.dtype)
        grid = lambda meta: (triton.cdiv(plane, meta["P"] * meta["TILES"]), n)
        _conv3x3_16_128[grid](x, weight, out, H=h, W=wd, OW=ow, PLANE=plane)
        return out
