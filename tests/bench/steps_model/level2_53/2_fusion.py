import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def widen(x, out, total, BLOCK: tl.constexpr):
    # exact conversion f32 -> f64
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < total
    v = tl.load(x + offs, mask=inside, other=0.0)
    tl.store(out + offs, v.to(tl.float64), mask=inside)


@triton.jit
def scale_clamp_gelu(acc, out, columns, blocks, scale, low, high,
                     BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    row = (pid // blocks).to(tl.int64) * columns
    col = (pid % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = col < columns
    a = tl.load(acc + row + col, mask=inside, other=0.0)
    # the Linear's result (bias included), rounded once to f32
    v = a.to(tl.float32)
    v = v * scale
    # comparisons that are false for NaN keep it, as clamp does
    v = tl.where(v < low, low, v)
    v = tl.where(v > high, high, v)
    v = v * 0.5 * (1.0 + tl.math.erf(v * 0.7071067811865476))
    tl.store(out + row + col, v, mask=inside)


class ModelNew(nn.Module):
    """
    GEMM with the bias in its epilogue (f64 tensor cores on exactly widened f32
    operands), then scaling, hardtanh and GELU in one pass.
    """
    def __init__(self, in_features, out_features, scaling_factor, hardtanh_min, hardtanh_max):
        super(ModelNew, self).__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor
        self.hardtanh = nn.Hardtanh(min_val=hardtanh_min, max_val=hardtanh_max)
        self.gelu = nn.GELU()
        # depend on the parameters alone: the same values, held in f64
        self.register_buffer(
            "weight64", self.gemm.weight.detach().to(torch.float64), persistent=False
        )
        self.register_buffer(
            "bias64", self.gemm.bias.detach().to(torch.float64), persistent=False
        )

    def forward(self, x):
        shape = x.shape
        k = shape[-1]
        x2 = x.reshape(-1, k).contiguous()
        m = x2.shape[0]
        n = self.gemm.weight.shape[0]

        w64 = self.weight64
        if w64.dtype != torch.float64:
            w64 = w64.to(torch.float64)
        b64 = self.bias64
        if b64.dtype != torch.float64:
            b64 = b64.to(torch.float64)

        x64 = torch.empty((m, k), device=x.device, dtype=torch.float64)
        total = m * k
        BLOCK_CAST = 2048
        widen[(triton.cdiv(total, BLOCK_CAST),)](
            x2, x64, total, BLOCK=BLOCK_CAST, num_warps=8
        )

        # a bias of one dimension is added in the epilogue of the product
        acc = torch.addmm(b64, x64, w64.t())

        out = torch.empty((m, n), device=x.device, dtype=torch.float32)
        BLOCK = min(2048, triton.next_power_of_2(n))
        blocks = triton.cdiv(n, BLOCK)
        scale_clamp_gelu[(m * blocks,)](
            acc, out, n, blocks,
            float(self.scaling_factor),
            float(self.hardtanh.min_val),
            float(self.hardtanh.max_val),
            BLOCK=BLOCK, num_warps=8,
        )
        return out.reshape(shape[:-1] + (n,))
