import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_N": 128, "BLOCK_K": 16, "BLOCK_S": 32}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_N": 128, "BLOCK_K": 16, "BLOCK_S": 64}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_N": 128, "BLOCK_K": 32, "BLOCK_S": 32}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_N": 256, "BLOCK_K": 16, "BLOCK_S": 64}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_N": 256, "BLOCK_K": 32, "BLOCK_S": 32}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_N": 256, "BLOCK_K": 32, "BLOCK_S": 64}, num_warps=16, num_stages=1),
        triton.Config({"BLOCK_N": 512, "BLOCK_K": 16, "BLOCK_S": 64}, num_warps=16, num_stages=1),
    ],
    key=["B", "K", "N"],
)
@triton.jit
def pool_linear_partial(x, weight, partial, B, K, N,
                        HW: tl.constexpr, CHUNK: tl.constexpr, BLOCK_B: tl.constexpr,
                        BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_S: tl.constexpr):
    # Program (split, block of outputs, block of images): averages CHUNK channels over
    # the HW positions and multiplies them with the matching columns of the weight.
    split = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rows = tl.program_id(2).to(tl.int64) * BLOCK_B + tl.arange(0, BLOCK_B)
    col_in = cols < N
    row_in = rows < B

    acc = tl.zeros([BLOCK_B, BLOCK_N], dtype=tl.float32)
    for start in tl.static_range(0, CHUNK, BLOCK_K):
        ks = split * CHUNK + start + tl.arange(0, BLOCK_K)
        k_in = ks < K
        w = tl.load(weight + cols[None, :].to(tl.int64) * K + ks[:, None],
                    mask=k_in[:, None] & col_in[None, :], other=0.0)

        base = (rows[:, None, None] * K + ks[None, :, None]) * HW
        base_in = row_in[:, None, None] & k_in[None, :, None]
        total = tl.zeros([BLOCK_B, BLOCK_K, BLOCK_S], dtype=tl.float32)
        for s in tl.static_range(0, HW, BLOCK_S):
            pos = s + tl.arange(0, BLOCK_S)
            total += tl.load(x + base + pos[None, None, :],
                             mask=base_in & (pos < HW)[None, None, :], other=0.0)
        pooled = tl.sum(total, axis=2) / HW

        acc = tl.dot(pooled, w, acc, input_precision="ieee")

    out = partial + (split * B + rows[:, None]) * N + cols[None, :]
    tl.store(out, acc, mask=row_in[:, None] & col_in[None, :])


@triton.jit
def sum_partials(partial, bias, out, total, N,
                 SPLITS: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    parts = tl.arange(0, BLOCK_P)
    values = tl.load(partial + parts[:, None].to(tl.int64) * total + at[None, :],
                     mask=(parts < SPLITS)[:, None] & inside[None, :], other=0.0)
    b = tl.load(bias + at % N, mask=inside, other=0.0)
    tl.store(out + at, tl.sum(values, axis=0) + b, mask=inside)


def pool_linear(x, weight, bias):
    x = x.contiguous()
    weight = weight.contiguous()
    B, K = x.shape[0], x.shape[1]
    HW = x.shape[2] * x.shape[3]
    N = weight.shape[0]
    CHUNK = 32
    BLOCK_B = 16
    splits = triton.cdiv(K, CHUNK)
    partial = torch.empty((splits, B, N), device=x.device, dtype=torch.float32)
    out = torch.empty((B, N), device=x.device, dtype=torch.float32)
    grid = lambda meta: (splits, triton.cdiv(N, meta["BLOCK_N"]), triton.cdiv(B, BLOCK_B))
    pool_linear_partial[grid](x, weight, partial, B, K, N, HW=HW, CHUNK=CHUNK, BLOCK_B=BLOCK_B)
    BLOCK = 64
    sum_partials[(triton.cdiv(B * N, BLOCK),)](
        partial, bias, out, B * N, N,
        SPLITS=splits, BLOCK_P=triton.next_power_of_2(splits), BLOCK=BLOCK, num_warps=4)
    return out


class ModelNew(nn.Module):
    def __init__(self, num_classes=1000):
        """
        EfficientNetB1 architecture implementation.

        :param num_classes: The number of output classes (default is 1000 for ImageNet).
        """
        super(ModelNew, self).__init__()

        # Initial convolutional layer
        self.conv1 = nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)

        # MBConv blocks
        self.mbconv1 = self._make_mbconv_block(32, 16, 1, 1)
        self.mbconv2 = self._make_mbconv_block(16, 24, 2, 6)
        self.mbconv3 = self._make_mbconv_block(24, 40, 2, 6)
        self.mbconv4 = self._make_mbconv_block(40, 80, 2, 6)
        self.mbconv5 = self._make_mbconv_block(80, 112, 1, 6)
        self.mbconv6 = self._make_mbconv_block(112, 192, 2, 6)
        self.mbconv7 = self._make_mbconv_block(192, 320, 1, 6)

        # Final convolutional layer
        self.conv2 = nn.Conv2d(320, 1280, kernel_size=1, stride=1, padding=0, bias=False)
        self.bn2 = nn.BatchNorm2d(1280)

        # Fully connected layer
        self.fc = nn.Linear(1280, num_classes)

    def _make_mbconv_block(self, in_channels, out_channels, stride, expand_ratio):
        """
        Creates a MBConv block.

        :param in_channels: Number of input channels.
        :param out_channels: Number of output channels.
        :param stride: Stride of the depthwise convolution.
        :param expand_ratio: Expansion ratio for the hidden layer.
        :return: A sequential MBConv block.
        """
        hidden_dim = round(in_channels * expand_ratio)
        return nn.Sequential(
            nn.Conv2d(in_channels, hidden_dim, kernel_size=1, stride=1, padding=0, bias=False),
            nn.BatchNorm2d(hidden_dim),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden_dim, hidden_dim, kernel_size=3, stride=stride, padding=1, groups=hidden_dim, bias=False),
            nn.BatchNorm2d(hidden_dim),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden_dim, out_channels, kernel_size=1, stride=1, padding=0, bias=False),
            nn.BatchNorm2d(out_channels),
        )

    def forward(self, x):
        """
        Forward pass of the EfficientNetB1 model.

        :param x: Input tensor, shape (batch_size, 3, 240, 240)
        :return: Output tensor, shape (batch_size, num_classes)
        """
        x = F.relu(self.bn1(self.conv1(x)))

        x = self.mbconv1(x)
        x = self.mbconv2(x)
        x = self.mbconv3(x)
        x = self.mbconv4(x)
        x = self.mbconv5(x)
        x = self.mbconv6(x)
        x = self.mbconv7(x)

        x = F.relu(self.bn2(self.conv2(x)))
        return pool_linear(x, self.fc.weight, self.fc.bias)
