"""Attention mechanisms by name. `pose.training.attention` adds those of the laboratory to `ATTENTIONS`."""

import inspect
from collections.abc import Mapping

from pose.lifting.attention.base import (
    Attention,
    Cache,
    Capabilities,
    Context,
    KVCache,
    Option,
    layer_penalty,
    rotary_phases,
)
from pose.lifting.attention.fastformer import CumulativeFastformerAttention, FastformerAttention
from pose.lifting.attention.linformer import LinformerAttention
from pose.lifting.attention.local import LocalAttention
from pose.lifting.attention.shared_maps import share_maps
from pose.lifting.attention.softmax import SoftmaxAttention
from pose.utils.presets import load_plugins

__all__ = [
    "ATTENTIONS",
    "Attention",
    "Cache",
    "Capabilities",
    "Context",
    "KVCache",
    "Option",
    "build_attention",
    "build_attentions",
    "layer_penalty",
    "rotary_phases",
    "share_maps",
]

ATTENTIONS: dict[str, type[Attention]] = {
    "softmax": SoftmaxAttention,
    "local": LocalAttention,
    "fastformer": FastformerAttention,
    "fastformer-cumulative": CumulativeFastformerAttention,
    "linformer": LinformerAttention,
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
    """Build one attention layer; `options` are further arguments of the mechanism's class."""
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
    """Build the attention layers for a stack of blocks, with the mechanism `name` of `ATTENTIONS` and its options.

    `streaming` layers must have `step`, which requires `causal`; `length` is that of the longest sequence, if known.

    Raises:
        ValueError: If the name or an option is unknown, or the mechanism does not support what is asked.
    """
    load_plugins()
    if name not in ATTENTIONS:
        raise ValueError(f"attention: {name!r} is not one of {', '.join(ATTENTIONS)}")
    kind = ATTENTIONS[name]
    if streaming and not kind.capabilities.streaming:
        able_ones = ", ".join(other for other, cls in ATTENTIONS.items() if cls.capabilities.streaming)
        raise ValueError(f"{name} attention cannot stream; those that can: {able_ones}")
    if streaming and not causal:
        raise ValueError(f"streaming {name} attention needs causal=True: a stream has no future frames")
    allowed = {key: p for key, p in inspect.signature(kind).parameters.items() if key not in ("dim", "heads", "causal")}
    for option, value in options.items():
        if option not in allowed:
            raise ValueError(f"{name} attention has no option {option!r}; it has {', '.join(allowed) or 'none'}")
        wanted = allowed[option].annotation
        if wanted in (int, int | None) and value is not None and type(value) is not int:
            raise ValueError(f"{name} attention: {option} must be a whole number, got {value!r}")
        if wanted is float and type(value) not in (int, float):
            raise ValueError(f"{name} attention: {option} must be a number, got {value!r}")
    layers = kind.build_layers(depth, dim, heads, causal=causal, **options)
    if streaming and not layers[0].capabilities.streaming:
        told = ", ".join(f"{option} {value}" for option, value in options.items())
        raise ValueError(
            f"{name} attention with {told} cannot stream: outputs depend on the start of the sequence or on the future"
        )
    limit = layers[0].capabilities.max_length
    if length is not None and limit is not None and length > limit:
        raise ValueError(f"{name} attention supports at most {limit} frames here, but the model uses {length}")
    return layers
