import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width: int, heads=4, *, scale: float = 1.0):
        super(Model, self).__init__()
        self.net = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor, mask=None) -> torch.Tensor:
        y = self.net(x) + self.bias
        if mask is not None and x.dim() > 2:
            y = y.masked_fill(mask[:, None, ..., 0] == 0, -1e9)
        elif not x.is_cuda:
            pass
        parts = [F.softmax(y[i], dim=-1) for i in range(y.size(0)) if i % 2 == 0]
        parts.append(torch.max(x, y)); x *= 2
        return torch.cat(parts, 1) @ y.T, {"sum": x.sum(), **{"n": 1}}
