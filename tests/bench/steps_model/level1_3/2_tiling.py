import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BM": 128, "BN": 128, "BK": 16}, num_warps=4, num_stages=3),
        triton.Config({"BM": 128, "BN": 128, "BK": 16}, num_warps=4, num_stages=2),
        triton.Config({"BM": 64, "BN": 128, "BK": 16}, num_warps=2, num_stages=3),
        triton.Config({"BM": 128, "BN": 256, "BK": 16}, num_warps=8, num_stages=3),
        triton.Config({"BM": 256, "BN": 128, "BK": 16}, num_warps=8, num_stages=3),
        triton.Config({"BM": 128, "BN": 128, "BK": 16}, num_warps=8, num_stages=3),
        triton.Config({"BM": 64, "BN": 128, "BK": 16}, num_warps=4, num_stages=3),
        triton.Config({"BM": 64, "BN": 128, "BK": 16}, num_warps=4, num_stages=4, maxnreg=128),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def bmm_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    tiles_m: tl.constexpr = (M + BM - 1) // BM
    tiles_n: tl.constexpr = (N + BN - 1) // BN
    even: tl.constexpr = (M % BM + N % BN + K % BK) == 0

    # The row blocks of one column block run next to each other, and all
    # blocks of one batch before those of the next.
    pid = tl.program_id(0).to(tl.int64)
    batch = pid // (tiles_m * tiles_n)
    tile = pid % (tiles_m * tiles_n)
    m0 = (tile % tiles_m) * BM
    n0 = (tile // tiles_m) * BN

    offs_m = tl.arange(0, BM)
    offs_n = tl.arange(0, BN)
    offs_k = tl.arange(0, BK)

    a_base = a_ptr + batch * M * K + m0 * K
    b_base = b_ptr + batch * K * N + n0
    a_ptrs = a_base + (offs_m[:, None] * K + offs_k[None, :])
    b_ptrs = b_base + (offs_k[:, None] * N + offs_n[None, :])

    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for k0 in range(0, K, BK):
        if even:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(
                a_ptrs,
                mask=((m0 + offs_m) < M)[:, None] & ((k0 + offs_k) < K)[None, :],
                other=0.0,
            )
            b = tl.load(
                b_ptrs,
                mask=((k0 + offs_k) < K)[:, None] & ((n0 + offs_n) < N)[None, :],
                other=0.0,
            )
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BK
        b_ptrs += BK * N

    c_base = c_ptr + batch * M * N + m0 * N + n0
    c_ptrs = c_base + (offs_m[:, None] * N + offs_n[None, :])
    if even:
        tl.store(c_ptrs, acc)
    else:
        tl.store(
            c_ptrs,
            acc,
            mask=((m0 + offs_m) < M)[:, None] & ((n0 + offs_n) < N)[None, :],
        )


class ModelNew(nn.Module):
    """
    Performs batched matrix multiplication (C = A * B) where A, B, and C have the same batch dimension.
    """
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        A = A.contiguous()
        B = B.contiguous()
        batch, M, K = A.shape
        N = B.shape[2]
        C = torch.empty((batch, M, N), device=A.device, dtype=A.dtype)
        if C.numel() == 0:
            return C
        grid = lambda meta: (
            batch * triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),
        )
        bmm_kernel[grid](A, B, C, M=M, N=N, K=K)
        return C
