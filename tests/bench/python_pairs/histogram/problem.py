import torch
import torch.nn as nn

rows = 4096
columns = 10000
bins = 64


class Model(nn.Module):
    """How many values of a row lie in each of some equal intervals of [0, 1]; those outside count at the ends."""

    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, x):
        interval = (x.clamp(0.0, 1.0) * self.bins).long().clamp(0, self.bins - 1)
        counts = torch.zeros(x.shape[0], self.bins, device=x.device)
        return counts.scatter_add(1, interval, torch.ones_like(x))


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return [bins]
