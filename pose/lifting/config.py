"""Configuration of a lifter and its validation, without torch."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Self

from pose.lifting.blending import Windows
from pose.utils.json_values import Json, check_config

FIXUPS = ("t-fixup", "t-fixup-centred", "dt-fixup")  # initialisations for networks without LayerNorm and warm-up
INITS = (*FIXUPS, "xavier", "torch")  # implemented in `pose.lifting.initialization`
NORMS = ("none", "pre", "post")
TOKENS = ("frames", "joints", "dual", "hierarchical")
RESIDUALS = ("plain", "highway", "none", "reversible")
# implemented in `pose.training.forms.recurrent`
RECURRENT = ("rnn", "rnn-output", "lstm", "gru", "birnn", "bilstm", "bigru")
MODELS = ("transformer", "mlp", "convolution", *RECURRENT)
MAX_SIZES = {"dim": 4096, "depth": 64, "heads": 256, "expansion": 16}
MAX_JOINT_HOPS = 8  # from an ankle to a wrist
MAX_WINDOW_FRAMES = 4096  # frames
MAX_OPTION_VALUE = 100_000  # bound for numeric options of mechanisms, for example a window in frames


@dataclass(frozen=True, kw_only=True)
class LifterConfig:
    """Architecture of a lifter.

    Attributes:
        model: `transformer`; a stack of recurrent cells: `rnn`, `lstm`, `gru`; `birnn`, `bilstm`, `bigru` for both
            directions of time; `rnn-output`, which feeds back only its output; `mlp`, on single frames; or
            `convolution` over time. Only transformers have attention, heads and `expansion`.
        dim: Width of the tokens.
        depth: Number of blocks.
        heads: Number of attention heads.
        expansion: Width of the feed-forward layers as a multiple of `dim`.
        attention: Name of the attention mechanism, a key of `pose.lifting.attention.ATTENTIONS`.
        attention_options: Options of the attention mechanism.
        norm: Placement of LayerNorm: `none`, `pre` (before each layer) or `post` (after each residual connection).
        last_norm: Whether a transformer with `norm: pre` has a LayerNorm before its head.
        init: Initialisation of the weights (`pose.lifting.initialization`): `t-fixup`, `t-fixup-centred` (tokens scaled
            without their common part), `dt-fixup`, `xavier` or `torch`.
        streaming: Whether the network is causal. Each token then combines the features of the newest frame and of
            the frame whose pose is returned, which may be some frames older.
        shared_maps: Number of consecutive blocks that share the attention map of the first of them.
        shared_layers: Whether all blocks share their weights.
        adaptive_depth: Like `shared_layers`, with a number of steps chosen per frame, at most `depth`.
        tokens: `frames`; `joints`, one token per joint and frame, mixed in space and then in time; `dual`, joint tokens
            in two streams, one mixed in space first, one in time; or `hierarchical`: half of the blocks mix the joints
            of a frame, which are then pooled into a frame token.
        skeleton_mask: Whether joints attend only to their neighbours in the skeleton.
        joint_hops: Maximum distance in bones of joints that attend to each other, in one attention over time and joints
            (`tokens: joints` with `attention: blocks`); 0 for separate attention in space and time.
        residual: `plain`, `highway`, `none`, or `reversible`, which recomputes activations in training to save memory.
        window: Number of frames that a bidirectional lifter processes at a time, at up to 30 frames/s. In faster videos
            it processes as many seconds (`pose.lifting.blending`).
        hop: Number of frames from the start of one window to the start of the next.
    """

    model: str = "transformer"
    dim: int = 192
    depth: int = 5
    heads: int = 6
    expansion: int = 3
    attention: str = "softmax"
    attention_options: dict[str, int | float | str | None] = field(default_factory=dict)
    norm: str = "pre"
    last_norm: bool = True
    init: str = "xavier"
    streaming: bool = False
    shared_maps: int = 1
    shared_layers: bool = False
    adaptive_depth: bool = False
    tokens: str = "frames"
    skeleton_mask: bool = False
    joint_hops: int = 0
    residual: str = "plain"
    window: int = 81
    hop: int = 63

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise ValueError(f"norm: {self.norm!r} is not one of {', '.join(NORMS)}")
        for name in ("dim", "depth", "heads", "expansion"):
            if not 1 <= getattr(self, name) <= MAX_SIZES[name]:
                raise ValueError(f"{name}: must be 1 to {MAX_SIZES[name]}, got {getattr(self, name)}")
        for name in ("causal", "streaming", "length"):
            if name in self.attention_options:
                raise ValueError(f"attention_options: {name} follows from the model and cannot be set; see streaming")
        check_norm_init(self.norm, self.init)
        if not self.last_norm and self.norm != "pre":
            raise ValueError(f"last_norm: only norm: pre has a LayerNorm before the head, got norm: {self.norm}")
        for name, known in (("tokens", TOKENS), ("residual", RESIDUALS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}: {getattr(self, name)!r} is not one of {', '.join(known)}")
        if not 1 <= self.hop <= self.window <= MAX_WINDOW_FRAMES:
            raise ValueError(
                f"window, hop: need 1 <= hop <= window <= {MAX_WINDOW_FRAMES}, got {self.window}, {self.hop}"
            )
        if self.streaming and (self.window, self.hop) != (LifterConfig.window, LifterConfig.hop):
            raise ValueError("window, hop: not for streaming lifters, which process one frame at a time; remove them")
        self._check_model()
        self._check_form()

    @property
    def windows(self) -> Windows:
        """Windows into which a sequence is divided for a bidirectional lifter."""
        return Windows(self.window, self.hop, self.attention not in _FIXED_LENGTH)

    @property
    def form(self) -> str:
        """Form of the network, a key of `pose.lifting.model.FORMS`."""
        if self.model in RECURRENT:
            return "recurrent"
        if self.model != "transformer":
            return self.model
        if self.tokens != "frames":
            return self.tokens
        if self.adaptive_depth:
            return "adaptive"
        return "reversible" if self.residual == "reversible" else "frames"

    def _check_model(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"model: {self.model!r} is not one of {', '.join(MODELS)}")
        if self.model == "transformer":
            if not 1 <= self.shared_maps <= self.depth:
                raise ValueError(f"shared_maps: must be 1 to depth, {self.depth} blocks, got {self.shared_maps}")
            if self.shared_maps > 1 and self.shared_layers:
                raise ValueError("shared_maps: cannot be combined with one block for all depths; use one of the two")
            return
        for name in _TRANSFORMER_OPTIONS:
            if getattr(self, name) != _DEFAULTS[name]:
                raise ValueError(f"{name}: only for transformers; remove it for model {self.model}")
        if self.init in FIXUPS:
            raise ValueError(f"init: {self.init} scales residual branches, which model {self.model} does not have")
        if self.model.startswith("bi") and self.streaming:
            raise ValueError(f"model: {self.model} is bidirectional and cannot stream; use {self.model[2:]}")
        if self.model == "convolution" and (self.streaming or self.norm != "none"):
            raise ValueError("model: convolution is offline and has its own norm; use streaming: false, norm: none")
        if self.model.startswith("bi") and self.dim % 2:
            raise ValueError(f"dim: must be even for the bidirectional model {self.model}, got {self.dim}")

    def _check_form(self) -> None:
        """Check that tokens, residual connections and depth can be combined."""
        if self.tokens == "frames" and self.skeleton_mask:
            raise ValueError("skeleton_mask: needs tokens: joints or hierarchical")
        if self.tokens == "dual" and (self.streaming or self.shared_maps > 1 or self.shared_layers):
            raise ValueError("tokens: dual is offline; remove streaming, shared_maps and shared_layers")
        if self.tokens == "hierarchical" and self.depth < 2:
            raise ValueError("tokens: hierarchical needs a depth of at least 2")
        if self.joint_hops:
            self._check_neighbourhoods()
        if self.residual == "reversible":
            self._check_reversible()
        changed = [name for name in ("tokens", "residual", "adaptive_depth") if getattr(self, name) != _DEFAULTS[name]]
        if self.init in FIXUPS and changed:
            raise ValueError(
                f"init: {self.init} is derived for a stack of blocks with two plain residual branches each, which "
                f"{changed[0]} changes; use init: xavier"
            )
        if self.adaptive_depth and self.tokens in ("joints", "dual"):
            raise ValueError("adaptive_depth: needs tokens: frames or hierarchical")
        if self.adaptive_depth and (self.shared_layers or self.shared_maps > 1):
            raise ValueError("adaptive_depth: uses one block for all depths; remove shared_layers and shared_maps")

    def _check_neighbourhoods(self) -> None:
        """Check the options of `joint_hops`, whose blocks attend over time and joints at once."""
        if not 0 <= self.joint_hops <= MAX_JOINT_HOPS:
            raise ValueError(
                f"joint_hops: must be 0 to {MAX_JOINT_HOPS} bones (from ankle to wrist), got {self.joint_hops}"
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
        """Check that each branch adds to one of the two streams only, so that inputs can be recomputed from outputs."""
        if self.norm == "post":
            raise ValueError("residual: reversible cannot be combined with norm: post; use norm: pre or none")
        for name, only in (("tokens", "frames"), ("shared_maps", 1), ("adaptive_depth", False)):
            if getattr(self, name) != only:
                raise ValueError(f"residual: reversible needs {name}: {only}, got {getattr(self, name)}")

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """Build a configuration from untrusted `to_dict` output; ValueError or TypeError if it is invalid."""
        checked = check_config(values, cls().to_dict())
        for name, value in checked.get("attention_options", {}).items():
            if isinstance(value, list | dict) or (
                isinstance(value, int | float) and not abs(value) <= MAX_OPTION_VALUE
            ):
                raise ValueError(f"attention_options: {str(value)[:40]} is not a value for {name[:40]!r}")
        return cls(**checked)

    def to_dict(self) -> dict[str, Json]:
        """Return the configuration as JSON values."""
        return asdict(self)


_FIXED_LENGTH = ("linformer", "fnet", "composed")  # mechanisms with weights or functions of the number of frames
_TRANSFORMER_OPTIONS = (
    "attention", "attention_options", "heads", "expansion", "shared_maps", "shared_layers", "adaptive_depth", "tokens",
    "skeleton_mask", "joint_hops", "residual", "last_norm",
)  # fmt: skip
_DEFAULTS = {
    entry.name: entry.default if entry.default_factory is MISSING else entry.default_factory()
    for entry in fields(LifterConfig)
}


def check_norm_init(norm: str, init: str) -> None:
    """Check that a norm and an initialisation can be combined."""
    if init not in INITS:
        raise ValueError(f"init: {init!r} is not one of {', '.join(INITS)}")
    if init in FIXUPS and norm != "none":
        raise ValueError(
            f"init: {init} scales the residual branches for a stack without LayerNorm; a norm ({norm}) would undo the "
            "scaling. Use norm: none with it, or init: xavier with this norm"
        )
