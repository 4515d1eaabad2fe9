import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def masked_sums(x, mask, result, rows, length, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The running sums of a few rows: their blocks are scanned side by side, and the next ones are already loaded."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    first = row.to(tl.int64)[:, None] * length
    carried = tl.zeros((ROWS,), dtype=tl.float32)
    for start in tl.range(0, length, BLOCK, num_stages=3):
        column = start + tl.arange(0, BLOCK)
        within = (row < rows)[:, None] & (column < length)[None, :]
        at = first + column[None, :]
        chosen = tl.load(mask + at, mask=within, other=0).to(tl.float32)
        values = tl.load(x + at, mask=within, other=0.0) * chosen
        tl.store(result + at, tl.cumsum(values, axis=1) + carried[:, None], mask=within)
        carried += tl.sum(values, axis=1)


class ModelNew(nn.Module):
    """Running sums along the last of two axes."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        rows, length = x.shape
        result = torch.empty_like(x)
        several = 4
        masked_sums[(triton.cdiv(rows, several),)](x, mask, result, rows, length, ROWS=several, BLOCK=1024, num_warps=4)
        return result
