import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def nan_max(a, b):
    # like the library: a NaN in the window is the result
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def row_max(p, ca, cb, cc, STRIDED: tl.constexpr):
    v = tl.load(p + ca)
    if STRIDED:
        v = nan_max(v, tl.load(p + cb))
        v = nan_max(v, tl.load(p + cc))
    return v


@triton.jit
def plane_max(p, ra, rb, rc, ca, cb, cc, STRIDED: tl.constexpr):
    a = row_max(p + ra, ca, cb, cc, STRIDED)
    b = row_max(p + rb, ca, cb, cc, STRIDED)
    c = row_max(p + rc, ca, cb, cc, STRIDED)
    return nan_max(nan_max(a, b), c)


@triton.autotune(
    configs=[
        triton.Config({"TH": 8, "CHUNKS": 1, "STRIDED": False}, num_warps=4, num_stages=1),
        triton.Config({"TH": 16, "CHUNKS": 1, "STRIDED": False}, num_warps=4, num_stages=1),
        triton.Config({"TH": 16, "CHUNKS": 1, "STRIDED": False}, num_warps=8, num_stages=1),
        triton.Config({"TH": 32, "CHUNKS": 1, "STRIDED": False}, num_warps=8, num_stages=1),
        triton.Config({"TH": 32, "CHUNKS": 1, "STRIDED": False}, num_warps=16, num_stages=1),
        triton.Config({"TH": 16, "CHUNKS": 2, "STRIDED": False}, num_warps=8, num_stages=1),
        triton.Config({"TH": 16, "CHUNKS": 1, "STRIDED": True}, num_warps=4, num_stages=1),
        triton.Config({"TH": 16, "CHUNKS": 1, "STRIDED": True}, num_warps=8, num_stages=1),
    ],
    key=["D", "H", "W"],
)
@triton.jit
def max_pool_k3_s2_p1_d3(
    x,
    out,
    D: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    OD: tl.constexpr,
    OH: tl.constexpr,
    OW: tl.constexpr,
    HALF: tl.constexpr,
    TH: tl.constexpr,
    CHUNKS: tl.constexpr,
    STRIDED: tl.constexpr,
):
    # The window of output o has the taps 2o-1, 2o+2, 2o+5 in each dimension; D, H, W are even, so
    # that only the tap -1 of output 0 lies in the padding. It is replaced by another tap of the window.
    TILES: tl.constexpr = (OH + TH - 1) // TH
    PER: tl.constexpr = (OD + CHUNKS - 1) // CHUNKS
    HW: tl.constexpr = H * W

    pid = tl.program_id(0)
    tile = pid % TILES
    rest = pid // TILES
    chunk = rest % CHUNKS
    image = (rest // CHUNKS).to(tl.int64)
    xi = x + image * (D * H * W)
    oi = out + image * (OD * OH * OW)

    h = tile * TH + tl.arange(0, TH)
    hc = tl.minimum(h, OH - 1)
    ra = tl.where(hc == 0, 2, 2 * hc - 1)[:, None] * W
    rb = (2 * hc + 2)[:, None] * W
    rc = (2 * hc + 5)[:, None] * W

    o = tl.arange(0, HALF)
    if STRIDED:
        oc = tl.minimum(o, OW - 1)
        ca = tl.where(oc == 0, 2, 2 * oc - 1)[None, :]
        cb = (2 * oc + 2)[None, :]
        cc = (2 * oc + 5)[None, :]
    else:
        ca = tl.arange(0, W)[None, :]
        cb = ca
        cc = ca
        # odd columns o-1 and o+2, even column o+1 of the split row
        ia = tl.broadcast_to(tl.where(o == 0, 2, o - 1)[None, :], (TH, HALF))
        ib = tl.broadcast_to(tl.minimum(o + 1, HALF - 1)[None, :], (TH, HALF))
        ic = tl.broadcast_to(tl.minimum(o + 2, HALF - 1)[None, :], (TH, HALF))

    target = h[:, None] * OW + o[None, :]
    inside = (h[:, None] < OH) & (o[None, :] < OW)

    first = chunk * PER
    last = tl.minimum(first + PER, OD)

    z = tl.where(first == 0, 5, 2 * first - 1)
    q0 = plane_max(xi + z * HW, ra, rb, rc, ca, cb, cc, STRIDED)
    q1 = plane_max(xi + (2 * first + 1) * HW, ra, rb, rc, ca, cb, cc, STRIDED)
    q2 = plane_max(xi + (2 * first + 3) * HW, ra, rb, rc, ca, cb, cc, STRIDED)

    for d in range(first, last):
        e = plane_max(xi + (2 * d + 2) * HW, ra, rb, rc, ca, cb, cc, STRIDED)
        n = plane_max(xi + (2 * d + 5) * HW, ra, rb, rc, ca, cb, cc, STRIDED)
        m = nan_max(nan_max(q0, e), n)
        q0 = q1
        q1 = q2
        q2 = n
        if STRIDED:
            r = m
        else:
            even, odd = tl.split(tl.reshape(m, (TH, HALF, 2)))
            r = nan_max(tl.gather(odd, ia, 1), tl.gather(odd, ic, 1))
            r = nan_max(r, tl.gather(even, ib, 1))
        tl.store(oi + d * (OH * OW) + target, r, mask=inside)


@triton.jit
def max_pool_tiled(
    x,
    out,
    D: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    OD: tl.constexpr,
    OH: tl.constexpr,
    OW: tl.constexpr,
    KD: tl.constexpr,
    KH: tl.constexpr,
    KW: tl.constexpr,
    SD: tl.constexpr,
    SH: tl.constexpr,
    SW: tl.constexpr,
    PD: tl.constexpr,
    PH: tl.constexpr,
    PW: tl.constexpr,
    LD: tl.constexpr,
    LH: tl.constexpr,
    LW: tl.constexpr,
    TD: tl.constexpr,
    TH: tl.constexpr,
    TW: tl.constexpr,
):
    # A program computes TD x TH rows of TW outputs; the rows lie along the first axis of the block.
    ND: tl.constexpr = (OD + TD - 1) // TD
    NH: tl.constexpr = (OH + TH - 1) // TH
    NW: tl.constexpr = (OW + TW - 1) // TW

    pid = tl.program_id(0)
    tile_w = pid % NW
    rest = pid // NW
    tile_h = rest % NH
    rest = rest // NH
    tile_d = rest % ND
    image = (rest // ND).to(tl.int64)
    xi = x + image * (D * H * W)
    oi = out + image * (OD * OH * OW)

    r = tl.arange(0, TD * TH)
    d = tile_d * TD + r // TH
    h = tile_h * TH + r % TH
    w = tile_w * TW + tl.arange(0, TW)

    d0 = d * SD - PD
    h0 = h * SH - PH
    w0 = w * SW - PW
    row_in = (d < OD) & (h < OH)
    col_in = w < OW

    best = tl.full([TD * TH, TW], float("-inf"), tl.float32)
    for kd in range(0, KD):
        zd = d0 + kd * LD
        ok_d = row_in & (zd >= 0) & (zd < D)
        for kh in range(0, KH):
            zh = h0 + kh * LH
            ok_r = ok_d & (zh >= 0) & (zh < H)
            row = (zd * H + zh) * W
            for kw in tl.static_range(KW):
                zw = w0 + kw * LW
                ok_c = col_in & (zw >= 0) & (zw < W)
                v = tl.load(
                    xi + (row[:, None] + zw[None, :]),
                    mask=ok_r[:, None] & ok_c[None, :],
                    other=float("-inf"),
                )
                best = nan_max(best, v.to(tl.float32))

    target = ((d * OH + h) * OW)[:, None] + w[None, :]
    tl.store(oi + target, best.to(out.dtype.element_ty), mask=row_in[:, None] & col_in[None, :])


def triple(v):
    v = tuple(v) if isinstance(v, (tuple, list)) else (v,)
    return v * 3 if len(v) == 1 else v


def pooled_size(n, k, s, p, dil, ceil_mode):
    o = (n + 2 * p - dil * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
    if ceil_mode and (o - 1) * s >= n + p:
        o -= 1
    return o


class ModelNew(nn.Module):
    """
    Max Pooling 3D.
    """

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

    def tiled(self, x: torch.Tensor) -> torch.Tensor:
        pool = self.maxpool
        k = triple(pool.kernel_size)
        s = triple(pool.stride)
        p = triple(pool.padding)
        dil = triple(pool.dilation)
        if (
            pool.return_indices
            or x.dim() not in (4, 5)
            or x.dtype not in (torch.float32, torch.float16, torch.bfloat16)
            or x.numel() == 0
            or not x.is_contiguous()
            or any(len(v) != 3 for v in (k, s, p, dil))
            or any(v < 1 for v in k + s + dil)
            or any(b < 0 or 2 * b > a for a, b in zip(k, p))
            or k[2] > 16
        ):
            return self.maxpool(x)
        d, h, w = x.shape[-3:]
        od, oh, ow = [
            pooled_size(n, k[i], s[i], p[i], dil[i], pool.ceil_mode) for i, n in enumerate((d, h, w))
        ]
        if min(od, oh, ow) < 1 or d * h * w >= 2**31 or od * oh * ow >= 2**31:
            return self.maxpool(x)
        # at most 1024 outputs in a block
        tw = min(triton.next_power_of_2(ow), 64)
        th = min(triton.next_power_of_2(oh), 512 // tw)
        td = min(triton.next_power_of_2(od), 1024 // (tw * th))
        images = x.numel() // (d * h * w)
        programs = images * triton.cdiv(od, td) * triton.cdiv(oh, th) * triton.cdiv(ow, tw)
        if programs >= 2**31:
            return self.maxpool(x)
        out = torch.empty(tuple(x.shape[:-3]) + (od, oh, ow), device=x.device, dtype=x.dtype)
        max_pool_tiled[(programs,)](
            x, out, d, h, w, od, oh, ow, *k, *s, *p, *dil, TD=td, TH=th, TW=tw, num_warps=4, num_stages=1
        )
        return out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.special or x.dim() != 5 or x.dtype != torch.float32:
            return self.tiled(x)
        n, c, d, h, w = x.shape
        fits = (
            n * c > 0
            and d >= 6
            and h >= 6
            and d % 2 == 0
            and h % 2 == 0
            and 8 <= w <= 256
            and (w & (w - 1)) == 0
            and d * h * w < 2**31
        )
        if not fits:
            return self.maxpool(x)
        x = x.contiguous()
        od = (d - 4) // 2
        oh = (h - 4) // 2
        ow = (w - 4) // 2
        out = torch.empty((n, c, od, oh, ow), device=x.device, dtype=x.dtype)
        images = n * c
        grid = lambda meta: (images * triton.cdiv(oh, meta["TH"]) * meta["CHUNKS"],)
        max_pool_k3_s2_p1_d3[grid](x, out, d, h, w, od, oh, ow, w // 2)
        return out
