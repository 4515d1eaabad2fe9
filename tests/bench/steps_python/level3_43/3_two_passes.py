import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention(qkv, y, length, heads, scale, SIZE: tl.constexpr, PADDED: tl.constexpr, QUERIES: tl.constexpr,
              KEYS: tl.constexpr):
    """A block of queries of one head goes over the keys twice: for the largest score, then for sum and result."""
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = tl.program_id(1) % heads
    width = heads * SIZE
    query = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    place = tl.arange(0, PADDED)
    q_at = (batch * length + query[:, None]) * 3 * width + head * SIZE + place[None, :]
    q = tl.load(qkv + q_at, mask=(query < length)[:, None] & (place < SIZE)[None, :], other=0.0) * scale
    largest = tl.full((QUERIES,), float("-inf"), dtype=tl.float32)
    for start in range(0, length, KEYS):
        key = start + tl.arange(0, KEYS)
        k_at = (batch * length + key[:, None]) * 3 * width + width + head * SIZE + place[None, :]
        k = tl.load(qkv + k_at, mask=(key < length)[:, None] & (place < SIZE)[None, :], other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        scores = tl.where((key[None, :] <= query[:, None]) & (key < length)[None, :], scores, float("-inf"))
        largest = tl.maximum(largest, tl.max(scores, axis=1))
    total = tl.zeros((QUERIES,), dtype=tl.float32)
    summed = tl.zeros((QUERIES, PADDED), dtype=tl.float32)
    for start in range(0, length, KEYS):
        key = start + tl.arange(0, KEYS)
        k_at = (batch * length + key[:, None]) * 3 * width + width + head * SIZE + place[None, :]
        k = tl.load(qkv + k_at, mask=(key < length)[:, None] & (place < SIZE)[None, :], other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        scores = tl.where((key[None, :] <= query[:, None]) & (key < length)[None, :], scores, float("-inf"))
        v = tl.load(qkv + k_at + width, mask=(key < length)[:, None] & (place < SIZE)[None, :], other=0.0)
        weights = tl.exp(scores - largest[:, None])
        total += tl.sum(weights, axis=1)
        summed += tl.dot(weights, v, input_precision="ieee")
    y_at = (batch * length + query[:, None]) * width + head * SIZE + place[None, :]
    tl.store(y + y_at, summed / total[:, None], mask=(query < length)[:, None] & (place < SIZE)[None, :])


class ModelNew(nn.Module):
    """Causal attention: projections of the library, one kernel for all between them, without scores in memory."""

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
        qkv = self.c_attn(x)
        y = torch.empty_like(x)
        queries = 32
        attention[(triton.cdiv(length, queries), batch * self.heads)](
            qkv, y, length, self.heads, 1.0 / math.sqrt(size), SIZE=size,
            PADDED=triton.next_power_of_2(size), QUERIES=queries, KEYS=32, num_warps=4, num_stages=2)
        return self.resid_dropout(self.c_proj(y))
