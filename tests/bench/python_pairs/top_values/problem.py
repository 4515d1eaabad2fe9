import torch
import torch.nn as nn

rows = 8192
columns = 16384
kept = 32


class Model(nn.Module):
    """Probabilities of the best scores of a row; all others get none."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def forward(self, x):
        least = torch.topk(x, self.kept, dim=-1).values[:, -1:]
        scores = torch.where(x >= least, x, float("-inf"))
        return torch.softmax(scores, dim=-1)


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return [kept]
