import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _mx(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _plane(base, r0, r1, c0, c1, W: tl.constexpr):
    # maximum over the 3 x 3 taps (rows r0, r1, r1 + 3; columns c0, c1, c1 + 3) of one depth plane
    p0 = base + (r0 + c0)
    p1 = base + (r0 + c1)
    p2 = base + (r1 + c0)
    p3 = base + (r1 + c1)
    a0 = tl.load(p0)
    a1 = tl.load(p1)
    a2 = tl.load(p1 + 3)
    b0 = tl.load(p2)
    b1 = tl.load(p3)
    b2 = tl.load(p3 + 3)
    d0 = tl.load(p2 + 3 * W)
    d1 = tl.load(p3 + 3 * W)
    d2 = tl.load(p3 + (3 * W + 3))
    a = _mx(_mx(a0, a1), a2)
    b = _mx(_mx(b0, b1), b2)
    d = _mx(_mx(d0, d1), d2)
    return _mx(_mx(a, b), d)


@triton.autotune(
    configs=[
        triton.Config({"BH": 8, "SPLIT": 1}, num_warps=4, num_stages=1),
        triton.Config({"BH": 16, "SPLIT": 1}, num_warps=4, num_stages=1),
        triton.Config({"BH": 16, "SPLIT": 1}, num_warps=8, num_stages=1),
        triton.Config({"BH": 32, "SPLIT": 1}, num_warps=8, num_stages=1),
        triton.Config({"BH": 8, "SPLIT": 2}, num_warps=4, num_stages=1),
        triton.Config({"BH": 16, "SPLIT": 2}, num_warps=4, num_stages=1),
        triton.Config({"BH": 16, "SPLIT": 2}, num_warps=8, num_stages=1),
        triton.Config({"BH": 32, "SPLIT": 2}, num_warps=8, num_stages=1),
    ],
    key=["NC", "D", "H", "W"],
)
@triton.jit
def _pool(
    x,
    out,
    NC,
    D: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    OD: tl.constexpr,
    OH: tl.constexpr,
    OW: tl.constexpr,
    BW: tl.constexpr,
    BH: tl.constexpr,
    SPLIT: tl.constexpr,
):
    HB: tl.constexpr = (OH + BH - 1) // BH
    CH: tl.constexpr = (OD + SPLIT - 1) // SPLIT
    HW: tl.constexpr = H * W
    OHW: tl.constexpr = OH * OW

    pid = tl.program_id(0)
    hb = pid % HB
    rest = pid // HB
    s = rest % SPLIT
    nc = (rest // SPLIT).to(tl.int64)

    # the last block of rows overlaps the one before it (the same values are written twice)
    h_start = tl.minimum(hb * BH, OH - BH)
    idx = tl.arange(0, BH * BW)
    oh = h_start + idx // BW
    # lanes beyond the row repeat its last output
    ow = tl.minimum(idx % BW, OW - 1)

    # taps 2o - 1, 2o + 2, 2o + 5; where 2o - 1 is padding, the tap 2o + 2 is taken again
    r1 = (2 * oh + 2) * W
    r0 = tl.where(oh == 0, r1, r1 - 3 * W)
    c1 = 2 * ow + 2
    c0 = tl.where(ow == 0, c1, c1 - 3)

    xb = x + nc * (D * HW)
    ob = out + nc * (OD * OHW)
    oo = oh * OW + ow

    od0 = s * CH
    od1 = tl.minimum(od0 + CH, OD)

    first = tl.where(od0 == 0, 2, 2 * od0 - 1)
    a = _plane(xb + first * HW, r0, r1, c0, c1, W)
    b = _plane(xb + (2 * od0 + 1) * HW, r0, r1, c0, c1, W)
    c = _plane(xb + (2 * od0 + 3) * HW, r0, r1, c0, c1, W)
    for od in range(od0, od1):
        e = _plane(xb + (2 * od + 2) * HW, r0, r1, c0, c1, W)
        n = _plane(xb + (2 * od + 5) * HW, r0, r1, c0, c1, W)
        tl.store(ob + od * OHW + oo, _mx(_mx(a, e), n))
        a = b
        b = c
        c = n


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int = None, padding: int = 0, dilation: int = 1, return_indices: bool = False, ceil_mode: bool = False):
        super(ModelNew, self).__init__()
        self.maxpool = nn.MaxPool3d(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation, return_indices=return_indices, ceil_mode=ceil_mode)
        self.special = (
            kernel_size == 3
            and stride == 2
            and padding == 1
            and dilation == 3
            and not return_indices
            and not ceil_mode
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.special or x.dim() != 5 or x.dtype != torch.float32:
            return self.maxpool(x)
        N, C, D, H, W = x.shape
        # even extents: the last tap is the last element, nothing lies beyond the far end
        if D % 2 or H % 2 or W % 2 or D < 16 or H < 68 or W < 6 or W > 256 or D * H * W >= 2 ** 31 or N * C == 0:
            return self.maxpool(x)
        x = x.contiguous()
        OD, OH, OW = (D - 4) // 2, (H - 4) // 2, (W - 4) // 2
        out = torch.empty((N, C, OD, OH, OW), device=x.device, dtype=x.dtype)
        NC = N * C
        grid = lambda meta: (NC * meta["SPLIT"] * triton.cdiv(OH, meta["BH"]),)
        _pool[grid](
            x,
            out,
            NC,
            D=D,
            H=H,
            W=W,
            OD=OD,
            OH=OH,
            OW=OW,
            BW=triton.next_power_of_2(OW),
        )
        return out
