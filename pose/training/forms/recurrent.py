"""Recurrent lifters: a stack of cells instead of attention blocks, with the same inputs and outputs.

A cell combines a frame with its state, whose size is constant; a stream therefore costs the same per frame at any
length. Whole sequences use torch's own loops, and a step does the same arithmetic with the same weights. The input
features include the seconds since the previous frame.

Axes: B batch, T time, D feature, G gates times features.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention import Cache, Context
from pose.lifting.config import LifterConfig
from pose.lifting.format import OUTPUTS

_GATES = {"rnn": 1, "lstm": 4, "gru": 3}
_LAYERS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class Cell(nn.Module):
    """Base class of recurrent cells, from frames (B, T, D) to (B, T, width), with states (B, size) from 0."""

    cache_fields: tuple[str, ...] = ()  # names of the state tensors, which are (B, size) each and start as 0
    width: int  # width of the output
    size: int  # width of the state

    def step(self, x_BD: Tensor, state: Cache) -> tuple[Tensor, Cache]:
        """Process the next frame (B, D). Returns the output of `forward` for this frame, and the new state."""
        raise NotImplementedError


class HiddenRecurrence(Cell):
    """Cell of torch's RNN (tanh), LSTM or GRU, which feeds back the hidden state."""

    # State matrices are initialised orthogonal and input matrices with Xavier, gate by gate. Biases are 0, except that
    # the two biases of LSTM's forget gate sum to 1 (Gers et al., 2000). torch's GRU multiplies the reset gate with the
    # transformed hidden state; Cho et al. (2014) multiply it with the hidden state before the transformation.

    def __init__(self, kind: str, dim: int, *, bidirectional: bool = False) -> None:
        super().__init__()
        self.kind, self.width, self.size = kind, dim, dim // 2 if bidirectional else dim
        self.cache_fields = ("hidden", "cell") if kind == "lstm" else ("hidden",)
        self.layer = _LAYERS[kind](dim, self.size, batch_first=True, bidirectional=bidirectional)
        for name, parameter in self.layer.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(parameter)
                if kind == "lstm" and name.startswith("bias_ih"):
                    nn.init.ones_(parameter.data.view(_GATES[kind], -1)[1])
            else:
                draw = nn.init.orthogonal_ if name.startswith("weight_hh") else nn.init.xavier_uniform_
                for gate in parameter.data.chunk(_GATES[kind]):
                    draw(gate)

    def forward(self, x_BTD: Tensor) -> Tensor:
        output: Tensor = self.layer(x_BTD)[0]
        return output

    def step(self, x_BD: Tensor, state: Cache) -> tuple[Tensor, Cache]:
        layer, hidden = self.layer, state[0]
        input_BG = F.linear(x_BD, _tensor(layer, "weight_ih_l0"), _tensor(layer, "bias_ih_l0"))
        hidden_BG = F.linear(hidden, _tensor(layer, "weight_hh_l0"), _tensor(layer, "bias_hh_l0"))
        if self.kind == "rnn":
            hidden = torch.tanh(input_BG + hidden_BG)
            return hidden, (hidden,)
        if self.kind == "gru":
            (reset, update, new), (past_reset, past_update, past_new) = input_BG.chunk(3, -1), hidden_BG.chunk(3, -1)
            update = torch.sigmoid(update + past_update)
            new = torch.tanh(new + torch.sigmoid(reset + past_reset) * past_new)
            hidden = new + update * (hidden - new)
            return hidden, (hidden,)
        input_gate, forget_gate, new, output_gate = (input_BG + hidden_BG).chunk(4, dim=-1)
        cell = torch.sigmoid(forget_gate) * state[1] + torch.sigmoid(input_gate) * torch.tanh(new)
        hidden = torch.sigmoid(output_gate) * torch.tanh(cell)
        return hidden, (hidden, cell)


class OutputRecurrence(Cell):
    """Cell that feeds back only the previous output o': h = tanh(W x + U o' + b), o = V h + c."""

    cache_fields = ("output",)

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.width = self.size = OUTPUTS
        self.seen, self.back = nn.Linear(dim, dim), nn.Linear(OUTPUTS, dim, bias=False)
        self.out = nn.Linear(dim, OUTPUTS)

    def forward(self, x_BTD: Tensor) -> Tensor:
        seen_BTD = self.seen(x_BTD)
        output, outputs = x_BTD.new_zeros(len(x_BTD), OUTPUTS), []
        for t in range(x_BTD.shape[1]):
            output = self.out(torch.tanh(seen_BTD[:, t] + self.back(output)))
            outputs.append(output)
        return torch.stack(outputs, dim=1)

    def step(self, x_BD: Tensor, state: Cache) -> tuple[Tensor, Cache]:
        output: Tensor = self.out(torch.tanh(self.seen(x_BD) + self.back(state[0])))
        return output, (output,)


class FrameCell(Cell):
    """Cell tanh(W x + b) without a state, used for the layers below an `OutputRecurrence`."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.width, self.size = dim, 0
        self.seen = nn.Linear(dim, dim)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return torch.tanh(self.seen(x_BTD))

    def step(self, x_BD: Tensor, state: Cache) -> tuple[Tensor, Cache]:
        return self(x_BD), state


class RecurrentBlock(nn.Module):
    """Block of one recurrent cell, with LayerNorm before the cell, after it, or not at all."""

    def __init__(self, config: LifterConfig, cell: Cell) -> None:
        super().__init__()
        self.cell = cell
        self.norm1 = nn.LayerNorm(config.dim) if config.norm == "pre" else nn.Identity()
        self.norm2 = nn.LayerNorm(cell.width) if config.norm == "post" else nn.Identity()

    @property
    def cache_fields(self) -> tuple[str, ...]:
        return self.cell.cache_fields

    def forward(self, x: Tensor, context: Context) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):  # rounding errors would accumulate over the frames
            output: Tensor = self.norm2(self.cell(self.norm1(x.float() if x.dtype == torch.bfloat16 else x)))
        return output

    def step(self, x: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """Process one new frame (B, 1, D) as `forward` would; return its output and the new state."""
        y_BD, cache = self.cell.step(self.norm1(x)[:, 0], cache)
        return self.norm2(y_BD)[:, None], cache

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        return tuple(torch.zeros(batch, self.cell.size, device=device, dtype=dtype) for _ in self.cell.cache_fields)

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        """Do nothing, because recurrent cells draw no random numbers."""


def recurrent_blocks(config: LifterConfig) -> list[RecurrentBlock]:
    """Return the stack of a recurrent lifter, first block first."""
    cells: list[Cell]
    if config.model == "rnn-output":
        cells = [*(FrameCell(config.dim) for _ in range(config.depth - 1)), OutputRecurrence(config.dim)]
    else:
        kind = config.model.removeprefix("bi")
        cells = [HiddenRecurrence(kind, config.dim, bidirectional=kind != config.model) for _ in range(config.depth)]
    return [RecurrentBlock(config, cell) for cell in cells]


def _tensor(layer: nn.Module, name: str) -> Tensor:
    return layer.get_parameter(name)
