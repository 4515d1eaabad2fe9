import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_gelu(x, bias, elements, columns, BLOCK: tl.constexpr):
    """In place."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    within = at < elements
    values = tl.load(x + at, mask=within, other=0.0) + tl.load(bias + at % columns, mask=within, other=0.0)
    tl.store(x + at, 0.5 * values * (1.0 + tl.erf(values * 0.7071067811865476)), mask=within)


class ModelNew(nn.Module):
    """The product stays with the library; bias and GELU follow in one pass."""

    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)

    def forward(self, x):
        result = torch.mm(x, self.linear.weight.t())
        elements = result.numel()
        add_gelu[(triton.cdiv(elements, 1024),)](result, self.linear.bias, elements, result.shape[1], BLOCK=1024)
        return result
