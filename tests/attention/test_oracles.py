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


def composed(case: Case) -> Array:
    """Each score, distribution and place to look by its formula, one pair of frames at a time."""
    options = {"score": "scaled-dot", "distribution": "softmax", "position": "global", "window": None}
    options |= case.form.options
    q, k, v = (case.linear(f"{name}_proj", case.x) for name in "qkv")
    reach = options["window"] or (27 if options["position"] == "local" else 1024)

    def sees(t: int, s: int) -> bool:
        if options["position"] == "predicted":
            return s <= t or not case.form.causal
        if options["position"] == "global" and not case.form.causal:
            return True
        return abs(t - s) < reach and (s <= t or not case.form.causal)

    out = np.zeros_like(case.x)
    for t in case.frames:
        for h in range(HEADS):
            seen = case.seen(t, sees)
            if not seen:
                continue
            query = case.head(q[t], h)
            pairs = [pair(case, options["score"], h, t, s, query, case.head(k[s], h)) for s in seen]
            weights = shared_out(case, options["distribution"], h, np.array([score for score, _ in pairs]), pairs)
            if options["position"] == "predicted":
                weights = weights * nearness(case, h, t, seen, query, options["window"] or 27)
            out[t, h * K : (h + 1) * K] = weights @ case.head(v[seen], h)
    return case.linear("out_proj", out)


def pair(case: Case, name: str, h: int, t: int, s: int, query: Array, key: Array) -> tuple[float, float]:
    """The score of a query and a key, and how far the two are apart."""

    def own(parameter: str) -> Array:
        return case.weights[f"score.{parameter}"][h]

    if name in ("additive", "deep"):
        hidden = np.tanh(query @ own("query_weight") + key @ own("key_weight") + own("bias"))
        if name == "deep":
            hidden = np.tanh(hidden @ own("hidden_weight") + own("hidden_bias"))
        hertz = 0.1 * 100 ** (np.arange(K // 2) / (K // 2 - 1))
        angles = 2 * math.pi * hertz * (case.times[t] - case.times[s])
        return float(own("out") @ hidden + own("time") @ np.concatenate([np.cos(angles), np.sin(angles)])), math.nan
    if "general" in name:
        query = query @ own("weight")
    if name == "biased-general":
        query = query + own("bias")
    a, b = case.turned(query, t), case.turned(key, s)
    product = float((a * b.conj()).real.sum())
    if name == "scaled-dot":
        product /= math.sqrt(K)
    if name == "cosine":
        product *= math.log1p(math.exp(own("sharpness"))) / (np.linalg.norm(query) * np.linalg.norm(key))
    if name == "activated-general":
        product = float(own("scale") * math.tanh(product + own("bias")))
    return product, float(np.abs(a - b).sum())


def shared_out(case: Case, name: str, h: int, scores: Array, pairs: list[tuple[float, float]]) -> Array:
    if name == "softmax":
        return softmax(scores)
    if name == "sigmoid":
        return 1 / (1 + np.exp(-(scores - math.log(len(scores)))))
    if name == "coda":
        apart = np.array([distance for _, distance in pairs])
        return np.tanh(scores) * 2 / (1 + np.exp(apart / math.sqrt(K)))
    alpha = {"sparsemax": 2.0, "entmax15": 1.5}.get(name)
    if alpha is None:
        alpha = 1 + 1 / (1 + math.exp(-case.weights["distribution.sharpness"][h]))

    def weights(tau: float) -> Array:
        return np.maximum((alpha - 1) * scores - tau, 0) ** (1 / (alpha - 1))

    low, high = (alpha - 1) * scores.max() - 1, (alpha - 1) * scores.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if weights(middle).sum() > 1 else (low, middle)
    return weights(low)


def nearness(case: Case, h: int, t: int, seen: list[int], query: Array, window: int) -> Array:
    share = np.tanh(query @ case.weights["centre.weight"][h]) @ case.weights["centre.out"][h]
    share = 1 / (1 + math.exp(-share))
    last = max(s for s in case.frames if case.valid[s])
    centre = t - window * share if case.form.causal else last * share
    return np.exp(-((np.array(seen) - centre) ** 2) / (2 * (window / 2) ** 2))


ORACLES: dict[str, Callable[[Case], Array]] = {
    "softmax": softmax_attention,
    "local": local,
    "fastformer": fastformer,
    "fastformer-cumulative": fastformer_cumulative,
    "linformer": linformer,
    "performer": performer,
    "fnet": fnet,
    "composed": composed,
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
