import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def turn(both, cosine, sine, queries, keys, length, heads, HALF: tl.constexpr, HEADS: tl.constexpr):
    """All heads of one place, of queries or of keys."""
    row = tl.program_id(0).to(tl.int64)
    second = tl.program_id(1)
    head = tl.arange(0, HEADS)
    feature = tl.arange(0, HALF)
    within = (head < heads)[:, None] & (feature >= 0)[None, :]
    width = heads * 2 * HALF
    at = head[:, None] * (2 * HALF) + feature[None, :]
    low = tl.load(both + (row * 2 + second) * width + at, mask=within, other=0.0)
    high = tl.load(both + (row * 2 + second) * width + at + HALF, mask=within, other=0.0)
    angle = row % length * HALF + feature
    cosines = tl.load(cosine + angle)[None, :]
    sines = tl.load(sine + angle)[None, :]
    result = queries + row * width
    if second == 1:
        result = keys + row * width
    tl.store(result + at, low * cosines - high * sines, mask=within)
    tl.store(result + at + HALF, high * cosines + low * sines, mask=within)


class ModelNew(nn.Module):
    """The weights of both layers lie in one matrix, so that the library makes one product; turns follow in one pass.

    Cosines and sines depend on sizes alone, so PyTorch computes them.
    """

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.queries = nn.Linear(width, width, bias=False)
        self.keys = nn.Linear(width, width, bias=False)
        self.register_buffer("packed", torch.cat([self.queries.weight, self.keys.weight]).detach())

    def forward(self, x):
        batch, length, width = x.shape
        size = width // self.heads
        half = size // 2
        both = torch.mm(x.view(batch * length, width), self.packed.t())
        speeds = 10000.0 ** (-torch.arange(half, device=x.device) / half)
        angles = torch.arange(length, device=x.device)[:, None] * speeds[None, :]
        queries = torch.empty((batch, length, self.heads, size), device=x.device, dtype=x.dtype)
        keys = torch.empty_like(queries)
        turn[(batch * length, 2)](both, angles.cos(), angles.sin(), queries, keys, length, self.heads, HALF=half,
                                  HEADS=triton.next_power_of_2(self.heads))
        return queries, keys
