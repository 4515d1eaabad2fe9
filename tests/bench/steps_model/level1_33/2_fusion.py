import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bn_inside(k, N: tl.constexpr, HW: tl.constexpr, T: tl.constexpr, SUB: tl.constexpr):
    # which lanes of tile k of a channel exist
    lane = tl.arange(0, SUB)
    return (lane < HW - (k % T) * SUB) & (k < N * T)


@triton.jit
def bn_load(x, k, c, N: tl.constexpr, C: tl.constexpr, HW: tl.constexpr,
            T: tl.constexpr, SUB: tl.constexpr, EVEN: tl.constexpr,
            EVICT: tl.constexpr):
    # tile k of channel c
    n = k // T
    at = x + ((n * C + c).to(tl.int64) * HW + (k % T) * SUB)
    lane = tl.arange(0, SUB)
    if EVEN:
        v = tl.load(at + lane, eviction_policy=EVICT)
    else:
        v = tl.load(at + lane, mask=bn_inside(k, N, HW, T, SUB), other=0.0,
                    eviction_policy=EVICT)
    return v


@triton.jit
def bn_store(out, y, k, c, N: tl.constexpr, C: tl.constexpr, HW: tl.constexpr,
             T: tl.constexpr, SUB: tl.constexpr, EVEN: tl.constexpr):
    n = k // T
    at = out + ((n * C + c).to(tl.int64) * HW + (k % T) * SUB)
    lane = tl.arange(0, SUB)
    if EVEN:
        tl.store(at + lane, y, cache_modifier=".cs")
    else:
        tl.store(at + lane, y, mask=bn_inside(k, N, HW, T, SUB), cache_modifier=".cs")


@triton.jit
def bn_update(mean, m2, count, v, k, N: tl.constexpr, HW: tl.constexpr,
              T: tl.constexpr, SUB: tl.constexpr, EVEN: tl.constexpr):
    # one step of Welford's recurrence in every lane
    d = v - mean
    if EVEN:
        new_count = count + 1.0
        new_mean = mean + d * (1.0 / new_count)
    else:
        inside = bn_inside(k, N, HW, T, SUB)
        d = tl.where(inside, d, 0.0)
        new_count = count + inside.to(tl.float32)
        new_mean = mean + d / tl.maximum(new_count, 1.0)
    new_m2 = m2 + d * (v - new_mean)
    return new_mean, new_m2, new_count


@triton.jit
def bn_early(x, pid, c, steps, N: tl.constexpr, C: tl.constexpr, HW: tl.constexpr,
             T: tl.constexpr, SUB: tl.constexpr, EVEN: tl.constexpr, G: tl.constexpr):
    # starts the statistics of channel c with this program's first tiles
    mean = tl.zeros([SUB], tl.float32)
    m2 = tl.zeros([SUB], tl.float32)
    if EVEN:
        count = tl.full([], 0.0, tl.float32)
    else:
        count = tl.zeros([SUB], tl.float32)
    for s in range(0, steps, 2):
        k = pid + s * G
        v0 = bn_load(x, k, c, N, C, HW, T, SUB, EVEN, "evict_first")
        v1 = bn_load(x, k + G, c, N, C, HW, T, SUB, EVEN, "evict_first")
        mean, m2, count = bn_update(mean, m2, count, v0, k, N, HW, T, SUB, EVEN)
        mean, m2, count = bn_update(mean, m2, count, v1, k + G, N, HW, T, SUB, EVEN)
    return mean, m2, count


