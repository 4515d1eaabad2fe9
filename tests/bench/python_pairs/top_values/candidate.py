import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def best_softmax(x, best, result, columns, kept, BLOCK: tl.constexpr):
    """The best value is the row's maximum, so nothing has to look for it; scores equal to the least one count, too."""
    row = tl.program_id(0).to(tl.int64)
    most = tl.load(best + row * kept)
    least = tl.load(best + row * kept + kept - 1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + at, mask=at < columns, other=float("-inf"))
        total += tl.where((values >= least) & (at < columns), tl.exp(values - most), 0.0)
    share = 1.0 / tl.sum(total, axis=0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + at, mask=at < columns, other=float("-inf"))
        chosen = tl.where(values >= least, tl.exp(values - most) * share, 0.0)
        tl.store(result + row * columns + at, chosen, mask=at < columns)


class ModelNew(nn.Module):
    """The library looks for the best scores."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def forward(self, x):
        rows, columns = x.shape
        best = torch.topk(x, self.kept, dim=-1).values
        result = torch.empty_like(x)
        best_softmax[(rows,)](x, best, result, columns, self.kept, BLOCK=2048, num_warps=8)
        return result
