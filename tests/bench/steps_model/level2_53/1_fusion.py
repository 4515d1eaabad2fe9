import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_hardtanh_gelu(values, result, total, scale, low, high, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    x = tl.load(values + at, mask=inside, other=0.0)
    x = x * scale
    # comparisons are false for NaN, so NaN passes through as in Hardtanh
    x = tl.where(x < low, low, x)
    x = tl.where(x > high, high, x)
    # exact GELU: x * 0.5 * (1 + erf(x / sqrt(2)))
    y = x * 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(result + at, y, mask=inside)


class ModelNew(nn.Module):
    """
    Model that performs a GEMM, scaling, hardtanh, and GELU activation.
    """
    def __init__(self, in_features, out_features, scaling_factor, hardtanh_min, hardtanh_max):
        super(ModelNew, self).__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor
        self.hardtanh = nn.Hardtanh(min_val=hardtanh_min, max_val=hardtanh_max)
        self.gelu = nn.GELU()

    def forward(self, x):
        x = self.gemm(x).contiguous()
        # the product is a fresh tensor that nobody else reads: overwrite it
        x = x.detach()
        total = x.numel()
        BLOCK = 1024
        scale_hardtanh_gelu[(triton.cdiv(total, BLOCK),)](
            x,
            x,
            total,
            float(self.scaling_factor),
            float(self.hardtanh.min_val),
            float(self.hardtanh.max_val),
            BLOCK=BLOCK,
            num_warps=4,
        )
        return x