@triton.jit
def bn_fused(x, weight, bias, out, part_mean, part_m2, part_count, arrived,
             running_mean, running_var, num_batches,
             N: tl.constexpr, C: tl.constexpr, HW: tl.constexpr,
             T: tl.constexpr, SUB: tl.constexpr, EVEN: tl.constexpr,
             G: tl.constexpr, EARLY: tl.constexpr, LATE: tl.constexpr,
             TOTAL: tl.constexpr, EPS: tl.constexpr, MOMENTUM: tl.constexpr):
    # G programs, all resident at once; program pid has the tiles
    # pid, pid + G, pid + 2 G, ... of every channel: EARLY tiles that are read
    # again from memory, LATE tiles that are read again from L2, and 8 tiles
    # that stay in registers.
    pid = tl.program_id(0)

    mean, m2, count = bn_early(x, pid, 0, EARLY, N, C, HW, T, SUB, EVEN, G)

    for c in range(0, C):
        w = tl.load(weight + c)
        b = tl.load(bias + c)

        # statistics: the tiles that L2 keeps
        for i in range(0, LATE, 4):
            k = pid + (EARLY + i) * G
            v0 = bn_load(x, k, c, N, C, HW, T, SUB, EVEN, "evict_last")
            v1 = bn_load(x, k + G, c, N, C, HW, T, SUB, EVEN, "evict_last")
            v2 = bn_load(x, k + 2 * G, c, N, C, HW, T, SUB, EVEN, "evict_last")
            v3 = bn_load(x, k + 3 * G, c, N, C, HW, T, SUB, EVEN, "evict_last")
            mean, m2, count = bn_update(mean, m2, count, v0, k, N, HW, T, SUB, EVEN)
            mean, m2, count = bn_update(mean, m2, count, v1, k + G, N, HW, T, SUB, EVEN)
            mean, m2, count = bn_update(mean, m2, count, v2, k + 2 * G, N, HW, T, SUB, EVEN)
            mean, m2, count = bn_update(mean, m2, count, v3, k + 3 * G, N, HW, T, SUB, EVEN)

        # statistics: the tiles that stay in registers
        kh = pid + (EARLY + LATE) * G
        h0 = bn_load(x, kh, c, N, C, HW, T, SUB, EVEN, "evict_first")
        h1 = bn_load(x, kh + G, c, N, C, HW, T, SUB, EVEN, "evict_first")
        h2 = bn_load(x, kh + 2 * G, c, N, C, HW, T, SUB, EVEN, "evict_first")
        h3 = bn_load(x, kh + 3 * G, c, N, C, HW, T, SUB, EVEN, "evict_first")
        h4 = bn_load(x, kh + 4 * G, c, N, C, HW, T, SUB, EVEN, "evict_first")
        h5 = bn_load(x, kh + 5 * G, c, N, C, HW, T, SUB, EVEN, "evict_first")
        h6 = bn_load(x, kh + 6 * G, c, N, C, HW, T, SUB, EVEN, "evict_first")
        h7 = bn_load(x, kh + 7 * G, c, N, C, HW, T, SUB, EVEN, "evict_first")
        mean, m2, count = bn_update(mean, m2, count, h0, kh, N, HW, T, SUB, EVEN)
        mean, m2, count = bn_update(mean, m2, count, h1, kh + G, N, HW, T, SUB, EVEN)
        mean, m2, count = bn_update(mean, m2, count, h2, kh + 2 * G, N, HW, T, SUB, EVEN)
        mean, m2, count = bn_update(mean, m2, count, h3, kh + 3 * G, N, HW, T, SUB, EVEN)
        mean, m2, count = bn_update(mean, m2, count, h4, kh + 4 * G, N, HW, T, SUB, EVEN)
        mean, m2, count = bn_update(mean, m2, count, h5, kh + 5 * G, N, HW, T, SUB, EVEN)
        mean, m2, count = bn_update(mean, m2, count, h6, kh + 6 * G, N, HW, T, SUB, EVEN)
        mean, m2, count = bn_update(mean, m2, count, h7, kh + 7 * G, N, HW, T, SUB, EVEN)

        # the lanes of this program become one partial
        if EVEN:
            own_count = count * SUB
            own_mean = tl.sum(mean * (1.0 / SUB), 0)
        else:
            own_count = tl.sum(count, 0)
            own_mean = tl.sum(mean * (count / tl.maximum(own_count, 1.0)), 0)
        dev = mean - own_mean
        own_m2 = tl.sum(m2 + count * dev * dev, 0)
        slot = c * G + pid
        tl.store(part_mean + slot, own_mean)
        tl.store(part_m2 + slot, own_m2)
        tl.store(part_count + slot, own_count)
        tl.debug_barrier()
        tl.atomic_add(arrived + c, 1, sem="acq_rel", scope="gpu")

        # while the others arrive: the first tiles of the next channel
        steps = tl.where(c + 1 < C, EARLY, 0)
        mean, m2, count = bn_early(x, pid, c + 1, steps, N, C, HW, T, SUB, EVEN, G)

        while tl.atomic_add(arrived + c, 0, sem="acq_rel", scope="gpu") < G:
            pass
        tl.debug_barrier()

        # merge the partials of the channel, in every program in the same order
        slots = c * G + tl.arange(0, G)
        pm = tl.load(part_mean + slots, cache_modifier=".cg").to(tl.float64)
        pq = tl.load(part_m2 + slots, cache_modifier=".cg").to(tl.float64)
        pn = tl.load(part_count + slots, cache_modifier=".cg").to(tl.float64)
        mu = tl.sum(pm * pn, 0) / TOTAL
        pd = pm - mu
        q = tl.sum(pq + pn * pd * pd, 0)
        rstd = (1.0 / tl.sqrt(q / TOTAL + EPS)).to(tl.float32)
        mu32 = mu.to(tl.float32)

        # normalize what is in registers
        bn_store(out, w * (h0 - mu32) * rstd + b, kh, c, N, C, HW, T, SUB, EVEN)
        bn_store(out, w * (h1 - mu32) * rstd + b, kh + G, c, N, C, HW, T, SUB, EVEN)
        bn_store(out, w * (h2 - mu32) * rstd + b, kh + 2 * G, c, N, C, HW, T, SUB, EVEN)
        bn_store(out, w * (h3 - mu32) * rstd + b, kh + 3 * G, c, N, C, HW, T, SUB, EVEN)
        bn_store(out, w * (h4 - mu32) * rstd + b, kh + 4 * G, c, N, C, HW, T, SUB, EVEN)
        bn_store(out, w * (h5 - mu32) * rstd + b, kh + 5 * G, c, N, C, HW, T, SUB, EVEN)
        bn_store(out, w * (h6 - mu32) * rstd + b, kh + 6 * G, c, N, C, HW, T, SUB, EVEN)
        bn_store(out, w * (h7 - mu32) * rstd + b, kh + 7 * G, c, N, C, HW, T, SUB, EVEN)

        # normalize the rest, the tiles read last first
        for i in range(0, EARLY + LATE, 4):
            k = pid + (EARLY + LATE - 4 - i) * G
            v3 = bn_load(x, k + 3 * G, c, N, C, HW, T, SUB, EVEN, "evict_first")
            v2 = bn_load(x, k + 2 * G, c, N, C, HW, T, SUB, EVEN, "evict_first")
            v1 = bn_load(x, k + G, c, N, C, HW, T, SUB, EVEN, "evict_first")
            v0 = bn_load(x, k, c, N, C, HW, T, SUB, EVEN, "evict_first")
            bn_store(out, w * (v3 - mu32) * rstd + b, k + 3 * G, c, N, C, HW, T, SUB, EVEN)
            bn_store(out, w * (v2 - mu32) * rstd + b, k + 2 * G, c, N, C, HW, T, SUB, EVEN)
            bn_store(out, w * (v1 - mu32) * rstd + b, k + G, c, N, C, HW, T, SUB, EVEN)
            bn_store(out, w * (v0 - mu32) * rstd + b, k, c, N, C, HW, T, SUB, EVEN)

        # the running statistics of the module in training mode
        if pid == c % G:
            rm = tl.load(running_mean + c).to(tl.float64)
            rv = tl.load(running_var + c).to(tl.float64)
            new_rm = rm * (1.0 - MOMENTUM) + mu * MOMENTUM
            new_rv = rv * (1.0 - MOMENTUM) + q / (TOTAL - 1.0) * MOMENTUM
            tl.store(running_mean + c, new_rm.to(tl.float32))
            tl.store(running_var + c, new_rv.to(tl.float32))

    if pid == 0:
        tl.store(num_batches, tl.load(num_batches) + 1)


