import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, temperature, result, columns, COLUMNS: tl.constexpr):
    """A row stays in registers between its three passes."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, COLUMNS)
    values = tl.load(x + row * columns + column, mask=column < columns, other=0.0) / tl.load(temperature)
    values = tl.where(column < columns, values, float("-inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(result + row * columns + column, values / tl.sum(values, axis=0), mask=column < columns)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(1) * 1.5)

    def forward(self, x):
        rows, columns = x.shape
        result = torch.empty_like(x)
        softmax_row[(rows,)](x, self.temperature, result, columns, COLUMNS=triton.next_power_of_2(columns), num_warps=8)
        return result
