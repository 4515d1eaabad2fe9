import triton
import triton.language as tl

#@ launch add<<<ceil_div(n, 1024), 1>>>(x, y, z, n)
@triton.jit
def add(x, y, z, n):
    at = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    mask = at < n
    tl.store(z + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)
