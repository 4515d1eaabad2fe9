import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sums_of_row(x, result, columns, decay, BLOCK: tl.constexpr):
    """Block after block; the last sum is carried to the next."""
    row = tl.program_id(0).to(tl.int64)
    carried = 0.0
    for start in tl.range(0, columns, BLOCK, num_stages=3):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
        values = values * values
        tl.store(result + row * columns + at, (tl.cumsum(values, axis=0) + carried) * decay, mask=at < columns)
        carried += tl.sum(values, axis=0)


class ModelNew(nn.Module):
    def __init__(self, decay):
        super().__init__()
        self.decay = decay

    def forward(self, x):
        rows, columns = x.shape
        result = torch.empty_like(x)
        sums_of_row[(rows,)](x, result, columns, self.decay, BLOCK=2048)
        return result
