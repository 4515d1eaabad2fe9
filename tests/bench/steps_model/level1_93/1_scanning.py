import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 512}, num_warps=1),
        triton.Config({"BLOCK": 512}, num_warps=4),
        triton.Config({"BLOCK": 1024}, num_warps=4),
        triton.Config({"BLOCK": 1024}, num_warps=8),
        triton.Config({"BLOCK": 2048}, num_warps=4),
        triton.Config({"BLOCK": 2048}, num_warps=8),
        triton.Config({"BLOCK": 4096}, num_warps=8),
        triton.Config({"BLOCK": 4096}, num_warps=16),
    ],
    key=["columns"],
)
@triton.jit
def masked_sums(x, mask, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    x_row = x + row
    mask_row = mask + row
    out_row = out + row
    lanes = tl.arange(0, BLOCK)
    v = tl.load(x_row + lanes, mask=lanes < columns, other=0.0)
    m = tl.load(mask_row + lanes, mask=lanes < columns, other=0)
    before = 0.0
    for start in range(0, columns, BLOCK):
        at = start + lanes
        # the next block is under way while this one is scanned
        after = at + BLOCK
        v_next = tl.load(x_row + after, mask=after < columns, other=0.0)
        m_next = tl.load(mask_row + after, mask=after < columns, other=0)
        p = v * m.to(tl.float32)
        s = tl.cumsum(p, 0) + before
        tl.store(out_row + at, s, mask=at < columns)
        before += tl.sum(p, 0)
        v = v_next
        m = m_next


class ModelNew(nn.Module):
    def __init__(self, dim):
        super(ModelNew, self).__init__()
        self.dim = dim

    def forward(self, x, mask):
        if (
            x.dtype != torch.float32
            or mask.dtype not in (torch.bool, torch.uint8)
            or x.dim() == 0
            or x.shape != mask.shape
            or x.numel() == 0
        ):
            return torch.cumsum(x * mask, dim=self.dim)
        dim = self.dim % x.dim()
        x = x.movedim(dim, -1).contiguous()
        mask = mask.movedim(dim, -1).contiguous()
        if mask.dtype == torch.bool:
            mask = mask.view(torch.uint8)
        out = torch.empty_like(x)
        columns = x.shape[-1]
        rows = x.numel() // columns
        masked_sums[(rows,)](x, mask, out, columns)
        return out.movedim(-1, dim)
