import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest_of_row(x, value, place, above, columns, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, COLUMNS)
    within = column < columns
    values = tl.load(x + row * columns + column, mask=within, other=0.0)
    # A value that is no number counts as the largest one.
    strange = within & (values != values)
    ranked = tl.where(within, values, float("-inf"))
    most = tl.max(tl.where(strange, float("-inf"), ranked), axis=0)
    wanted = tl.where(tl.sum(strange.to(tl.int32), axis=0) > 0, strange, within & (ranked == most))
    first = tl.min(tl.where(wanted, column, COLUMNS), axis=0)
    most = tl.load(x + row * columns + first)
    tl.store(value + row, most)
    tl.store(place + row, first.to(tl.int64))
    tl.store(above + row, most - tl.sum(values, axis=0) / columns)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        value = torch.empty((rows,), device=x.device, dtype=x.dtype)
        place = torch.empty((rows,), device=x.device, dtype=torch.int64)
        above = torch.empty_like(value)
        largest_of_row[(rows,)](x, value, place, above, columns, COLUMNS=triton.next_power_of_2(columns), num_warps=8)
        return value, place, above
