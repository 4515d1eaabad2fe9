import torch
import torch.nn as nn

rows = 8192
inner = 2048
outer = 8192


class Model(nn.Module):
    """A linear layer and GELU."""

    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)

    def forward(self, x):
        return nn.functional.gelu(self.linear(x))


def get_inputs():
    return [torch.rand(rows, inner)]


def get_init_inputs():
    return [inner, outer]
