#pragma once
/// Texts with Triton kernels that the specifications of the offline coder's transformations change.

#include <string>
#include <vector>

namespace program_texts {

/// What every module begins with.
inline const std::string head = R"(import torch
import torch.nn as nn
import triton
import triton.language as tl


)";

/// A product whose programs have two numbers.
inline const std::string product = head + R"(@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, K, BK):  # along the rows of a
        k = k0 + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        c = torch.empty(M, N, device=a.device)
        product[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, c, M, N, K, BM=64, BN=64, BK=32)
        return c
)";

/// A product whose programs have one number, and pointers that go on.
inline const std::string numbered = head + R"(@triton.jit
def numbered(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """Adds up a row of blocks of a times a column of blocks of b."""
    pid = tl.program_id(0)
    num_n = tl.cdiv(N, BLOCK_N)
    pid_m = pid // num_n
    pid_n = pid % num_n
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < left) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c_ptrs, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)
        numbered[grid](a, b, c, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, num_warps=4)
        return c
)";

/// Sums of rows, each by one program that goes along it.
inline const std::string sums = head + R"(@triton.jit
def sums(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row + at, mask=at < columns, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        sums[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
)";

/// Each element on its own.
inline const std::string elementwise = head + R"(@triton.jit
def scaled(x, out, total, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < total)
    tl.store(out + at, 2.0 * v, mask=at < total)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        total = x.numel()
        scaled[(triton.cdiv(total, 256),)](x, out, total, BLOCK=256)
        return out
)";

/// Two kernels of which the second one goes on with what the first one has stored.
inline const std::string pair = head + R"(# the first half
@triton.jit
def shift(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Adds one."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)  # once
    tl.store(y_ptr + offs, x + 1.0, mask=mask)


@triton.jit
def gate(h_ptr, z_ptr, out_ptr, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    x = tl.load(h_ptr + at, mask=inside, other=0.0)
    # of another input
    z = tl.load(z_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + at, x * tl.sigmoid(z), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, z):
        n = x.numel()
        hidden = torch.empty_like(x)
        grid = (triton.cdiv(n, 512),)
        shift[grid](x, hidden, n, BLOCK=512)
        out = torch.empty_like(hidden)
        gate[grid](hidden, z, out, hidden.numel(), BLOCK=512, num_warps=4)
        return out
)";

/// One kernel three times.
inline const std::string thrice = head + R"(@triton.jit
def half(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    v += 1.0
    tl.store(y + at, 0.5 * v, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        a = torch.empty_like(x)
        b = torch.empty_like(a)
        c = torch.empty_like(b)
        grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
        half[grid](x, a, x.numel(), BLOCK=128)
        half[grid](a, b, a.numel(), BLOCK=128)
        half[grid](b, c, b.numel(), BLOCK=128)
        return c
)";

/// A text, and small shapes that its module is called with.
struct Program {
  std::string name{};
  std::string text{};
  /// JSON: a list of calls, each a list of shapes.
  std::string calls{};
};

/// All of them.
inline std::vector<Program> all() {
  return {{"product", product, "[[[70, 50], [50, 130]], [[600, 20], [20, 70]], [[1, 1], [1, 1]]]"},
          {"numbered", numbered, "[[[70, 50], [50, 130]], [[300, 20], [20, 70]], [[1, 1], [1, 1]]]"},
          {"elementwise", elementwise, "[[[3000]], [[2, 3]], [[256]]]"},
          {"pair", pair, "[[[700], [700]], [[2, 3], [2, 3]]]"},
          {"thrice", thrice, "[[[700]], [[2, 3]]]"},
          {"sums", sums, "[[[3, 2500]], [[1, 1]], [[2, 1024]]]"}};
}

} // namespace program_texts
