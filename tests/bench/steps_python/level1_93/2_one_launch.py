import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def masked_sums(x, mask, result, length, BLOCK: tl.constexpr):
    """The running sums of one row: block after block, the last sum is carried to the next."""
    row = tl.program_id(0).to(tl.int64)
    carried = 0.0
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        chosen = tl.load(mask + row * length + at, mask=at < length, other=0).to(tl.float32)
        values = tl.load(x + row * length + at, mask=at < length, other=0.0) * chosen
        tl.store(result + row * length + at, tl.cumsum(values, axis=0) + carried, mask=at < length)
        carried += tl.sum(values, axis=0)


class ModelNew(nn.Module):
    """Running sums along the last of two axes."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        rows, length = x.shape
        result = torch.empty_like(x)
        masked_sums[(rows,)](x, mask, result, length, BLOCK=2048)
        return result
