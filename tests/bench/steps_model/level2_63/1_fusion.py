import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_divide(values, divisor, total, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    value = tl.load(values + at, mask=inside, other=0.0)
    # a comparison with NaN is false, so NaN passes through as in torch.relu
    value = tl.where(value < 0.0, 0.0, value)
    tl.store(values + at, value / divisor, mask=inside)


class ModelNew(nn.Module):
    """
    Simple model that performs a matrix multiplication, applies ReLU, and divides by a constant.
    """
    def __init__(self, in_features, out_features, divisor):
        super(ModelNew, self).__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor

    def forward(self, x):
        # the output of the linear layer is a fresh tensor of ours: it is overwritten in place
        x = self.linear(x).contiguous()
        total = x.numel()
        BLOCK = 1024
        relu_divide[(triton.cdiv(total, BLOCK),)](
            x, float(self.divisor), total, BLOCK=BLOCK, num_warps=4
        )
        return x
