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
def narrow_panel(panel_wide, c, first, count, BLOCK: tl.constexpr):
    # Rounds one panel of the product, which begins at element `first` of c.
    # The rows written last are the likeliest to be in the L2 cache: they come first.
    pid = (tl.num_programs(0) - 1 - tl.program_id(0)).to(tl.int64)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    inside = offs < count
    v = tl.load(panel_wide + offs, mask=inside, other=0.0)
    tl.store(c + first + offs, v.to(tl.float32), mask=inside)


class ModelNew(nn.Module):
    """
    C = A * B in f64 on the matrix units, rounded once to f32, panel by panel.
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

        C = torch.empty((M, N), device=A.device, dtype=torch.float32)

        # About 32 MiB of f64 results per panel, whole tiles of 128 rows, never skinny.
        panel_rows = max(512, ((1 << 22) // N) // 128 * 128)
        for low in range(0, M, panel_rows):
            high = min(low + panel_rows, M)
            panel_wide = torch.mm(A_wide[low:high], B_wide)
            count = (high - low) * N
            narrow_panel[(triton.cdiv(count, BLOCK),)](
                panel_wide, C, low * N, count,
                BLOCK=BLOCK, num_warps=4,
            )
        return C
