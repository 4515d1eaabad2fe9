import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_blocks(x, mask, sums, length, blocks, BLOCK: tl.constexpr):
    """The sum of the chosen elements of one block of a row."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    chosen = tl.load(mask + row * length + at, mask=at < length, other=0).to(tl.float32)
    values = tl.load(x + row * length + at, mask=at < length, other=0.0)
    tl.store(sums + row * blocks + block, tl.sum(values * chosen, axis=0))


@triton.jit
def scan_sums(sums, before, blocks, BLOCKS: tl.constexpr):
    """What comes before each block of a row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCKS)
    values = tl.load(sums + row * blocks + at, mask=at < blocks, other=0.0)
    tl.store(before + row * blocks + at, tl.cumsum(values, axis=0), mask=at < blocks)


@triton.jit
def scan_blocks(x, mask, before, result, length, blocks, BLOCK: tl.constexpr):
    """The running sums of one block, from what the blocks before it sum to."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    chosen = tl.load(mask + row * length + at, mask=at < length, other=0).to(tl.float32)
    values = tl.load(x + row * length + at, mask=at < length, other=0.0)
    start = tl.load(before + row * blocks + block - 1, mask=block > 0, other=0.0)
    sums = tl.cumsum(values * chosen, axis=0)
    tl.store(result + row * length + at, sums + start, mask=at < length)


class ModelNew(nn.Module):
    """Running sums along the last of two axes."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        rows, length = x.shape
        block = 2048
        blocks = triton.cdiv(length, block)
        sums = torch.empty((rows, blocks), device=x.device, dtype=x.dtype)
        before = torch.empty_like(sums)
        result = torch.empty_like(x)
        sum_blocks[(rows, blocks)](x, mask, sums, length, blocks, BLOCK=block)
        scan_sums[(rows,)](sums, before, blocks, BLOCKS=triton.next_power_of_2(blocks), num_warps=1)
        scan_blocks[(rows, blocks)](x, mask, before, result, length, blocks, BLOCK=block)
        return result
