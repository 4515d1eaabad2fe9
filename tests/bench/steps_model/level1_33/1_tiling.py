import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bn_tile_stats(x, part_mean, part_m2,
                  C: tl.constexpr, HW: tl.constexpr, P: tl.constexpr,
                  T: tl.constexpr, BLOCK: tl.constexpr):
    # one program: one tile of one plane (n, c)
    pid = tl.program_id(0).to(tl.int64)
    plane = pid // T
    t = pid % T
    n = plane // C
    c = plane % C
    offs = t * BLOCK + tl.arange(0, BLOCK)
    mask = offs < HW
    v = tl.load(x + plane * HW + offs, mask=mask, other=0.0)
    count = tl.minimum(HW - t * BLOCK, BLOCK).to(tl.float32)
    mean = tl.sum(v * (1.0 / count), 0)
    d = tl.where(mask, v - mean, 0.0)
    m2 = tl.sum(d * d, 0)
    slot = c * P + n * T + t
    tl.store(part_mean + slot, mean)
    tl.store(part_m2 + slot, m2)


@triton.jit
def bn_merge_stats(part_mean, part_m2, mean_out, rstd_out,
                   running_mean, running_var, num_batches,
                   HW: tl.constexpr, P: tl.constexpr, T: tl.constexpr,
                   BLOCK: tl.constexpr, TOTAL: tl.constexpr,
                   EPS: tl.constexpr, MOMENTUM: tl.constexpr,
                   BLOCK_P: tl.constexpr):
    # one program: all tiles of one channel
    c = tl.program_id(0).to(tl.int64)
    base = c * P

    acc = tl.zeros([BLOCK_P], tl.float64)
    for k in range(0, P, BLOCK_P):
        i = k + tl.arange(0, BLOCK_P)
        mask = i < P
        count = tl.minimum(HW - (i % T) * BLOCK, BLOCK).to(tl.float64)
        m = tl.load(part_mean + base + i, mask=mask, other=0.0).to(tl.float64)
        acc += tl.where(mask, m * count, 0.0)
    mean = tl.sum(acc, 0) / TOTAL

    acc2 = tl.zeros([BLOCK_P], tl.float64)
    for k in range(0, P, BLOCK_P):
        i = k + tl.arange(0, BLOCK_P)
        mask = i < P
        count = tl.minimum(HW - (i % T) * BLOCK, BLOCK).to(tl.float64)
        m = tl.load(part_mean + base + i, mask=mask, other=0.0).to(tl.float64)
        q = tl.load(part_m2 + base + i, mask=mask, other=0.0).to(tl.float64)
        d = m - mean
        acc2 += tl.where(mask, q + count * d * d, 0.0)
    m2 = tl.sum(acc2, 0)

    rstd = 1.0 / tl.sqrt(m2 / TOTAL + EPS)
    tl.store(mean_out + c, mean.to(tl.float32))
    tl.store(rstd_out + c, rstd.to(tl.float32))

    # the running statistics of the module in training mode
    rm = tl.load(running_mean + c).to(tl.float64)
    rv = tl.load(running_var + c).to(tl.float64)
    unbiased = m2 / (TOTAL - 1.0)
    new_rm = rm * (1.0 - MOMENTUM) + mean * MOMENTUM
    new_rv = rv * (1.0 - MOMENTUM) + unbiased * MOMENTUM
    tl.store(running_mean + c, new_rm.to(tl.float32))
    tl.store(running_var + c, new_rv.to(tl.float32))
    if c == 0:
        tl.store(num_batches, tl.load(num_batches) + 1)


@triton.jit
def bn_tile_apply(x, mean_in, rstd_in, weight, bias, out,
                  C: tl.constexpr, HW: tl.constexpr,
                  T: tl.constexpr, BLOCK: tl.constexpr):
    # one program: one tile of one plane (n, c)
    pid = tl.program_id(0).to(tl.int64)
    plane = pid // T
    t = pid % T
    c = plane % C
    offs = t * BLOCK + tl.arange(0, BLOCK)
    mask = offs < HW
    v = tl.load(x + plane * HW + offs, mask=mask, other=0.0)
    mean = tl.load(mean_in + c)
    rstd = tl.load(rstd_in + c)
    w = tl.load(weight + c)
    b = tl.load(bias + c)
    y = w * (v - mean) * rstd + b
    tl.store(out + plane * HW + offs, y, mask=mask)


class ModelNew(nn.Module):
    """
    Batch normalization (training mode) in tiles.
    """
    def __init__(self, num_features: int):
        super(ModelNew, self).__init__()
        self.bn = nn.BatchNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        N, C, H, W = x.shape
        HW = H * W
        bn = self.bn

        STATS_BLOCK = 8192
        APPLY_BLOCK = 4096
        stats_tiles = triton.cdiv(HW, STATS_BLOCK)
        apply_tiles = triton.cdiv(HW, APPLY_BLOCK)
        P = N * stats_tiles

        part_mean = torch.empty((C, P), device=x.device, dtype=torch.float32)
        part_m2 = torch.empty((C, P), device=x.device, dtype=torch.float32)
        mean = torch.empty((C,), device=x.device, dtype=torch.float32)
        rstd = torch.empty((C,), device=x.device, dtype=torch.float32)
        out = torch.empty_like(x)

        bn_tile_stats[(N * C * stats_tiles,)](
            x, part_mean, part_m2,
            C=C, HW=HW, P=P, T=stats_tiles, BLOCK=STATS_BLOCK,
            num_warps=8,
        )
        bn_merge_stats[(C,)](
            part_mean, part_m2, mean, rstd,
            bn.running_mean, bn.running_var, bn.num_batches_tracked,
            HW=HW, P=P, T=stats_tiles, BLOCK=STATS_BLOCK,
            TOTAL=float(N * HW), EPS=float(bn.eps), MOMENTUM=float(bn.momentum),
            BLOCK_P=1024,
            num_warps=8,
        )
        bn_tile_apply[(N * C * apply_tiles,)](
            x, mean, rstd, bn.weight, bn.bias, out,
            C=C, HW=HW, T=apply_tiles, BLOCK=APPLY_BLOCK,
            num_warps=8,
        )
        return out
