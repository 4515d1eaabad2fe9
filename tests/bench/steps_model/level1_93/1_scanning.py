import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 1024}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK": 1024}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK": 2048}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK": 2048}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK": 2048}, num_warps=16, num_stages=1),
        triton.Config({"BLOCK": 4096}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK": 4096}, num_warps=16, num_stages=1),
        triton.Config({"BLOCK": 8192}, num_warps=16, num_stages=1),
    ],
    key=["columns"],
)
@triton.jit
def masked_cumsum(x_ptr, m_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    lane = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + row + lane, mask=lane < columns, other=0.0)
    m = tl.load(m_ptr + row + lane, mask=lane < columns, other=0)
    before = 0.0
    for start in range(0, columns, BLOCK):
        at = start + lane
        v = a * m.to(tl.float32)
        # the next block is on its way while this one is scanned
        following = at + BLOCK
        a = tl.load(x_ptr + row + following, mask=following < columns, other=0.0)
        m = tl.load(m_ptr + row + following, mask=following < columns, other=0)
        tl.store(out_ptr + row + at, tl.cumsum(v, 0) + before, mask=at < columns)
        before += tl.sum(v, 0)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super(ModelNew, self).__init__()
        self.dim = dim

    def forward(self, x, mask):
        x, mask = torch.broadcast_tensors(x, mask)
        # the scanned dimension last; nothing is copied where it is the last already
        x = x.movedim(self.dim, -1).contiguous()
        mask = mask.movedim(self.dim, -1).contiguous()
        if mask.dtype == torch.bool:
            mask = mask.view(torch.uint8)
        out = torch.empty_like(x)
        columns = x.shape[-1]
        if x.numel() > 0:
            rows = x.numel() // columns
            masked_cumsum[(rows,)](x, mask, out, columns)
        return out.movedim(-1, self.dim)
