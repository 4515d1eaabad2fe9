import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def multiply(a, b, result, rows, shared, columns, scale, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
             DEPTH: tl.constexpr):
    """Sums are f32; they are rounded where the library rounds them, before they are scaled, and behind."""
    one = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    a_at = a + (one * rows + row[:, None]) * shared + depth[None, :]
    b_at = b + (one * columns + column[:, None]) * shared + depth[None, :]
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, shared, DEPTH):
        left = tl.load(a_at + start, mask=(row < rows)[:, None] & (start + depth < shared)[None, :], other=0.0)
        right = tl.load(b_at + start, mask=(column < columns)[:, None] & (start + depth < shared)[None, :], other=0.0)
        total = tl.dot(left, tl.trans(right), acc=total)
    total = total.to(tl.float16).to(tl.float32) * scale
    at = (one * rows + row[:, None]) * columns + column[None, :]
    tl.store(result + at, total.to(tl.float16), mask=(row < rows)[:, None] & (column < columns)[None, :])


class ModelNew(nn.Module):
    def __init__(self, shared):
        super().__init__()
        self.scale = shared ** -0.5

    def forward(self, a, b):
        batch, rows, shared = a.shape
        columns = b.shape[1]
        result = torch.empty((batch, rows, columns), device=a.device, dtype=a.dtype)
        multiply[(triton.cdiv(rows, 128), triton.cdiv(columns, 128), batch)](
            a, b, result, rows, shared, columns, self.scale, ROWS=128, COLUMNS=128, DEPTH=64, num_warps=8)
        return result
