"""What a lifter is made of: its configuration, checked, without torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Self

from pose.system.json_values import Json

INITS = ("t-fixup", "dt-fixup", "xavier", "torch")  # `pose.lifter.initialization` has them
NORMS = ("none", "pre", "post")
RECURRENT = ("rnn", "rnn-output", "lstm", "gru", "birnn", "bilstm", "bigru")  # `pose.lifter.recurrent` has them
MODELS = ("transformer", *RECURRENT)
LARGEST = {"dim": 4096, "depth": 64, "heads": 256, "expansion": 16}
LARGEST_OPTION = 100_000  # of a mechanism, such as a window in frames


@dataclass(frozen=True, kw_only=True)
class LifterConfig:
    """What the network is made of.

    model: transformer, or a stack of recurrent cells, which has no attention, heads or feed-forward of its own: rnn,
    lstm, gru, each with bi in front for both directions of time, or rnn-output, which is fed back its answer only.
    dim, depth, heads: width, blocks, attention heads. expansion: feed-forward width over dim. attention: a name in
    `pose.attention.ATTENTIONS`, with its options. norm: none, pre or post. init: t-fixup, dt-fixup, xavier or torch.
    streaming: causal, with the asked-for frame beside the newest one.
    """

    model: str = "transformer"
    dim: int = 192
    depth: int = 5
    heads: int = 6
    expansion: int = 3
    attention: str = "softmax"
    attention_options: dict[str, int | str | None] = field(default_factory=dict)
    norm: str = "pre"
    init: str = "xavier"
    streaming: bool = False

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise ValueError(f"norm: {self.norm!r} is not one of {', '.join(NORMS)}")
        for name in ("dim", "depth", "heads", "expansion"):
            if not 1 <= getattr(self, name) <= LARGEST[name]:
                raise ValueError(f"{name}: must be 1 to {LARGEST[name]}, got {getattr(self, name)}")
        for name in ("causal", "streaming", "length"):
            if name in self.attention_options:
                raise ValueError(f"attention_options: {name} follows from the model and is no option; see streaming")
        check_norm_init(self.norm, self.init)
        self._check_model()

    def _check_model(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"model: {self.model!r} is not one of {', '.join(MODELS)}")
        if self.model == "transformer":
            return
        for name in ("attention", "attention_options", "heads", "expansion"):
            if getattr(self, name) != _USUAL[name]:
                raise ValueError(f"{name}: of a transformer; model {self.model} has none, so leave it out")
        if self.init in ("t-fixup", "dt-fixup"):
            raise ValueError(f"init: {self.init} scales residual branches, which model {self.model} has not")
        if self.model.startswith("bi") and self.streaming:
            raise ValueError(f"model: {self.model} runs from both ends, so it cannot stream; {self.model[2:]} can")
        if self.model.startswith("bi") and self.dim % 2:
            raise ValueError(f"dim: half of it for each direction of model {self.model}, so it must be even")

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """What `to_dict` gave, from anywhere. Raises ValueError or TypeError for anything else."""
        if not isinstance(values, dict):
            raise TypeError("expected keys and values")
        usual = cls().to_dict()
        for name, value in values.items():
            if type(value) is not type(usual.get(name)):
                raise ValueError(f"{str(name)[:40]!r} is unknown, or {str(value)[:40]!r} is nothing for it")
        for name, value in values.get("attention_options", {}).items():
            if isinstance(value, list | dict) or (isinstance(value, int | float) and not abs(value) <= LARGEST_OPTION):
                raise ValueError(f"attention_options: {str(value)[:40]} is nothing for {name[:40]!r}")
        return cls(**values)

    def to_dict(self) -> dict[str, Json]:
        return asdict(self)


_USUAL = {"attention": "softmax", "attention_options": {}, "heads": 6, "expansion": 3}  # a transformer's own fields


def check_norm_init(norm: str, init: str) -> None:
    """ValueError for an unknown `init`, and for one that takes the place of the LayerNorm it is combined with."""
    if init not in INITS:
        raise ValueError(f"init: {init!r} is not one of {', '.join(INITS)}")
    if init in ("t-fixup", "dt-fixup") and norm != "none":
        raise ValueError(
            f"init: {init} scales the residual branches for a stack without LayerNorm; a norm ({norm}) would undo the "
            "scaling. Use norm: none with it, or init: xavier with this norm"
        )
