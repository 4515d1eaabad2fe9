import torch
import torch.nn as nn

images = 16
channels = 128
height = 128
width = 128
groups = 32


class Model(nn.Module):
    """A convolution, group norm, and x * sigmoid(x), as between the layers of models that make images."""

    def __init__(self, channels, groups):
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return nn.functional.silu(self.norm(self.convolution(x)))


def get_inputs():
    return [torch.rand(images, channels, height, width)]


def get_init_inputs():
    return [channels, groups]
