import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part_sums(x, sums, squares, pixels, parts, BLOCK: tl.constexpr, PER_PART: tl.constexpr):
    """Mean, and squared distances from it, of one part of a group's elements."""
    group = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    first = part * PER_PART
    count = tl.minimum(pixels - first, PER_PART)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(0, PER_PART, BLOCK, num_stages=3):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + group * pixels + first + at, mask=at < count, other=0.0)
    mean = tl.sum(total, axis=0) / count
    apart = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(0, PER_PART, BLOCK, num_stages=3):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + group * pixels + first + at, mask=at < count, other=0.0)
        values = tl.where(at < count, values - mean, 0.0)
        apart += values * values
    tl.store(sums + group * parts + part, mean * count)
    tl.store(squares + group * parts + part, tl.sum(apart, axis=0))


@triton.jit
def norm_silu(x, sums, squares, weight, bias, result, channels, plane, pixels, parts, groups, epsilon,
              PER_PART: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """One block of one channel: what the parts of its group found is combined in each program."""
    image = (tl.program_id(0) // channels).to(tl.int64)
    channel = tl.program_id(0) % channels
    group = image * groups + channel // (channels // groups)
    part = tl.arange(0, PARTS)
    has = part < parts
    count = tl.where(has, tl.minimum(pixels - part * PER_PART, PER_PART), 1)
    part_sum = tl.load(sums + group * parts + part, mask=has, other=0.0)
    mean = tl.sum(part_sum, axis=0) / pixels
    apart = tl.where(has, part_sum / count - mean, 0.0)
    squared = tl.load(squares + group * parts + part, mask=has, other=0.0) + apart * apart * count
    scale = tl.rsqrt(tl.sum(squared, axis=0) / pixels + epsilon) * tl.load(weight + channel)
    shift = tl.load(bias + channel) - mean * scale
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    within = at < plane
    first = (image * channels + channel) * plane
    values = tl.load(x + first + at, mask=within, other=0.0) * scale + shift
    tl.store(result + first + at, values / (1.0 + tl.exp(-values)), mask=within)


class ModelNew(nn.Module):
    """The convolution stays with the library."""

    def __init__(self, channels, groups):
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        x = self.convolution(x)
        images, channels, height, width = x.shape
        groups = self.norm.num_groups
        plane = height * width
        pixels = channels // groups * plane
        per_part = 8192
        parts = triton.cdiv(pixels, per_part)
        sums = torch.empty((images * groups, parts), device=x.device, dtype=torch.float32)
        squares = torch.empty_like(sums)
        result = torch.empty_like(x)
        part_sums[(images * groups, parts)](x, sums, squares, pixels, parts, BLOCK=1024, PER_PART=per_part)
        norm_silu[(images * channels, triton.cdiv(plane, 2048))](
            x, sums, squares, self.norm.weight, self.norm.bias, result, channels, plane, pixels, parts, groups,
            self.norm.eps, PER_PART=per_part, PARTS=triton.next_power_of_2(parts), BLOCK=2048)
        return result
