import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _nan_min(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_R": 16, "BLOCK_N": 128}, num_warps=4),
        triton.Config({"BLOCK_R": 8, "BLOCK_N": 256}, num_warps=4),
        triton.Config({"BLOCK_R": 16, "BLOCK_N": 256}, num_warps=4),
        triton.Config({"BLOCK_R": 8, "BLOCK_N": 512}, num_warps=4),
        triton.Config({"BLOCK_R": 8, "BLOCK_N": 512}, num_warps=8),
        triton.Config({"BLOCK_R": 16, "BLOCK_N": 512}, num_warps=8),
        triton.Config({"BLOCK_R": 8, "BLOCK_N": 1024}, num_warps=8),
        triton.Config({"BLOCK_R": 8, "BLOCK_N": 1024}, num_warps=16),
    ],
    key=["R", "N"],
)
@triton.jit
def min_kernel(x, out, R: tl.constexpr, N: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    blocks = (N + BLOCK_N - 1) // BLOCK_N
    batch = pid // blocks
    first = (pid % blocks) * BLOCK_N

    lane = tl.arange(0, BLOCK_N)
    rows = tl.arange(0, BLOCK_R)
    inside = first + lane < N

    base = x + batch * R * N + first
    best = tl.full([BLOCK_N], float("inf"), tl.float32)
    for r in range(0, R, BLOCK_R):
        pointers = (base + lane)[None, :] + (rows * N)[:, None]
        if R % BLOCK_R == 0:
            tile = tl.load(pointers, mask=inside[None, :], other=float("inf"))
        else:
            tile = tl.load(
                pointers,
                mask=inside[None, :] & (r + rows < R)[:, None],
                other=float("inf"),
            )
        least = tl.reduce(tile, 0, _nan_min)
        best = tl.minimum(best, least, propagate_nan=tl.PropagateNan.ALL)
        base += BLOCK_R * N
    tl.store(out + batch * N + first + lane, best, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super(ModelNew, self).__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() == 0 or x.numel() == 0 or x.dtype != torch.float32:
            return torch.min(x, dim=self.dim)[0]
        dim = self.dim if self.dim >= 0 else self.dim + x.dim()
        outer = 1
        for size in x.shape[:dim]:
            outer *= size
        R = x.shape[dim]
        N = 1
        for size in x.shape[dim + 1:]:
            N *= size
        if N < 32:
            return torch.min(x, dim=self.dim)[0]

        x = x.contiguous()
        out = torch.empty(
            tuple(x.shape[:dim]) + tuple(x.shape[dim + 1:]),
            device=x.device,
            dtype=x.dtype,
        )
        grid = lambda meta: (outer * triton.cdiv(N, meta["BLOCK_N"]),)
        min_kernel[grid](x, out, R=R, N=N)
        return out
