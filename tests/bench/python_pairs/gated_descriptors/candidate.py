import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gated_tiles(x, gate, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    # The tensor memory accelerator copies whole tiles, and minds the ends itself.
    values = tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[columns, 1], block_shape=[ROWS, COLUMNS])
    gates = tl.make_tensor_descriptor(gate, shape=[rows, columns], strides=[columns, 1], block_shape=[ROWS, COLUMNS])
    results = tl.make_tensor_descriptor(out, shape=[rows, columns], strides=[columns, 1], block_shape=[ROWS, COLUMNS])
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    results.store([row, column], values.load([row, column]) * tl.sigmoid(gates.load([row, column])))


class ModelNew(nn.Module):
    def forward(self, x, gate):
        out = torch.empty_like(x)
        rows, columns = x.shape
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=x.device))
        grid = (triton.cdiv(rows, 32), triton.cdiv(columns, 128))
        gated_tiles[grid](x, gate, out, rows, columns, ROWS=32, COLUMNS=128)
        return out
