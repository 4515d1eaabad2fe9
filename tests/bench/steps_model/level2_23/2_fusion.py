import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def group_norm_mean(y, weight, bias, partial, arrivals, out, eps,
                    SIZE: tl.constexpr, CHUNKS: tl.constexpr, BLOCK: tl.constexpr,
                    GROUPS: tl.constexpr, PER_GROUP: tl.constexpr,
                    GROUPS_BLOCK: tl.constexpr, PER_GROUP_BLOCK: tl.constexpr):
    # One program per group of one sample: statistics of the group and the sum of its normalised
    # channel means; the last program of a sample adds the groups in a fixed order.
    pid = tl.program_id(0).to(tl.int64)
    sample = pid // GROUPS
    group = pid % GROUPS

    lane = tl.arange(0, BLOCK)
    member = tl.arange(0, PER_GROUP_BLOCK)
    channel_mean = tl.zeros((PER_GROUP_BLOCK,), dtype=tl.float32)

    running_count = 0.0
    running_mean = 0.0
    running_square = 0.0
    for c in range(PER_GROUP):
        row = y + (pid * PER_GROUP + c) * SIZE
        channel_sum = 0.0
        for k in range(CHUNKS):
            at = k * BLOCK + lane
            inside = at < SIZE
            value = tl.load(row + at, mask=inside, other=0.0)
            count = tl.minimum(SIZE - k * BLOCK, BLOCK).to(tl.float32)
            chunk_sum = tl.sum(value, axis=0)
            mean = chunk_sum / count
            deviation = tl.where(inside, value - mean, 0.0)
            square = tl.sum(deviation * deviation, axis=0)

            # Merge the chunk into the statistics of the group.
            total_count = running_count + count
            delta = mean - running_mean
            share = count / total_count
            running_mean = running_mean + delta * share
            running_square = running_square + square + delta * delta * (running_count * share)
            running_count = total_count
            channel_sum = channel_sum + chunk_sum
        channel_mean = tl.where(member == c, channel_sum / SIZE, channel_mean)

    real = member < PER_GROUP
    group_mean = tl.sum(channel_mean, axis=0) / PER_GROUP
    variance = running_square / (SIZE * PER_GROUP)
    rstd = 1.0 / tl.sqrt(variance + eps)

    channel = group * PER_GROUP + member
    scale = tl.load(weight + channel, mask=real, other=0.0)
    shift = tl.load(bias + channel, mask=real, other=0.0)
    normalised = (channel_mean - group_mean) * rstd * scale + shift
    normalised = tl.where(real, normalised, 0.0)
    tl.store(partial + pid, tl.sum(normalised, axis=0))

    # The partial result is visible before the arrival is counted.
    tl.debug_barrier()
    arrived = tl.atomic_add(arrivals + sample, 1, sem="acq_rel", scope="gpu")
    if arrived == GROUPS - 1:
        g = tl.arange(0, GROUPS_BLOCK)
        part = tl.load(partial + sample * GROUPS + g, mask=g < GROUPS, other=0.0,
                       cache_modifier=".cg")
        tl.store(out + sample, tl.sum(part, axis=0) / (GROUPS * PER_GROUP))


class ModelNew(nn.Module):
    """
    Model that performs a 3D convolution, applies Group Normalization, computes the mean
    """
    def __init__(self, in_channels, out_channels, kernel_size, num_groups):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        """
        Args:
            x (torch.Tensor): Input tensor of shape (batch_size, in_channels, D, H, W).
        Returns:
            torch.Tensor: Output tensor of shape (batch_size,).
        """
        y = self.conv(x).contiguous()
        samples, channels = y.shape[0], y.shape[1]
        size = y.shape[2] * y.shape[3] * y.shape[4]
        groups = self.group_norm.num_groups
        per_group = channels // groups

        block = 4096
        chunks = triton.cdiv(size, block)
        partial = torch.empty((samples * groups,), device=y.device, dtype=torch.float32)
        arrivals = torch.zeros((samples,), device=y.device, dtype=torch.int32)
        out = torch.empty((samples,), device=y.device, dtype=torch.float32)

        group_norm_mean[(samples * groups,)](
            y, self.group_norm.weight, self.group_norm.bias, partial, arrivals, out,
            self.group_norm.eps,
            SIZE=size, CHUNKS=chunks, BLOCK=block,
            GROUPS=groups, PER_GROUP=per_group,
            GROUPS_BLOCK=triton.next_power_of_2(groups),
            PER_GROUP_BLOCK=triton.next_power_of_2(per_group),
            num_warps=4,
        )
        return out
