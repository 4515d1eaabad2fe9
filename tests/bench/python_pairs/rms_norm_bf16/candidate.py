import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_row(x, weight, result, features, epsilon, FEATURES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    feature = tl.arange(0, FEATURES)
    within = feature < features
    values = tl.load(x + row * features + feature, mask=within, other=0.0).to(tl.float32)
    weights = tl.load(weight + feature, mask=within, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / features + epsilon)
    tl.store(result + row * features + feature, (values * scale * weights).to(tl.bfloat16), mask=within)


class ModelNew(nn.Module):
    def __init__(self, features, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features, dtype=torch.bfloat16))
        self.epsilon = epsilon

    def forward(self, x):
        rows, features = x.shape
        result = torch.empty_like(x)
        norm_row[(rows,)](x, self.weight, result, features, self.epsilon, FEATURES=triton.next_power_of_2(features),
                          num_warps=8)
        return result
