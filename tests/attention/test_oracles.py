"""Every mechanism against its definition, written slowly and plainly in NumPy, frame by frame.

A new mechanism of the table needs a definition here.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from attention_forms import DIM, FORMS, HEADS, Batch, Form, make_batch
from numpy.typing import NDArray

from pose.attention import Attention
from pose.attention.band import banded_attention

K = DIM // HEADS
Array = NDArray[np.float64]


class Case:
    """One sequence (T, D) with its times and valid frames, and the layer's weights by name."""

    def __init__(self, form: Form, layer: Attention, batch: Batch, row: int) -> None:
        self.form = form
        self.layer = layer
        self.times = batch.times[row].numpy()
        self.valid = batch.valid[row].numpy()
        self.x = np.where(self.valid[:, None], batch.x[row].numpy(), 0.0)
        self.weights = {name: tensor.detach().numpy() for name, tensor in layer.state_dict().items()}
        self.frames = range(len(self.x))

    def linear(self, name: str, x: Array) -> Array:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def head(self, x: Array, head: int) -> Array:
        return x[..., head * K : (head + 1) * K]

    def turned(self, x: Array, t: int) -> NDArray[np.complex128]:
        """Features at frame t as complex numbers, each turned by its frequency times the time. There are K / 2
        frequencies; more features than K go through them again."""
        n = len(x) // 2
        hertz = 0.1 * 100 ** (np.arange(n) % (K // 2) / (K // 2 - 1))
        return (x[:n] + 1j * x[n:]) * np.exp(2j * math.pi * hertz * self.times[t])

    def seen(self, t: int, sees: Callable[[int, int], bool]) -> list[int]:
        return [s for s in self.frames if self.valid[s] and sees(t, s)]


def softmax(scores: Array) -> Array:
    e = np.exp(scores - scores.max())
    return e / e.sum()


def attend(case: Case, sees: Callable[[int, int], bool]) -> Array:
    q, k, v = (case.linear(f"{name}_proj", case.x) for name in "qkv")
    out = np.zeros_like(case.x)
    for t in case.frames:
        for h in range(HEADS):
            seen = case.seen(t, sees)
            if not seen:
                continue
            query = case.turned(case.head(q[t], h), t)
            keys = [case.turned(case.head(k[s], h), s) for s in seen]
            scores = np.array([(query * key.conj()).real.sum() / math.sqrt(K) for key in keys])
            out[t, h * K : (h + 1) * K] = softmax(scores) @ case.head(v[seen], h)
    return case.linear("out_proj", out)


def softmax_attention(case: Case) -> Array:
    memory = case.form.options.get("memory", 1024)
    return attend(case, lambda t, s: 0 <= t - s < memory if case.form.causal else True)


def local(case: Case) -> Array:
    options = {"window": 27, "dilation": 1, "global_tokens": 0} | case.form.options

    def sees(t: int, s: int) -> bool:
        if case.form.causal and s > t:
            return False
        if s < options["global_tokens"] or t < options["global_tokens"]:
            return True
        return abs(t - s) in [step * options["dilation"] for step in range(options["window"])]

    return attend(case, sees)


def pooled(case: Case, name: str, x: Array, upto: int) -> Array:
    frames = [s for s in range(upto + 1) if case.valid[s]]
    if not frames:
        return np.zeros(DIM)
    scores = case.linear(name, x[frames]) / math.sqrt(K)
    return np.concatenate([softmax(scores[:, h]) @ case.head(x[frames], h) for h in range(HEADS)])


def fastformer(case: Case) -> Array:
    q, k = case.linear("q_proj", case.x), case.linear("k_proj", case.x)
    last = len(q) - 1
    p = k * pooled(case, "query_score", q, last)
    return case.linear("out_proj", case.linear("transform", q * pooled(case, "key_score", p, last)) + q)


def fastformer_cumulative(case: Case) -> Array:
    q, k = case.linear("q_proj", case.x), case.linear("k_proj", case.x)
    p = np.stack([k[t] * pooled(case, "query_score", q, t) for t in case.frames])
    mixed = np.stack([q[t] * pooled(case, "key_score", p, t) for t in case.frames])
    return case.linear("out_proj", case.linear("transform", mixed) + q)


def linformer(case: Case) -> Array:
    q = case.linear("q_proj", case.x)
    out = np.zeros_like(case.x)
    for h in range(HEADS):
        rows = [case.weights[name] for name in ("key_rows", "value_rows")]
        rows = [r[h] if r.ndim == 3 else r for r in rows]
        k, v = (
            case.head(case.linear(name, r[:, : len(case.x)] @ case.x), h)
            for name, r in zip(("k_proj", "v_proj"), rows, strict=True)
        )
        for t in case.frames:
            out[t, h * K : (h + 1) * K] = softmax(k @ case.head(q[t], h) / math.sqrt(K)) @ v
    return case.linear("out_proj", out)


def performer(case: Case) -> Array:
    q, k, v = (case.linear(f"{name}_proj", case.x) for name in "qkv")
    w = case.weights["random_features"]

    def phi(x: Array) -> Array:
        x = x / K**0.25
        largest = np.exp(w @ x).max()
        return (np.exp(w @ x) + 1e-6 * largest) * np.exp(-x @ x / 2)

    out = np.zeros_like(case.x)
    for t in case.frames:
        for h in range(HEADS):
            seen = case.seen(t, lambda t, s: s <= t if case.form.causal else True)
            query, keys = phi(case.head(q[t], h)), [phi(case.head(k[s], h)) for s in seen]
            tops = [
                (case.turned(query, t) * case.turned(key, s).conj()).real.sum()
                for key, s in zip(keys, seen, strict=True)
            ]
            total = sum(query @ key for key in keys)
            for s, top in zip(seen, tops, strict=True):
                out[t, h * K : (h + 1) * K] += top / total * case.head(v[s], h)
    return case.linear("out_proj", out)


def fnet(case: Case) -> Array:
    length = len(case.x)
    over_time = np.exp(-2j * math.pi * np.outer(np.arange(length), np.arange(length)) / length)
    over_features = np.exp(-2j * math.pi * np.outer(np.arange(DIM), np.arange(DIM)) / DIM)
    return (over_time @ case.x @ over_features).real / math.sqrt(length * DIM)


ORACLES: dict[str, Callable[[Case], Array]] = {
    "softmax": softmax_attention,
    "local": local,
    "fastformer": fastformer,
    "fastformer-cumulative": fastformer_cumulative,
    "linformer": linformer,
    "performer": performer,
    "fnet": fnet,
}


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_equals_its_definition(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    got = layer(batch.x, batch.context()).detach().numpy()
    for row in range(len(got)):
        case = Case(form, layer, batch, row)
        want = np.where(case.valid[:, None], ORACLES[form.name](case), 0.0)
        np.testing.assert_allclose(got[row], want, rtol=0, atol=1e-10)


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("form", [form for form in FORMS if form.name == "local"], ids=str)
@pytest.mark.parametrize("length", [1, 33, 300])
def test_local_in_blocks_equals_the_mask_of_all_pairs(form: Form, length: int, masked: bool) -> None:
    layer, batch = form.build(), make_batch(length=length)
    q, k, v = layer.project(batch.x, batch.context())
    valid = batch.valid if masked else None
    want = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=layer.window.mask(length, valid, batch.x.device)
    )
    got = banded_attention(q, k, v, layer.window, valid)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)
