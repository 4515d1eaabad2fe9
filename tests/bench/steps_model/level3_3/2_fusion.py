import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_bias_relu(parts, bias, out, part_stride, columns, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < columns
    p = parts + row + col
    acc = tl.load(p, mask=inside, other=0.0)
    for _ in tl.static_range(1, SPLITS):
        p += part_stride
        acc += tl.load(p, mask=inside, other=0.0)
    acc += tl.load(bias + col, mask=inside, other=0.0)
    # a NaN is kept, as by the ReLU of the model
    acc = tl.where(acc < 0.0, 0.0, acc)
    tl.store(out + row + col, acc, mask=inside)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 16}, num_warps=4, num_stages=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 16}, num_warps=8, num_stages=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 32}, num_warps=8, num_stages=3),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 16}, num_warps=4, num_stages=4),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 16}, num_warps=8, num_stages=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 16}, num_warps=4, num_stages=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 128, "BLOCK_K": 16}, num_warps=4, num_stages=4),
    ],
    key=["m", "n", "k"],
)
@triton.jit
def linear_bias_relu(
    a, b, bias, out, m, n, k,
    EVEN_K: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # out[m, n] = relu(a[m, k] @ b[k, n] + bias[n])
    pid = tl.program_id(0).to(tl.int64)
    tiles_n = tl.cdiv(n, BLOCK_N)
    rows = (pid // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (pid % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    row_in = rows < m
    col_in = cols < n

    a_at = a + rows[:, None] * k + depth[None, :]
    b_at = b + depth[:, None].to(tl.int64) * n + cols[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, k, BLOCK_K):
        if EVEN_K:
            a_tile = tl.load(a_at, mask=row_in[:, None], other=0.0)
            b_tile = tl.load(b_at, mask=col_in[None, :], other=0.0)
        else:
            depth_in = depth < k - k0
            a_tile = tl.load(a_at, mask=row_in[:, None] & depth_in[None, :], other=0.0)
            b_tile = tl.load(b_at, mask=depth_in[:, None] & col_in[None, :], other=0.0)
        acc = tl.dot(a_tile, b_tile, acc, input_precision="ieee")
        a_at += BLOCK_K
        b_at += BLOCK_K * n

    shift = tl.load(bias + cols, mask=col_in, other=0.0)
    acc += shift[None, :]
    # a NaN is kept, as by the ReLU of the model
    acc = tl.where(acc < 0.0, 0.0, acc)
    tl.store(out + rows[:, None] * n + cols[None, :], acc, mask=row_in[:, None] & col_in[None, :])


def choose_splits(m, n, k):
    # with a short K, the smaller tiles of the fused kernel fill the units without a split
    if k < 4096 and ((m + 63) // 64) * ((n + 127) // 128) >= 96:
        return 1
    tiles = ((m + 127) // 128) * ((n + 127) // 128)
    # a long K pays for two blocks on each unit, a short one for a single block
    target = 264 if k >= 4096 else 132
    splits = 1
    while tiles * splits * 2 <= target and k % (splits * 2 * 64) == 0 and k // (splits * 2) >= 256:
        splits *= 2
    return splits


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_layer_sizes, output_size):
        super(ModelNew, self).__init__()

        layers = []
        current_input_size = input_size

        for hidden_size in hidden_layer_sizes:
            layers.append(nn.Linear(current_input_size, hidden_size))
            layers.append(nn.ReLU())
            current_input_size = hidden_size

        layers.append(nn.Linear(current_input_size, output_size))

        self.network = nn.Sequential(*layers)

        # weights as [K, N], from the weights alone, made once
        self.count = len(hidden_layer_sizes) + 1
        for i in range(self.count):
            weight = self.network[2 * i].weight.detach()
            self.register_buffer("weight_t_%d" % i, weight.t().contiguous(), persistent=False)

    def forward(self, x):
        lead = x.shape[:-1]
        h = x.reshape(-1, x.shape[-1]).contiguous()
        m = h.shape[0]

        for i in range(self.count - 1):
            wt = getattr(self, "weight_t_%d" % i)
            bias = self.network[2 * i].bias
            k, n = wt.shape[0], wt.shape[1]
            splits = choose_splits(m, n, k)
            out = torch.empty((m, n), device=h.device, dtype=h.dtype)
            if splits > 1:
                a = h.view(m, splits, k // splits).transpose(0, 1)
                b = wt.view(splits, k // splits, n)
                parts = torch.bmm(a, b)
                block = min(1024, triton.next_power_of_2(n))
                sum_bias_relu[(m, triton.cdiv(n, block))](
                    parts, bias, out, m * n, n,
                    SPLITS=splits, BLOCK=block, num_warps=4,
                )
            else:
                grid = lambda meta, m=m, n=n: (
                    triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),
                )
                # every BLOCK_K of the configurations divides 32
                linear_bias_relu[grid](h, wt, bias, out, m, n, k, EVEN_K=(k % 32 == 0))
            h = out

        last = self.count - 1
        y = torch.addmm(self.network[2 * last].bias, h, getattr(self, "weight_t_%d" % last))
        return y.view(*lead, y.shape[-1])
