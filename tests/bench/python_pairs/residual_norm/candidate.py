import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_norm(made, offset, stream, weight, bias, total, normed, features, epsilon, FEATURES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    feature = tl.arange(0, FEATURES)
    within = feature < features
    at = row * features + feature
    values = tl.load(made + at, mask=within, other=0.0) + tl.load(offset + feature, mask=within, other=0.0)
    values = tl.load(stream + at, mask=within, other=0.0) + values
    tl.store(total + at, values, mask=within)
    mean = tl.sum(values, axis=0) / features
    centred = tl.where(within, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / features + epsilon)
    weights = tl.load(weight + feature, mask=within, other=0.0)
    shifts = tl.load(bias + feature, mask=within, other=0.0)
    tl.store(normed + at, centred * scale * weights + shifts, mask=within)


class ModelNew(nn.Module):
    """The product stays with the library; its bias, the sum and the norm follow in one pass."""

    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.norm = nn.LayerNorm(features)

    def forward(self, x, stream):
        rows, features = x.shape
        made = torch.mm(x, self.linear.weight.t())
        total = torch.empty_like(stream)
        normed = torch.empty_like(stream)
        add_norm[(rows,)](made, self.linear.bias, stream, self.norm.weight, self.norm.bias, total, normed, features,
                          self.norm.eps, FEATURES=triton.next_power_of_2(features))
        return total, normed
