import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice

batch_size = 256


@triton.jit
def bias_tanh(h, bias, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    lane = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < columns
    v = tl.load(h + row + lane, mask=inside, other=0.0)
    b = tl.load(bias + lane, mask=inside, other=0.0)
    tl.store(h + row + lane, libdevice.tanh(v + b), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, input_size: int, hidden_size: int, output_size: int):
        super(ModelNew, self).__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.output_size = output_size
        self.hidden = torch.randn((batch_size, hidden_size))

        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.tanh = nn.Tanh()

    def forward(self, x: torch.Tensor, initial_hidden=None) -> torch.Tensor:
        if initial_hidden is not None:
            state = initial_hidden.expand(self.hidden.shape)
        else:
            state = self.hidden
        state = state.to(device=x.device, dtype=x.dtype).contiguous()
        x = x.contiguous()

        weight = self.i2h.weight.detach()
        w_x = weight[:, : self.input_size]
        w_h = weight[:, self.input_size:]

        # cat((x, state)) @ weight.T without the concatenation
        hidden = torch.mm(x, w_x.t())
        hidden.addmm_(state, w_h.t())

        rows, columns = hidden.shape
        BLOCK = 2048
        bias_tanh[(rows, triton.cdiv(columns, BLOCK))](
            hidden, self.i2h.bias.detach(), columns, BLOCK=BLOCK, num_warps=8
        )

        self.hidden = hidden
        return torch.addmm(self.h2o.bias.detach(), hidden, self.h2o.weight.detach().t())
