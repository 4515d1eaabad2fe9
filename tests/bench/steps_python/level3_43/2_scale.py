import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def causal_softmax(scores, length, scale, KEYS: tl.constexpr):
    """One row of scores becomes probabilities, in its place; keys behind the query get none."""
    row = tl.program_id(0).to(tl.int64)
    query = row % length
    key = tl.arange(0, KEYS)
    values = tl.load(scores + row * length + key, mask=key <= query, other=float("-inf")) * scale
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(scores + row * length + key, values / tl.sum(values, axis=0), mask=key < length)


class ModelNew(nn.Module):
    """Causal attention: products of the library, a kernel for scale, mask and softmax."""

    def __init__(self, n_embd, n_head, attn_pdrop, resid_pdrop, max_seqlen):
        super().__init__()
        if attn_pdrop != 0.0:
            raise ValueError("probabilities are not dropped here")
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.resid_dropout = nn.Dropout(resid_pdrop)
        self.heads = n_head

    def forward(self, x):
        batch, length, width = x.shape
        size = width // self.heads
        parts = self.c_attn(x).view(batch, length, 3, self.heads, size).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        scores = q @ k.transpose(-2, -1)
        causal_softmax[(batch * self.heads * length,)](scores, length, 1.0 / math.sqrt(size),
                                                       KEYS=triton.next_power_of_2(length))
        y = scores @ v
        y = y.transpose(1, 2).contiguous().view(batch, length, width)
        return self.resid_dropout(self.c_proj(y))
