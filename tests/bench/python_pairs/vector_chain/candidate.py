import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gate(x, y, z, result, elements, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    within = at < elements
    inner = tl.load(x + at, mask=within) * factor + tl.load(y + at, mask=within)
    gated = tl.load(z + at, mask=within) / (1.0 + tl.exp(-inner))
    tl.store(result + at, gated - tl.abs(inner), mask=within)


class ModelNew(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, y, z):
        result = torch.empty_like(x)
        elements = x.numel()
        gate[(triton.cdiv(elements, 2048),)](x, y, z, result, elements, self.factor, BLOCK=2048, num_warps=8)
        return result
