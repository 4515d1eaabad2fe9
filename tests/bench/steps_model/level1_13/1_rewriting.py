import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def widen_pair(a, b, a_wide, b_wide, a_count, b_count, a_blocks, BLOCK: tl.constexpr):
    # The first a_blocks programs convert a, the others convert b.
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    if pid < a_blocks:
        offs = pid.to(tl.int64) * BLOCK + lane
        inside = offs < a_count
        v = tl.load(a + offs, mask=inside, other=0.0)
        tl.store(a_wide + offs, v.to(tl.float64), mask=inside)
    else:
        offs = (pid - a_blocks).to(tl.int64) * BLOCK + lane
        inside = offs < b_count
        v = tl.load(b + offs, mask=inside, other=0.0)
        tl.store(b_wide + offs, v.to(tl.float64), mask=inside)


@triton.jit
def narrow(c_wide, c, count, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    inside = offs < count
    v = tl.load(c_wide + offs, mask=inside, other=0.0)
    tl.store(c + offs, v.to(tl.float32), mask=inside)


class ModelNew(nn.Module):
    """
    C = A * B in f64 on the matrix units, rounded once to f32.
    """
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, A, B):
        if (A.dtype != torch.float32 or B.dtype != torch.float32
                or A.dim() != 2 or B.dim() != 2
                or A.numel() == 0 or B.numel() == 0):
            return torch.matmul(A, B)

        A = A.contiguous()
        B = B.contiguous()
        M = A.shape[0]
        N = B.shape[1]

        A_wide = torch.empty(A.shape, device=A.device, dtype=torch.float64)
        B_wide = torch.empty(B.shape, device=B.device, dtype=torch.float64)

        BLOCK = 2048
        a_blocks = triton.cdiv(A.numel(), BLOCK)
        b_blocks = triton.cdiv(B.numel(), BLOCK)
        widen_pair[(a_blocks + b_blocks,)](
            A, B, A_wide, B_wide, A.numel(), B.numel(), a_blocks,
            BLOCK=BLOCK, num_warps=4,
        )

        C_wide = torch.mm(A_wide, B_wide)

        C = torch.empty((M, N), device=A.device, dtype=torch.float32)
        narrow[(triton.cdiv(C.numel(), BLOCK),)](
            C_wide, C, C.numel(), BLOCK=BLOCK, num_warps=4,
        )
        return C
