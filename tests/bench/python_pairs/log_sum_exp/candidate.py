import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_sum(x, result, columns, BLOCK: tl.constexpr):
    """One pass: each lane has a maximum and a sum of its own, which are combined behind the loop."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(0, columns, BLOCK, num_stages=4):
        values = tl.load(x + row * columns + start + lane, mask=start + lane < columns, other=float("-inf"))
        larger = tl.maximum(largest, values)
        base = tl.where(tl.abs(larger) == float("inf"), 0.0, larger)  # no difference of two infinities
        total = total * tl.exp(largest - base) + tl.exp(values - base)
        largest = larger
    most = tl.max(largest, axis=0)
    base = tl.where(tl.abs(most) == float("inf"), 0.0, most)
    tl.store(result + row, base + tl.log(tl.sum(total * tl.exp(largest - base), axis=0)))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        result = torch.empty((rows, 1), device=x.device, dtype=x.dtype)
        log_sum[(rows,)](x, result, columns, BLOCK=2048, num_warps=8)
        return result
