"""Attention mechanisms by name. A new one is one file and one line in `ATTENTIONS`; the tests pick it up from there."""

import inspect
from collections.abc import Mapping

from pose.attention.base import Attention, Cache, Capabilities, Context, KVCache, Option, rotary_phases
from pose.attention.composed import ComposedAttention
from pose.attention.fastformer import CumulativeFastformerAttention, FastformerAttention
from pose.attention.fnet import FNetAttention
from pose.attention.linformer import LinformerAttention
from pose.attention.local import LocalAttention
from pose.attention.performer import PerformerAttention
from pose.attention.softmax import SoftmaxAttention

__all__ = [
    "ATTENTIONS",
    "Attention",
    "Cache",
    "Capabilities",
    "Context",
    "KVCache",
    "Option",
    "PerformerAttention",
    "build_attention",
    "build_attentions",
    "rotary_phases",
]

ATTENTIONS: dict[str, type[Attention]] = {
    "softmax": SoftmaxAttention,
    "local": LocalAttention,
    "fastformer": FastformerAttention,
    "fastformer-cumulative": CumulativeFastformerAttention,
    "linformer": LinformerAttention,
    "performer": PerformerAttention,
    "fnet": FNetAttention,
    "composed": ComposedAttention,
}


def build_attention(
    name: str,
    dim: int,
    heads: int,
    *,
    causal: bool = False,
    streaming: bool = False,
    length: int | None = None,
    **options: Option,
) -> Attention:
    """One attention layer; see `build_attentions`."""
    return build_attentions(name, 1, dim, heads, options, causal=causal, streaming=streaming, length=length)[0]


def build_attentions(
    name: str,
    depth: int,
    dim: int,
    heads: int,
    options: Mapping[str, Option],
    *,
    causal: bool = False,
    streaming: bool = False,
    length: int | None = None,
) -> list[Attention]:
    """The attention layers of a stack of blocks. Raises ValueError, saying why, for what cannot work.

    name: of `ATTENTIONS`. streaming: the layers will be stepped (needs causal). length: the longest sequence in frames
    that they will see, if known. options: the mechanism's own keywords.
    """
    if name not in ATTENTIONS:
        raise ValueError(f"attention: {name!r} is not one of {', '.join(ATTENTIONS)}")
    kind = ATTENTIONS[name]
    if streaming and not kind.capabilities.streaming:
        able_ones = ", ".join(other for other, cls in ATTENTIONS.items() if cls.capabilities.streaming)
        raise ValueError(f"{name} attention cannot stream; those that can: {able_ones}")
    if streaming and not causal:
        raise ValueError(f"streaming {name} attention needs causal=True: a stream has no frames ahead to look at")
    allowed = {key: p for key, p in inspect.signature(kind).parameters.items() if key not in ("dim", "heads", "causal")}
    for option, value in options.items():
        if option not in allowed:
            raise ValueError(f"{name} attention has no option {option!r}; it has {', '.join(allowed) or 'none'}")
        if allowed[option].annotation in (int, int | None) and value is not None and type(value) is not int:
            raise ValueError(f"{name} attention: {option} must be a whole number, got {value!r}")
    layers = kind.build_layers(depth, dim, heads, causal=causal, **options)
    limit = layers[0].capabilities.max_length
    if length is not None and limit is not None and length > limit:
        raise ValueError(f"this {name} attention takes at most {limit} frames, the model would give it {length}")
    return layers
