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


def choose_splits(m, n, k):
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
            if splits > 1:
                a = h.view(m, splits, k // splits).transpose(0, 1)
                b = wt.view(splits, k // splits, n)
                parts = torch.bmm(a, b)
            else:
                parts = torch.mm(h, wt)
            out = torch.empty((m, n), device=h.device, dtype=h.dtype)
            block = min(1024, triton.next_power_of_2(n))
            sum_bias_relu[(m, triton.cdiv(n, block))](
                parts, bias, out, m * n, n,
                SPLITS=splits, BLOCK=block, num_warps=4,
            )
            h = out

        last = self.count - 1
        y = torch.addmm(self.network[2 * last].bias, h, getattr(self, "weight_t_%d" % last))
        return y.view(*lead, y.shape[-1])
