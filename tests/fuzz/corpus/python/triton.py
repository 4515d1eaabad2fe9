import triton, triton.language as tl
@triton.autotune(configs=[triton.Config({"B": b}, num_warps=w) for b in (64, 128) for w in [4, 8]], key=["n"])
@triton.jit
def kernel(x, y, n, B: tl.constexpr, /, **more):
    """adds"""
    i = tl.program_id(0) * B + tl.arange(0, B)
    for k in range(0, tl.cdiv(n, B), 2):  # twice
        v = tl.load(x + i + \
            k, mask=i < n, other=0.)
        tl.store(y + i, v if k > 0 else -v ** 2, mask=(i < n) & ~(i == 3))
    while 0 < k <= 1 is not True: break
    else: return
#@ launch kernel
grid = lambda meta: (triton.cdiv(n, meta["B"]),)
kernel[grid](x, y, n=0x1F, B=1_000j, *a, **b)
