import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_norm(x, added, weight, bias, result, rows, width, epsilon, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Adds a number and normalises rows of the last axis, several to a program."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    within = (row < rows)[:, None] & (column < width)[None, :]
    at = row.to(tl.int64)[:, None] * width + column[None, :]
    values = tl.load(x + at, mask=within, other=0.0) + tl.load(added)
    mean = tl.sum(tl.where(within, values, 0.0), axis=1) / width
    centred = tl.where(within, values - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1) / width + epsilon)
    weights = tl.load(weight + column, mask=column < width, other=0.0)
    shifts = tl.load(bias + column, mask=column < width, other=0.0)
    tl.store(result + at, centred * scale[:, None] * weights[None, :] + shifts[None, :], mask=within)


class ModelNew(nn.Module):
    """Transposed convolution of the library, then a kernel for sum and norm; pooling and GELU stay."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, sum_weight, norm_shape,
                 pool_kernel_size):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride,
                                                 padding=padding, output_padding=output_padding)
        self.sum_weight = nn.Parameter(torch.tensor(sum_weight))
        self.norm = nn.LayerNorm(norm_shape)
        self.avg_pool = nn.AvgPool3d(kernel_size=pool_kernel_size)
        self.gelu = nn.GELU()

    def forward(self, x):
        x = self.conv_transpose(x)
        width = x.shape[-1]
        rows = x.numel() // width
        normed = torch.empty_like(x)
        add_norm[(triton.cdiv(rows, 16),)](
            x, self.sum_weight, self.norm.weight, self.norm.bias, normed, rows, width, self.norm.eps, ROWS=16,
            WIDTH=triton.next_power_of_2(width))
        x = self.avg_pool(normed)
        x = self.gelu(x)
        return x
