"""What a lifter is made of: its configuration, checked, without torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Self

from pose.system.json_values import Json, like

INITS = ("t-fixup", "dt-fixup", "xavier", "torch")  # `pose.lifter.initialization` has them
NORMS = ("none", "pre", "post")
TOKENS = ("frames", "joints", "hierarchical")
RESIDUALS = ("plain", "highway", "none", "reversible")
RECURRENT = ("rnn", "rnn-output", "lstm", "gru", "birnn", "bilstm", "bigru")  # `pose.lifter.recurrent` has them
MODELS = ("transformer", *RECURRENT)
LARGEST = {"dim": 4096, "depth": 64, "heads": 256, "expansion": 16}
FARTHEST_HOPS = 8  # from an ankle to a wrist
LARGEST_OPTION = 100_000  # of a mechanism, such as a window in frames


@dataclass(frozen=True, kw_only=True)
class LifterConfig:
    """What the network is made of.

    model: transformer, or a stack of recurrent cells, which has no attention, heads or feed-forward of its own: rnn,
    lstm, gru, each with bi in front for both directions of time, or rnn-output, which is fed back its answer only.
    dim, depth, heads: width, blocks, attention heads. expansion: feed-forward width over dim. attention: a name in
    `pose.attention.ATTENTIONS`, with its options. norm: none, pre or post. init: t-fixup, dt-fixup, xavier or torch.
    streaming: causal, with the asked-for frame beside the newest one. shared_maps: so many neighbouring blocks share
    the attention map of the first of them. shared_layers: one block's weights serve at all depths. adaptive_depth: the
    same, for each frame as often as it needs, at most `depth` times. tokens: frames; joints, one for each joint of each
    frame, in space and then in time; or hierarchical, half of the blocks among the joints of a frame, which are pooled
    into its token. skeleton_mask: joints attend to those beside them on the body only. joint_hops: with joints and
    attention: blocks, one attention over both, frames of a block x joints at most so many bones away; 0 for none.
    residual: plain, highway, none, or reversible, whose training keeps no activations and computes them again.
    """

    model: str = "transformer"
    dim: int = 192
    depth: int = 5
    heads: int = 6
    expansion: int = 3
    attention: str = "softmax"
    attention_options: dict[str, int | float | str | None] = field(default_factory=dict)
    norm: str = "pre"
    init: str = "xavier"
    streaming: bool = False
    shared_maps: int = 1
    shared_layers: bool = False
    adaptive_depth: bool = False
    tokens: str = "frames"
    skeleton_mask: bool = False
    joint_hops: int = 0
    residual: str = "plain"

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise ValueError(f"norm: {self.norm!r} is not one of {', '.join(NORMS)}")
        for name in ("dim", "depth", "heads", "expansion"):
            if not 1 <= getattr(self, name) <= LARGEST[name]:
                raise ValueError(f"{name}: must be 1 to {LARGEST[name]}, got {getattr(self, name)}")
        for name in ("causal", "streaming", "length"):
            if name in self.attention_options:
                raise ValueError(f"attention_options: {name} follows from the model and cannot be set; see streaming")
        check_norm_init(self.norm, self.init)
        for name, known in (("tokens", TOKENS), ("residual", RESIDUALS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}: {getattr(self, name)!r} is not one of {', '.join(known)}")
        self._check_model()
        self._check_form()

    def _check_model(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"model: {self.model!r} is not one of {', '.join(MODELS)}")
        if self.model == "transformer":
            if not 1 <= self.shared_maps <= self.depth:
                raise ValueError(f"shared_maps: must be 1 to depth, {self.depth} blocks, got {self.shared_maps}")
            if self.shared_maps > 1 and self.shared_layers:
                raise ValueError("shared_maps: cannot be combined with one block for all depths; use one of the two")
            return
        for name in _USUAL:
            if getattr(self, name) != _USUAL[name]:
                raise ValueError(f"{name}: only for transformers; remove it for model {self.model}")
        if self.init in ("t-fixup", "dt-fixup"):
            raise ValueError(f"init: {self.init} scales residual branches, which model {self.model} does not have")
        if self.model.startswith("bi") and self.streaming:
            raise ValueError(f"model: {self.model} is bidirectional and cannot stream; use {self.model[2:]}")
        if self.model.startswith("bi") and self.dim % 2:
            raise ValueError(f"dim: must be even for the two directions of model {self.model}")

    def _check_form(self) -> None:
        """What a transformer's tokens, residuals and depth do not go together with."""
        if self.tokens == "frames" and self.skeleton_mask:
            raise ValueError("skeleton_mask: needs tokens: joints or hierarchical")
        if self.tokens == "hierarchical" and self.depth < 2:
            raise ValueError("tokens: hierarchical needs a depth of at least 2")
        if self.joint_hops:
            self._check_neighbourhoods()
        if self.residual == "reversible":
            self._check_reversible()
        unusual = [name for name in ("tokens", "residual", "adaptive_depth") if getattr(self, name) != _USUAL[name]]
        if self.init in ("t-fixup", "dt-fixup") and unusual:
            raise ValueError(
                f"init: {self.init} is derived for a stack of blocks with two plain residual branches each, which "
                f"{unusual[0]} changes; use init: xavier"
            )
        if self.adaptive_depth and self.tokens == "joints":
            raise ValueError("adaptive_depth: needs tokens: frames or hierarchical")
        if self.adaptive_depth and (self.shared_layers or self.shared_maps > 1):
            raise ValueError("adaptive_depth: uses one block for all depths; remove shared_layers and shared_maps")

    def _check_neighbourhoods(self) -> None:
        """Blocks of time x joints are one attention, in place of one in space and one in time."""
        if not 0 <= self.joint_hops <= FARTHEST_HOPS:
            raise ValueError(
                f"joint_hops: must be 0 to {FARTHEST_HOPS} bones (from ankle to wrist), got {self.joint_hops}"
            )
        for name, only in (("tokens", "joints"), ("attention", "blocks")):
            if getattr(self, name) != only:
                raise ValueError(
                    f"joint_hops: attends in blocks of time x joints, so it needs {name}: {only}, got "
                    f"{getattr(self, name)}"
                )
        if self.skeleton_mask:
            raise ValueError("skeleton_mask: cannot be combined with joint_hops; remove one of the two")
        if self.shared_maps > 1:
            raise ValueError("shared_maps: attention in blocks of time x joints has no map of frames to share")

    def _check_reversible(self) -> None:
        """A stack is computed back from what came out of it, so each branch adds to one of its two streams alone."""
        if self.norm == "post":
            raise ValueError("residual: reversible cannot be combined with norm: post; use norm: pre or none")
        for name, only in (("tokens", "frames"), ("shared_maps", 1), ("adaptive_depth", False)):
            if getattr(self, name) != only:
                raise ValueError(f"residual: reversible needs {name}: {only}, got {getattr(self, name)}")

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """What `to_dict` gave, from anywhere. Raises ValueError or TypeError for anything else."""
        checked = like(values, cls().to_dict())
        for name, value in checked.get("attention_options", {}).items():
            if isinstance(value, list | dict) or (isinstance(value, int | float) and not abs(value) <= LARGEST_OPTION):
                raise ValueError(f"attention_options: {str(value)[:40]} is not a value for {name[:40]!r}")
        return cls(**checked)

    def to_dict(self) -> dict[str, Json]:
        return asdict(self)


_USUAL = {  # a transformer's own fields
    "attention": "softmax",
    "attention_options": {},
    "heads": 6,
    "expansion": 3,
    "shared_maps": 1,
    "shared_layers": False,
    "adaptive_depth": False,
    "tokens": "frames",
    "skeleton_mask": False,
    "joint_hops": 0,
    "residual": "plain",
}


def check_norm_init(norm: str, init: str) -> None:
    """ValueError for an unknown `init`, and for one that takes the place of the LayerNorm it is combined with."""
    if init not in INITS:
        raise ValueError(f"init: {init!r} is not one of {', '.join(INITS)}")
    if init in ("t-fixup", "dt-fixup") and norm != "none":
        raise ValueError(
            f"init: {init} scales the residual branches for a stack without LayerNorm; a norm ({norm}) would undo the "
            "scaling. Use norm: none with it, or init: xavier with this norm"
        )
