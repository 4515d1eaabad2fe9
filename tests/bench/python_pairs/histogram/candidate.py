import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count(x, counts, columns, BINS: tl.constexpr, BLOCK: tl.constexpr, BINS_PADDED: tl.constexpr):
    """Every value is compared with every interval: no atomic additions, and always the same order."""
    row = tl.program_id(0).to(tl.int64)
    interval = tl.arange(0, BINS_PADDED)
    total = tl.zeros((BINS_PADDED,), dtype=tl.int32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
        values = tl.minimum(tl.maximum(values, 0.0), 1.0) * BINS
        place = tl.where(at < columns, tl.minimum(values.to(tl.int32), BINS - 1), -1)
        total += tl.sum((place[:, None] == interval[None, :]).to(tl.int32), axis=0)
    tl.store(counts + row * BINS + interval, total.to(tl.float32), mask=interval < BINS)


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, x):
        rows, columns = x.shape
        counts = torch.empty((rows, self.bins), device=x.device, dtype=torch.float32)
        count[(rows,)](x, counts, columns, BINS=self.bins, BLOCK=256, BINS_PADDED=triton.next_power_of_2(self.bins))
        return counts
