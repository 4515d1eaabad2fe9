import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def widen_pair(a, b, a_wide, b_wide, a_count, b_count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(1) == 0:
        inside = at < b_count
        v = tl.load(b + at, mask=inside, other=0.0)
        tl.store(b_wide + at, v.to(tl.float64), mask=inside)
    else:
        inside = at < a_count
        v = tl.load(a + at, mask=inside, other=0.0)
        tl.store(a_wide + at, v.to(tl.float64), mask=inside)


@triton.jit
def narrow(wide, out, count, BLOCK: tl.constexpr):
    # from the end to the start: what the product wrote last may still be in L2
    block = (tl.num_programs(0) - 1 - tl.program_id(0)).to(tl.int64)
    at = block * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    v = tl.load(wide + at, mask=inside, other=0.0)
    tl.store(out + at, v.to(tl.float32), mask=inside)


class ModelNew(nn.Module):
    """
    C = A * B of two f32 matrices, multiplied on the f64 tensor cores.
    """
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, A, B):
        if A.dtype != torch.float32 or B.dtype != torch.float32 or A.dim() != 2 or B.dim() != 2:
            return torch.matmul(A, B)
        A = A.contiguous()
        B = B.contiguous()
        a_wide = torch.empty(A.shape, device=A.device, dtype=torch.float64)
        b_wide = torch.empty(B.shape, device=B.device, dtype=torch.float64)
        BLOCK = 2048
        a_count = A.numel()
        b_count = B.numel()
        widen_pair[(triton.cdiv(max(a_count, b_count), BLOCK), 2)](
            A, B, a_wide, b_wide, a_count, b_count, BLOCK=BLOCK, num_warps=8)
        wide = torch.matmul(a_wide, b_wide)
        out = torch.empty(wide.shape, device=A.device, dtype=torch.float32)
        count = out.numel()
        narrow[(triton.cdiv(count, BLOCK),)](wide, out, count, BLOCK=BLOCK, num_warps=8)
        return out
