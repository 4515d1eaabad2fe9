import torch
import torch.nn as nn

rows = 4096
shared = 2048
columns = 4096


class Model(nn.Module):
    """A product of two matrices in f32."""

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.rand(rows, shared), torch.rand(shared, columns)]


def get_init_inputs():
    return []
