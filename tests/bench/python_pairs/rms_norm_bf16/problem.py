import torch
import torch.nn as nn

rows = 32768
features = 4096
epsilon = 1e-6


class Model(nn.Module):
    """Root mean square norm of bfloat16, computed in f32."""

    def __init__(self, features, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features, dtype=torch.bfloat16))
        self.epsilon = epsilon

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + self.epsilon)
        return (wide * scale * self.weight.float()).to(x.dtype)


def get_inputs():
    return [torch.rand(rows, features).to(torch.bfloat16)]


def get_init_inputs():
    return [features, epsilon]
