import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_pool(x, added, weight, bias, result, rows, depth, height, width, epsilon, POOL_DEPTH: tl.constexpr,
              POOL_HEIGHT: tl.constexpr, POOL_WIDTH: tl.constexpr, PLACES: tl.constexpr):
    """One row of the pooled result: the rows that it averages are normalised on the way, one after the other."""
    row = tl.program_id(0)
    pooled_height = height // POOL_HEIGHT
    pooled_width = width // POOL_WIDTH
    pooled_depth = depth // POOL_DEPTH
    plane = row // (pooled_depth * pooled_height)
    z = row // pooled_height % pooled_depth
    y = row % pooled_height
    place = tl.arange(0, PLACES)
    part = tl.arange(0, POOL_WIDTH)
    column = place[:, None] * POOL_WIDTH + part[None, :]
    within = column < width
    weights = tl.load(weight + column, mask=within, other=0.0)
    shifts = tl.load(bias + column, mask=within, other=0.0)
    number = tl.load(added)
    total = tl.zeros((PLACES,), dtype=tl.float32)
    for step in range(POOL_DEPTH * POOL_HEIGHT):
        line = (plane * depth + z * POOL_DEPTH + step // POOL_HEIGHT) * height + y * POOL_HEIGHT + step % POOL_HEIGHT
        values = tl.load(x + line.to(tl.int64) * width + column, mask=within, other=0.0) + number
        mean = tl.sum(tl.where(within, values, 0.0)) / width
        centred = tl.where(within, values - mean, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred) / width + epsilon)
        total += tl.sum(centred * scale * weights + shifts, axis=1)
    total = total / (POOL_DEPTH * POOL_HEIGHT * POOL_WIDTH)
    tl.store(result + row.to(tl.int64) * pooled_width + place, total, mask=place < pooled_width)


class ModelNew(nn.Module):
    """Transposed convolution of the library, then a kernel for sum, norm and pooling; GELU stays."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, sum_weight, norm_shape,
                 pool_kernel_size):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride,
                                                 padding=padding, output_padding=output_padding)
        self.sum_weight = nn.Parameter(torch.tensor(sum_weight))
        self.norm = nn.LayerNorm(norm_shape)
        self.pool = pool_kernel_size
        self.gelu = nn.GELU()

    def forward(self, x):
        x = self.conv_transpose(x)
        batch, channels, depth, height, width = x.shape
        over_depth, over_height, over_width = self.pool
        result = torch.empty((batch, channels, depth // over_depth, height // over_height, width // over_width),
                             device=x.device, dtype=x.dtype)
        rows = batch * channels * (depth // over_depth) * (height // over_height)
        norm_pool[(rows,)](
            x, self.sum_weight, self.norm.weight, self.norm.bias, result, rows, depth, height, width, self.norm.eps,
            POOL_DEPTH=over_depth, POOL_HEIGHT=over_height, POOL_WIDTH=over_width,
            PLACES=triton.next_power_of_2(triton.cdiv(width, over_width)), num_warps=1)
        return self.gelu(result)
