import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def normalise_rows(x, weight, bias, inside_w, eps, W: tl.constexpr, BLOCK_W: tl.constexpr):
    mean = tl.sum(x, axis=1) / W
    centred = x - mean[:, None]
    if BLOCK_W != W:
        squares = tl.where(inside_w[None, :], centred * centred, 0.0)
    else:
        squares = centred * centred
    variance = tl.sum(squares, axis=1) / W
    rstd = 1.0 / tl.sqrt(variance + eps)
    return centred * rstd[:, None] * weight[None, :] + bias[None, :]


@triton.jit
def load_row(base, mask, add, inside_w, W: tl.constexpr, BLOCK_W: tl.constexpr):
    x = tl.load(base, mask=mask, other=0.0) + add
    if BLOCK_W != W:
        x = tl.where(inside_w[None, :], x, 0.0)
    return x


@triton.autotune(
    configs=[
        triton.Config({"ROWS": 8}, num_warps=2),
        triton.Config({"ROWS": 8}, num_warps=4),
        triton.Config({"ROWS": 16}, num_warps=4),
        triton.Config({"ROWS": 32}, num_warps=4),
        triton.Config({"ROWS": 32}, num_warps=8),
        triton.Config({"ROWS": 64}, num_warps=8),
    ],
    key=["total"],
)
@triton.jit
def add_norm_pool_gelu(
    x_ptr, sum_weight_ptr, weight_ptr, bias_ptr, out_ptr, total, eps,
    D: tl.constexpr, H: tl.constexpr, W: tl.constexpr,
    OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,
    BLOCK_W: tl.constexpr, ROWS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside_row = row < total
    cols = tl.arange(0, BLOCK_W)
    inside_w = cols < W
    mask = inside_row[:, None] & inside_w[None, :]

    # the pooled row (plane, od, oh) is made of the rows (2 od + i, 2 oh + j)
    oh = row % OH
    rest = row // OH
    od = rest % OD
    plane = rest // OD
    first = (plane * D + od * 2) * H + oh * 2
    base = x_ptr + first[:, None] * W + cols[None, :]

    add = tl.load(sum_weight_ptr)
    x0 = load_row(base, mask, add, inside_w, W, BLOCK_W)
    x1 = load_row(base + W, mask, add, inside_w, W, BLOCK_W)
    x2 = load_row(base + H * W, mask, add, inside_w, W, BLOCK_W)
    x3 = load_row(base + (H * W + W), mask, add, inside_w, W, BLOCK_W)

    weight = tl.load(weight_ptr + cols, mask=inside_w, other=0.0)
    bias = tl.load(bias_ptr + cols, mask=inside_w, other=0.0)

    acc = normalise_rows(x0, weight, bias, inside_w, eps, W, BLOCK_W)
    acc += normalise_rows(x1, weight, bias, inside_w, eps, W, BLOCK_W)
    acc += normalise_rows(x2, weight, bias, inside_w, eps, W, BLOCK_W)
    acc += normalise_rows(x3, weight, bias, inside_w, eps, W, BLOCK_W)

    even, odd = tl.split(tl.reshape(acc, (ROWS, BLOCK_W // 2, 2)))
    pooled = (even + odd) * 0.125
    result = pooled * 0.5 * (1.0 + tl.erf(pooled * 0.7071067811865476))

    out_cols = tl.arange(0, BLOCK_W // 2)
    out_mask = inside_row[:, None] & (out_cols < OW)[None, :]
    tl.store(out_ptr + row[:, None] * OW + out_cols[None, :], result, mask=out_mask)


class ModelNew(nn.Module):
    """
    Model that performs a 3D transposed convolution, followed by a fused sum, layer normalization,
    average pooling (2, 2, 2), and GELU activation.
    """
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, sum_weight, norm_shape, pool_kernel_size):
        super(ModelNew, self).__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding)
        self.sum_weight = nn.Parameter(torch.tensor(sum_weight))
        self.norm = nn.LayerNorm(norm_shape)
        self.avg_pool = nn.AvgPool3d(kernel_size=pool_kernel_size)
        self.gelu = nn.GELU()

    def forward(self, x):
        x = self.conv_transpose(x).contiguous()
        B, C, D, H, W = x.shape
        OD, OH, OW = D // 2, H // 2, W // 2
        out = torch.empty((B, C, OD, OH, OW), device=x.device, dtype=x.dtype)
        total = B * C * OD * OH
        grid = lambda meta: (triton.cdiv(total, meta["ROWS"]),)
        add_norm_pool_gelu[grid](
            x, self.sum_weight, self.norm.weight, self.norm.bias, out, total, self.norm.eps,
            D=D, H=H, W=W, OD=OD, OH=OH, OW=OW,
            BLOCK_W=triton.next_power_of_2(W),
        )
        return out
