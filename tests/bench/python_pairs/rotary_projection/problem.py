import torch
import torch.nn as nn

batch = 8
length = 2048
heads = 16
size = 64


class Model(nn.Module):
    """Queries and keys of attention: two linear layers, and turns of pairs of features that grow with the place."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.queries = nn.Linear(width, width, bias=False)
        self.keys = nn.Linear(width, width, bias=False)

    def turned(self, x):
        batch, length, width = x.shape
        x = x.view(batch, length, self.heads, width // self.heads)
        half = x.shape[-1] // 2
        speeds = 10000.0 ** (-torch.arange(half, device=x.device) / half)
        angles = torch.arange(length, device=x.device)[:, None] * speeds[None, :]
        cosine, sine = angles.cos()[None, :, None, :], angles.sin()[None, :, None, :]
        low, high = x[..., :half], x[..., half:]
        return torch.cat([low * cosine - high * sine, high * cosine + low * sine], dim=-1)

    def forward(self, x):
        return self.turned(self.queries(x)), self.turned(self.keys(x))


def get_inputs():
    return [torch.rand(batch, length, heads * size)]


def get_init_inputs():
    return [heads * size, heads]
