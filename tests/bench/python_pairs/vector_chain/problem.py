import torch
import torch.nn as nn

elements = 1 << 26
factor = 1.7


class Model(nn.Module):
    """A gate on a scaled sum, element by element."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, y, z):
        inner = x * self.factor + y
        return torch.sigmoid(inner) * z - inner.abs()


def get_inputs():
    return [torch.rand(elements), torch.rand(elements), torch.rand(elements)]


def get_init_inputs():
    return [factor]
