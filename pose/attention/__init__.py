"""Attention mechanisms by name. A new one is one file and one line in `ATTENTIONS`; the tests pick it up from there."""

import inspect

from pose.attention.base import Attention, Capabilities, Context, KVCache, rotary_phases
from pose.attention.local import LocalAttention
from pose.attention.softmax import SoftmaxAttention

__all__ = ["ATTENTIONS", "Attention", "Capabilities", "Context", "KVCache", "build_attention", "rotary_phases"]

ATTENTIONS: dict[str, type[Attention]] = {
    "softmax": SoftmaxAttention,
    "local": LocalAttention,
}


def build_attention(
    name: str,
    dim: int,
    heads: int,
    *,
    causal: bool = False,
    streaming: bool = False,
    length: int | None = None,
    **options: object,
) -> Attention:
    """One attention layer. Raises ValueError, saying why, for what cannot work.

    name: of `ATTENTIONS`. streaming: the layer will be stepped (needs causal). length: the longest sequence in frames
    that it will see, if known. options: the mechanism's own keywords.
    """
    if name not in ATTENTIONS:
        raise ValueError(f"no attention named {name!r}; there are {', '.join(ATTENTIONS)}")
    kind = ATTENTIONS[name]
    able = kind.capabilities
    if causal and not able.causal:
        raise ValueError(f"{name} attention has no causal form: every frame it returns mixes all frames")
    if streaming and not able.streaming:
        raise ValueError(f"{name} attention cannot stream; those that can: {', '.join(_streaming())}")
    if streaming and not causal:
        raise ValueError(f"streaming {name} attention needs causal=True: a stream has no frames ahead to look at")
    allowed = [p for p in inspect.signature(kind).parameters if p not in ("dim", "heads", "causal")]
    for option in options:
        if option not in allowed:
            raise ValueError(f"{name} attention has no option {option!r}; it has {', '.join(allowed) or 'none'}")
    layer = kind(dim, heads, causal=causal, **options)
    limit = layer.capabilities.max_length
    if length is not None and limit is not None and length > limit:
        raise ValueError(f"this {name} attention takes at most {limit} frames, the model would give it {length}")
    return layer


def _streaming() -> list[str]:
    return [name for name, kind in ATTENTIONS.items() if kind.capabilities.streaming]
