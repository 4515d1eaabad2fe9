import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def pool_linear_partial(
    x, weight, partial,
    batch, channels, classes,
    HW: tl.constexpr,
    K_SPLIT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_HW: tl.constexpr,
):
    split = tl.program_id(0)
    first_n = tl.program_id(1).to(tl.int64) * BLOCK_N
    first_m = tl.program_id(2).to(tl.int64) * BLOCK_M

    m = tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    hw = tl.arange(0, BLOCK_HW)
    inside_m = first_m + m < batch
    inside_n = first_n + n < classes

    x_base = x + first_m * channels * HW
    w_base = weight + first_n * channels

    product = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for step in tl.static_range(0, K_SPLIT, BLOCK_K):
        k = split * K_SPLIT + step + tl.arange(0, BLOCK_K)
        inside_k = k < channels

        # the slice of the weights, as [BLOCK_K, BLOCK_N]
        w = tl.load(
            w_base + n[None, :] * channels + k[:, None],
            mask=inside_k[:, None] & inside_n[None, :],
            other=0.0,
        )

        # the average pool of the slice of channels, kept in registers
        rows = m[:, None, None] * (channels * HW) + k[None, :, None] * HW
        inside_rows = inside_m[:, None, None] & inside_k[None, :, None]
        total = tl.zeros([BLOCK_M, BLOCK_K, BLOCK_HW], dtype=tl.float32)
        for start in tl.static_range(0, HW, BLOCK_HW):
            at = start + hw
            total += tl.load(
                x_base + rows + at[None, None, :],
                mask=inside_rows & (at < HW)[None, None, :],
                other=0.0,
            )
        pooled = tl.sum(total, axis=2) / HW

        product += tl.dot(pooled, w, input_precision="ieee")

    out_base = partial + (split.to(tl.int64) * batch + first_m) * classes + first_n
    tl.store(
        out_base + m[:, None] * classes + n[None, :],
        product,
        mask=inside_m[:, None] & inside_n[None, :],
    )


@triton.jit
def linear_combine(
    partial, bias, out,
    total, classes, splits,
    BLOCK_S: tl.constexpr,
    BLOCK: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    s = tl.arange(0, BLOCK_S)
    values = tl.load(
        partial + s.to(tl.int64)[:, None] * total + at[None, :],
        mask=(s < splits)[:, None] & inside[None, :],
        other=0.0,
    )
    b = tl.load(bias + at % classes, mask=inside, other=0.0)
    tl.store(out + at, tl.sum(values, axis=0) + b, mask=inside)


def pool_linear(x, weight, bias):
    x = x.contiguous()
    weight = weight.contiguous()
    batch, channels, height, width = x.shape
    classes = weight.shape[0]

    K_SPLIT = 32
    BLOCK_M = 16
    BLOCK_N = 256
    BLOCK_K = 16
    BLOCK_HW = 16
    splits = triton.cdiv(channels, K_SPLIT)

    partial = torch.empty((splits, batch, classes), device=x.device, dtype=torch.float32)
    out = torch.empty((batch, classes), device=x.device, dtype=x.dtype)

    pool_linear_partial[
        (splits, triton.cdiv(classes, BLOCK_N), triton.cdiv(batch, BLOCK_M))
    ](
        x, weight, partial,
        batch, channels, classes,
        HW=height * width,
        K_SPLIT=K_SPLIT,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        BLOCK_HW=BLOCK_HW,
        num_warps=8,
    )

    BLOCK = 64
    total = batch * classes
    linear_combine[(triton.cdiv(total, BLOCK),)](
        partial, bias, out,
        total, classes, splits,
        BLOCK_S=triton.next_power_of_2(splits),
        BLOCK=BLOCK,
        num_warps=4,
    )
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
        x = pool_linear(x, self.fc.weight, self.fc.bias)

        return x
