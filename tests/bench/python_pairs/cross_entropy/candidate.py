import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_of_row(scores, wanted, losses, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(scores + row * classes + at, mask=at < classes, other=float("-inf"))
        larger = tl.maximum(largest, tl.max(values, axis=0))
        base = tl.where(larger == float("-inf"), 0.0, larger)  # so far there may be nothing but -inf
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(values - base), axis=0)
        largest = larger
    chosen = tl.load(scores + row * classes + tl.load(wanted + row))
    tl.store(losses + row, largest + tl.log(total) - chosen)


class ModelNew(nn.Module):
    def forward(self, scores, wanted):
        rows, classes = scores.shape
        losses = torch.empty((rows,), device=scores.device, dtype=scores.dtype)
        loss_of_row[(rows,)](scores, wanted, losses, classes, BLOCK=4096, num_warps=8)
        return losses
