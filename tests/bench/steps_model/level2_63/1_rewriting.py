import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def widen_kernel(x_ptr, out_ptr, total, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < total
    v = tl.load(x_ptr + offs, mask=inside, other=0.0)
    tl.store(out_ptr + offs, v.to(tl.float64), mask=inside)


@triton.jit
def bias_relu_div_kernel(acc_ptr, bias_ptr, out_ptr, columns, divisor, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < columns
    acc = tl.load(acc_ptr + row + cols, mask=inside, other=0.0)
    b = tl.load(bias_ptr + cols, mask=inside, other=0.0)
    v = (acc + b.to(tl.float64)).to(tl.float32)
    # keeps NaN, as torch.relu does
    v = tl.where(v < 0.0, 0.0, v)
    tl.store(out_ptr + row + cols, v / divisor, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, divisor):
        super(ModelNew, self).__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor
        with torch.no_grad():
            # [in_features, out_features] in f64: exact copy of the weight, transposed
            wide = self.linear.weight.detach().t().contiguous().to(torch.float64)
        self.register_buffer("weight_wide", wide, persistent=False)

    def forward(self, x):
        k = self.linear.in_features
        n = self.linear.out_features
        shape = x.shape
        x2 = x.reshape(-1, k).contiguous()
        m = x2.shape[0]

        w = self.weight_wide
        if w.dtype != torch.float64:
            w = w.to(torch.float64)

        x_wide = torch.empty((m, k), device=x2.device, dtype=torch.float64)
        total = m * k
        CAST_BLOCK = 2048
        widen_kernel[(triton.cdiv(total, CAST_BLOCK),)](
            x2, x_wide, total, BLOCK=CAST_BLOCK, num_warps=4
        )

        acc = torch.mm(x_wide, w)

        out = torch.empty((m, n), device=x2.device, dtype=torch.float32)
        BLOCK = 2048
        bias_relu_div_kernel[(m, triton.cdiv(n, BLOCK))](
            acc, self.linear.bias, out, n, float(self.divisor), BLOCK=BLOCK, num_warps=4
        )
        return out.reshape(shape[:-1] + (n,))
