import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def sum_bias_act(parts, bias, out, N, S: tl.constexpr, HAS_RELU: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < N
    base = row * N
    plane = tl.num_programs(0).to(tl.int64) * N
    b = tl.load(bias + col, mask=inside, other=0.0)
    acc = tl.load(parts + base + col, mask=inside, other=0.0)
    for s in tl.static_range(1, S):
        acc += tl.load(parts + s * plane + base + col, mask=inside, other=0.0)
    acc += b
    if HAS_RELU:
        acc = tl.where(acc < 0.0, 0.0, acc)
    tl.store(out + base + col, acc, mask=inside)


def choose_split(m, n, k):
    # parts of K such that 128 x 128 tiles, two per unit, fill the device in one wave
    tiles = ((m + 127) // 128) * ((n + 127) // 128)
    s = 1
    while s < 8 and tiles * s * 2 <= 264 and k % (s * 2 * 4) == 0 and k // (s * 2) >= 128:
        s *= 2
    return s


def linear_act(x, weight, bias, relu):
    m, k = x.shape
    n = weight.shape[0]
    s = choose_split(m, n, k)
    if s == 1 or m < 2 or n < 2:
        y = F.linear(x, weight, bias)
        return torch.relu(y) if relu else y
    kp = k // s
    a = x.view(m, s, kp).permute(1, 0, 2)        # [s, m, kp], a view
    b = weight.view(n, s, kp).permute(1, 2, 0)   # [s, kp, n], a view
    parts = torch.bmm(a, b)                      # [s, m, n]
    out = torch.empty((m, n), device=x.device, dtype=x.dtype)
    BLOCK = min(1024, triton.next_power_of_2(n))
    sum_bias_act[(m, triton.cdiv(n, BLOCK))](
        parts, bias, out, n, S=s, HAS_RELU=relu, BLOCK=BLOCK, num_warps=8 if BLOCK >= 1024 else 4
    )
    return out


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

    def forward(self, x):
        lead = x.shape[:-1]
        h = x.reshape(-1, x.shape[-1]).contiguous()
        linears = [layer for layer in self.network if isinstance(layer, nn.Linear)]
        last = len(linears) - 1
        for i, layer in enumerate(linears):
            h = linear_act(h, layer.weight.detach(), layer.bias.detach(), i < last)
        return h.view(*lead, h.shape[-1])