class ModelNew(nn.Module):
    """
    Batch normalization (training mode) in one persistent kernel.
    """
    def __init__(self, num_features: int):
        super(ModelNew, self).__init__()
        self.bn = nn.BatchNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        N, C, H, W = x.shape
        HW = H * W
        bn = self.bn

        G = 128        # programs: at most one per compute unit (132), all resident
        SUB = 4096     # elements of a tile
        EARLY = 8      # tiles per program and channel read during the barrier
        HELD = 8       # tiles per program and channel kept in registers
        T = triton.cdiv(HW, SUB)
        tiles = triton.cdiv(N * T, G)
        LATE = triton.cdiv(max(tiles - EARLY - HELD, 0), 4) * 4
        EVEN = (HW % SUB == 0) and (N * T == G * (EARLY + LATE + HELD))

        part_mean = torch.empty((C, G), device=x.device, dtype=torch.float32)
        part_m2 = torch.empty((C, G), device=x.device, dtype=torch.float32)
        part_count = torch.empty((C, G), device=x.device, dtype=torch.float32)
        arrived = torch.zeros((C,), device=x.device, dtype=torch.int32)
        out = torch.empty_like(x)

        bn_fused[(G,)](
            x, bn.weight, bn.bias, out,
            part_mean, part_m2, part_count, arrived,
            bn.running_mean, bn.running_var, bn.num_batches_tracked,
            N=N, C=C, HW=HW, T=T, SUB=SUB, EVEN=EVEN,
            G=G, EARLY=EARLY, LATE=LATE,
            TOTAL=float(N * HW), EPS=float(bn.eps), MOMENTUM=float(bn.momentum),
            num_warps=16, num_stages=1,
        )
        return out
