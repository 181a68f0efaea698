"""What the mechanisms are defined with: one sequence, the weights of a layer, attention pair by pair."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from attention_forms import DIM, HEADS, Batch, Form
from numpy.typing import NDArray

from pose.lifting.attention import Attention

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
    return attend_by_head(case, lambda h, t, s: sees(t, s))


def attend_by_head(case: Case, sees: Callable[[int, int, int], bool], kind: str = "") -> Array:
    q, k, v = (case.linear(f"{kind}{name}_proj", case.x) for name in "qkv")
    out = np.zeros_like(case.x)
    for t in case.frames:
        for h in range(HEADS):
            seen = case.seen(t, partial(sees, h))
            if not seen:
                continue
            query = case.turned(case.head(q[t], h), t)
            keys = [case.turned(case.head(k[s], h), s) for s in seen]
            scores = np.array([(query * key.conj()).real.sum() / math.sqrt(K) for key in keys])
            out[t, h * K : (h + 1) * K] = softmax(scores) @ case.head(v[seen], h)
    return case.linear("out_proj", out)
