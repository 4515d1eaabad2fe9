import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice

batch_size = 256


@triton.jit
def pack_transposed(x, hidden, out, rows, x_columns, hidden_columns,
                    BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    # out[k, m] = x[m, k], out[x_columns + k, m] = hidden[m, k]
    k = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    if tl.program_id(2) == 0:
        inside = (m[:, None] < rows) & (k[None, :] < x_columns)
        tile = tl.load(x + m[:, None] * x_columns + k[None, :], mask=inside, other=0.0)
        keep = (k[:, None] < x_columns) & (m[None, :] < rows)
        tl.store(out + k[:, None] * rows + m[None, :], tl.trans(tile), mask=keep)
    else:
        inside = (m[:, None] < rows) & (k[None, :] < hidden_columns)
        tile = tl.load(hidden + m[:, None] * hidden_columns + k[None, :], mask=inside, other=0.0)
        keep = (k[:, None] < hidden_columns) & (m[None, :] < rows)
        tl.store(out + (x_columns + k[:, None]) * rows + m[None, :], tl.trans(tile), mask=keep)


@triton.jit
def tanh_transposed(v, out, rows, columns,
                    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # v is [batch, features] with the bias already in it; out[n, m] = tanh(v[m, n])
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = (m[:, None] < rows) & (n[None, :] < columns)
    tile = tl.load(v + m[:, None] * columns + n[None, :], mask=inside, other=0.0)
    tile = libdevice.tanh(tile)
    keep = (n[:, None] < columns) & (m[None, :] < rows)
    tl.store(out + n[:, None] * rows + m[None, :], tl.trans(tile), mask=keep)


class ModelNew(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, output_size: int):
        super(ModelNew, self).__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.output_size = output_size
        self.hidden = torch.randn((batch_size, hidden_size))

        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.tanh = nn.Tanh()

        # Same values, same shapes; only the order in memory changes: weight.t() is contiguous.
        self.i2h.weight.data = self.i2h.weight.data.t().contiguous().t()
        self.h2o.weight.data = self.h2o.weight.data.t().contiguous().t()

    def forward(self, x: torch.Tensor, initial_hidden=None) -> torch.Tensor:
        if initial_hidden is not None:
            hidden = initial_hidden.expand(self.hidden.shape).to(x.device)
        else:
            hidden = self.hidden.to(x.device)
        x = x.contiguous()
        hidden = hidden.contiguous()
        rows, x_columns = x.shape
        hidden_columns = hidden.shape[1]

        # [x, hidden] transposed: [input + hidden, batch]
        packed = torch.empty((x_columns + hidden_columns, rows), device=x.device, dtype=x.dtype)
        BLOCK_M = 64
        BLOCK_K = 64
        grid = (triton.cdiv(max(x_columns, hidden_columns), BLOCK_K), triton.cdiv(rows, BLOCK_M), 2)
        pack_transposed[grid](
            x, hidden, packed, rows, x_columns, hidden_columns,
            BLOCK_M=BLOCK_M, BLOCK_K=BLOCK_K, num_warps=4,
        )

        # product with the bias in its epilogue: [batch, hidden]
        v = torch.addmm(self.i2h.bias.detach(), packed.t(), self.i2h.weight.detach().t())
        columns = v.shape[1]
        # new hidden state, transposed: [hidden, batch]
        h = torch.empty((columns, rows), device=x.device, dtype=x.dtype)
        BLOCK_N = 64
        tanh_transposed[(triton.cdiv(columns, BLOCK_N), triton.cdiv(rows, BLOCK_M))](
            v, h, rows, columns,
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4,
        )
        self.hidden = h.t()

        return torch.addmm(self.h2o.bias.detach(), h.t(), self.h2o.weight.detach().t())
