"""What the attention tests share: the forms of each mechanism to try, and batches of uneven frames."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

import pytest
import torch
from torch import Tensor

from pose.lifting.attention import ATTENTIONS, Attention, Capabilities, Context, build_attention
from pose.training.attention.distributions import DISTRIBUTIONS
from pose.training.attention.scores import SCORES

DIM, HEADS = 16, 2


@dataclass(frozen=True)
class Form:
    """One way to build a mechanism."""

    name: str
    causal: bool = False
    options: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        options = "".join(f",{key}={value}" for key, value in self.options.items())
        return f"{self.name}{',causal' if self.causal else ''}{options}"

    @cached_property
    def capabilities(self) -> Capabilities:
        return self.build().capabilities

    def build(self, dtype: torch.dtype = torch.float64) -> Attention:
        torch.default_generator.manual_seed(0)
        layer = build_attention(self.name, DIM, HEADS, causal=self.causal, **self.options)
        for name, parameter in layer.named_parameters():
            if name.endswith("bias"):  # some start at zero, which would hide an error
                torch.nn.init.normal_(parameter, std=0.3)
        return layer.to(dtype).eval()


# Every mechanism as it comes, in each form it declares; then options worth trying beside the defaults.
FORMS = [
    *(Form(name) for name, kind in ATTENTIONS.items() if kind.capabilities.bidirectional),
    *(Form(name, causal=True) for name, kind in ATTENTIONS.items() if kind.capabilities.causal),
    Form("softmax", True, {"memory": 5}),
    Form("local", False, {"window": 3}),
    Form("local", True, {"window": 3}),
    Form("local", True, {"window": 1}),
    Form("local", False, {"window": 3, "dilation": 2}),
    Form("local", True, {"window": 3, "dilation": 2}),
    Form("local", False, {"window": 3, "global_tokens": 2}),
    Form("local", True, {"window": 3, "dilation": 2, "global_tokens": 2}),
    Form("local", False, {"window": 3, "dilation": "1,3"}),
    Form("local", True, {"window": 3, "dilation": "2,1", "global_tokens": 1}),
    Form("local", False, {"window": 3, "global_tokens": 2, "global_projections": "own"}),
    Form("local", True, {"window": 3, "global_tokens": 2, "global_projections": "own"}),
    Form("local", True, {"window": 2, "dilation": "1,3", "global_tokens": 3, "global_projections": "own"}),
    Form("sparse", False, {"stride": 3}),
    Form("sparse", True, {"stride": 3, "memory": 7}),
    Form("sparse", False, {"stride": 4, "pattern": "fixed", "summary": 1}),
    Form("sparse", True, {"stride": 4, "pattern": "fixed", "summary": 2, "memory": 9}),
    Form("sparse", True, {"stride": 3, "arrange": "heads"}),
    Form("sparse", False, {"stride": 3, "pattern": "fixed", "summary": 1, "arrange": "heads"}),
    Form("sparse", True, {"stride": 3, "pattern": "fixed", "summary": 1, "arrange": "heads"}),
    Form("sparse", True, {"stride": 3, "arrange": "layers", "memory": 20}),
    Form("adaptive-span", False, {"span": 0.4, "ramp": 0.1}),
    Form("adaptive-span", True, {"span": 0.4, "ramp": 0.1}),
    Form("adaptive-span", True, {"span": 0.4, "ramp": 0.2, "rate": 12}),
    Form("blocks", False, {"block": 4, "beyond": 2}),
    Form("blocks", True, {"block": 3}),
    Form("blocks", True, {"block": 5, "beyond": 0}),
    Form("transformer-xl", True, {"memory": 4, "segment": 8}),
    Form("transformer-xl", True, {"memory": 20, "segment": 7}),
    Form("reformer", False, {"chunk": 3, "rounds": 1}),
    Form("reformer", False, {"chunk": 2, "rounds": 3}),
    Form("linformer", False, {"sharing": "none"}),
    Form("linformer", False, {"sharing": "kv", "max_length": 40}),
    Form("linformer", False, {"sharing": "layer", "compression": 1}),
    Form("performer", False, {"blocks": 1}),
    Form("performer", True, {"blocks": 1}),
    Form("performer", False, {"blocks": 1, "rotation": "numerator"}),
    Form("performer", True, {"blocks": 1, "rotation": "numerator"}),
    *(Form("composed", number % 2 == 0, {"score": name}) for number, name in enumerate(SCORES) if name != "scaled-dot"),
    *(
        Form("composed", number % 2 == 0, {"distribution": name})
        for number, name in enumerate(DISTRIBUTIONS)
        if name not in ("softmax", "ratio")
    ),
    Form("composed", False, {"score": "kernel", "distribution": "ratio"}),
    Form("composed", True, {"score": "location", "max_length": 40}),
    Form("composed", True, {"score": "feature", "position": "predicted"}),
    Form("composed", False, {"time": "sinusoidal"}),
    Form("composed", True, {"time": "learnt", "max_length": 40, "score": "additive"}),
    Form("composed", False, {"time": "none"}),
    Form("composed", True, {"time": "none", "score": "cosine"}),
    Form("composed", False, {"position": "local", "window": 3}),
    Form("composed", True, {"position": "local", "window": 3, "distribution": "entmax15"}),
    Form("composed", False, {"position": "predicted", "window": 6}),
    Form("composed", True, {"position": "predicted", "window": 6, "score": "additive"}),
    Form("composed", True, {"window": 5, "score": "cosine", "distribution": "entmax"}),
]
FORMS += [
    Form("multi-dimensional", True, {"memory": 5}),
    Form("key-value", True, {"window": 3}),
    Form("key-value-predict", True, {"window": 3}),
    Form("co-attention", False, {"order": "alternating"}),
]
CAUSAL = [form for form in FORMS if form.causal]
STREAMING = [form for form in CAUSAL if form.capabilities.streaming]
PADDED = [form for form in FORMS if form.capabilities.padding]
# The features of performer estimate a product that is independent of the origin of time; the estimate depends on it.
TIMED = [
    form
    for form in FORMS
    if form.capabilities.relative_time and (form.name != "performer" or form.options.get("rotation") == "numerator")
]


def for_each(forms: Iterable[Form]) -> Callable[[Callable[[Form], None]], Callable[[str], None]]:
    """Make one test per mechanism out of a check of a form; an error names the form."""
    by_mechanism: dict[str, list[Form]] = {}
    for form in forms:
        by_mechanism.setdefault(form.name, []).append(form)

    def decorate(check: Callable[[Form], None]) -> Callable[[str], None]:
        @pytest.mark.parametrize("mechanism", by_mechanism)
        def test(mechanism: str) -> None:
            for form in by_mechanism[mechanism]:
                try:
                    check(form)
                except Exception as error:
                    error.add_note(f"form: {form}")
                    raise

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


@dataclass(frozen=True)
class Batch:
    """x: (B, T, D). times: (B, T) float64 seconds, uneven. valid: (B, T) bool."""

    x: Tensor
    times: Tensor
    valid: Tensor

    def context(self, *, masked: bool = True) -> Context:
        return Context.from_times(self.times, DIM // HEADS, self.valid if masked else None, self.x.dtype)

    def frames(self, which: slice) -> "Batch":
        return Batch(self.x[:, which], self.times[:, which], self.valid[:, which])


def make_batch(rows: int = 2, length: int = 12, dtype: torch.dtype = torch.float64, seed: int = 1) -> Batch:
    """Frames at 12 to 60 a second; in each row some are missing inside, and in the first row the last ones."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, length, DIM, generator=g, dtype=dtype)
    gaps = torch.rand(rows, length, generator=g, dtype=torch.float64) / 15 + 1 / 60
    valid = torch.rand(rows, length, generator=g) > 0.2
    valid[:, 0] = True
    if length > 3:
        valid[0, -3:] = False
    return Batch(x, gaps.cumsum(dim=1), valid)
