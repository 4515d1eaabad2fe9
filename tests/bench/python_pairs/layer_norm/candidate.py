import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_rows(x, weight, bias, result, rows, features, epsilon, ROWS: tl.constexpr, FEATURES: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    feature = tl.arange(0, FEATURES)
    within = (row < rows)[:, None] & (feature < features)[None, :]
    at = row.to(tl.int64)[:, None] * features + feature[None, :]
    values = tl.load(x + at, mask=within, other=0.0)
    mean = tl.sum(values, axis=1) / features
    centred = tl.where(within, values - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1) / features + epsilon)
    weights = tl.load(weight + feature, mask=feature < features, other=0.0)
    shifts = tl.load(bias + feature, mask=feature < features, other=0.0)
    values = centred * scale[:, None] * weights[None, :] + shifts[None, :]
    tl.store(result + at, tl.where(values > 0.0, values, 0.1 * values), mask=within)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        rows, features = x.shape
        result = torch.empty_like(x)
        norm_rows[(triton.cdiv(rows, 2),)](x, self.norm.weight, self.norm.bias, result, rows, features, self.norm.eps,
                                           ROWS=2, FEATURES=triton.next_power_of_2(features), num_warps=4)
        return result
