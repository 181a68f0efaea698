"""Attention composed of a score function, a distribution, a range of visible frames and a time encoding.

Many mechanisms of the literature differ from scaled dot-product attention in only one of these parts. Here they are
options. The defaults compute the same function as `softmax`, without fused kernels.

Axes: B batch, H head, T time, D feature, K feature of one head, P feature that is compared.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Cache, Capabilities, Context, KVCache, TimedCache
from pose.lifting.attention.softmax import DEFAULT_MEMORY, DEFAULT_WINDOW, Window
from pose.training.attention.distributions import DISTRIBUTIONS, Compared
from pose.training.attention.scores import SCORES, Location
from pose.training.attention.time_codes import DEFAULT_LENGTH, TIMES

POSITIONS = ("global", "local", "predicted")


class ComposedAttention(Attention):
    """Attention out(sum_s a_ts v_s) with weights a_t = distribution(score(q_t, k_s)) over the frames s visible to t.

    Args:
        score: Score function, a key of `pose.training.attention.scores.SCORES`; default "scaled-dot".
        distribution: Function from scores to weights, a key of `pose.training.attention.distributions.DISTRIBUTIONS`;
        default
            "softmax".
        position: Range of visible frames; default "global".

            - "global": all frames; in the causal form the last `window` frames, including the query.
            - "local": the query, the `window` - 1 frames before it and, unless causal, the `window` - 1 frames after it
              (Luong et al., 2015, local-m).
            - "predicted": all frames; in the causal form the last 1024 frames. The weights are multiplied by a Gaussian
              around a frame that is predicted from the query (local-p, without its hard edge).

        time: Time encoding, a key of `pose.training.attention.time_codes.TIMES`; default "rotary".
        window: Size of the window in frames. With "global" it is allowed in the causal form only, default 1024. With
            "local" and "predicted" the default is 27. With "predicted", the standard deviation of the Gaussian is half
            the window; in the causal form, the predicted frame is at most `window` frames before the query.
        max_length: Longest sequence in frames; default 243. It applies only to the score "location" and the time
            "learnt", which have parameters for each frame number.

    Raises:
        ValueError: If a name is unknown, if parts cannot be combined, if `window` is given for "global" without
            `causal`, if `max_length` is given but does not apply, or if one of them is below 1.
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T^2 D)")
    cache_fields = TimedCache._fields

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,
        score: str = "scaled-dot",
        distribution: str = "softmax",
        position: str = "global",
        window: int | None = None,
        time: str = "rotary",
        max_length: int | None = None,
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        _check({"score": score, "distribution": distribution, "position": position, "time": time})
        _check_lengths(score, position, time, window, max_length, causal)
        longest = max_length or DEFAULT_LENGTH
        counts = score == "location"
        self.score = Location(heads, self.head_dim, longest) if counts else SCORES[score](heads, self.head_dim)
        self.time = TIMES[time](dim, longest)
        self.q_proj = nn.Linear(dim, dim) if self.score.reads_query or position == "predicted" else None
        self.k_proj = nn.Linear(dim, dim) if self.score.reads_key else None
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.distribution = DISTRIBUTIONS[distribution](heads)
        self.capabilities = replace(
            self.capabilities,
            streaming=self.score.streaming and self.time.streaming,
            relative_time=self.score.reads_time and time == "rotary",
            own_time=time != "rotary",
            max_length=self.score.max_length or self.time.max_length,
            random=distribution in ("hard", "straight-through"),
        )
        self.window: Window | None = None
        if position == "local":
            self.window = Window(window or 27, causal)
        elif causal:
            self.window = Window(DEFAULT_MEMORY if position == "predicted" else window or DEFAULT_MEMORY, causal)
        self.centre = _Centre(heads, self.head_dim, window or 27) if position == "predicted" else None

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        self.distribution.begin_step(generator)

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        v = self.split(self.v_proj(x_BTD))
        return self.output(self.merge(self._weights(x_BTD, context).to(v.dtype) @ v), x_BTD)

    def output(self, summed_BTD: Tensor, x_BTD: Tensor) -> Tensor:
        """Compute the output from the frames (B, T, D) and the weighted sums of values (B, T, D)."""
        y_BTD: Tensor = self.out_proj(summed_BTD)
        return y_BTD

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        return self._weights(x_BTD, context)

    def _weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        seen = context.shared_mask(("composed", self.window), lambda: self._seen(x_BTD, context.valid))
        assert seen is not None
        q_raw, q, k = self.compared(x_BTD, context)
        compared = Compared(q, k, context.seconds, context.seconds)
        weights: Tensor = self.distribution(self.score.compare(q, k), seen, compared)
        if self.centre is not None:
            frames_1T = torch.arange(x_BTD.shape[1], device=x_BTD.device)[None]
            last_B = None if self.causal else _last_frame(x_BTD, context)
            weights = weights * self.centre(q_raw, frames_1T, frames_1T, last_B)
        return weights

    def compared(self, x_BTD: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries (B, H, T, K), and the queries and keys that the score compares, (B, H, T, P) each."""
        x_BTD, context = self.time(x_BTD, context)
        empty_BHT0 = x_BTD.new_zeros(len(x_BTD), self.heads, x_BTD.shape[1], 0)
        q_BHTK = empty_BHT0 if self.q_proj is None else self.split(self.q_proj(x_BTD))
        k_BHTK = empty_BHT0 if self.k_proj is None else self.split(self.k_proj(x_BTD))
        return q_BHTK, self.score.queries(q_BHTK, context), self.score.keys(k_BHTK, context)

    def _seen(self, x_BTD: Tensor, valid_BT: Tensor | None) -> Tensor:
        """Return the mask (B or 1, 1, T, T): True where the query (row) sees the key (column)."""
        window = self.window or Window(x_BTD.shape[1], causal=False)
        mask = window.mask(x_BTD.shape[1], valid_BT, x_BTD.device)
        return mask if mask.ndim == 4 else mask[None, None]

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> TimedCache:
        assert self.window is not None
        slots, width = self.window.reach, self.score.width
        return TimedCache.of(KVCache.empty(batch, self.heads, slots, width, device, dtype, value_dim=self.head_dim))

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        assert self.window is not None
        before = TimedCache(*cache)
        now_B1 = before.frames[:, None]
        q_raw, q, k = self.compared(x_B1D, context)
        kept = before.push(k, self.split(self.v_proj(x_B1D)), context.seconds, context.valid)
        seen_BS = (kept.position >= 0) & self.window.allows(now_B1, kept.position)
        compared = Compared(q, kept.keys, context.seconds, kept.times)
        weights = self.distribution(self.score.compare(q, kept.keys), seen_BS[:, None, None, :], compared)
        if self.centre is not None:
            weights = weights * self.centre(q_raw, now_B1, kept.position, None)
        summed_B1D = self.merge(weights.to(kept.values.dtype) @ kept.values)
        return self.output(summed_B1D, x_B1D), kept


class _Centre(nn.Module):
    """Gaussian factor exp(-(s - p_t)^2 / (2 s0^2)) of Luong's local-p, with s0 half the window."""

    # The centre p_t in frames is last * sigmoid(w.tanh(W q_t)), where `last` is the last frame of the sequence. In the
    # causal form, p_t is t - window * sigmoid(...).

    def __init__(self, heads: int, head_dim: int, window: int) -> None:
        super().__init__()
        self.reach, self.spread = window, window / 2
        self.weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.out = nn.Parameter(torch.empty(heads, head_dim))
        for weight in (self.weight, self.out):
            nn.init.normal_(weight, std=head_dim**-0.5)

    def forward(self, q_BHTK: Tensor, query_BT: Tensor, key_BS: Tensor, last_B: Tensor | None) -> Tensor:
        """Compute the factors (B, H, T, S) from the queries and the frame numbers of queries and keys."""
        share = torch.sigmoid((torch.tanh(q_BHTK @ self.weight) * self.out[:, None]).sum(dim=-1))  # (B, H, T)
        centre = query_BT[:, None] - self.reach * share if last_B is None else last_B[:, None, None] * share
        apart = (key_BS[:, None, None, :] - centre[..., None]) / self.spread
        return torch.exp(-apart.square() / 2)


def _last_frame(x_BTD: Tensor, context: Context) -> Tensor:
    """Return the number of the last valid frame, (B,)."""
    if context.valid is None:
        return torch.full((len(x_BTD),), x_BTD.shape[1] - 1, device=x_BTD.device)
    frames = torch.arange(x_BTD.shape[1], device=x_BTD.device)
    return torch.where(context.valid, frames, 0).amax(dim=1)


def _check(parts: Mapping[str, str]) -> None:
    """Check that all parts exist and can be combined."""
    tables: dict[str, Collection[str]] = {
        "score": SCORES,
        "distribution": DISTRIBUTIONS,
        "position": POSITIONS,
        "time": TIMES,
    }
    for option, known in tables.items():
        if parts[option] not in known:
            raise ValueError(f"composed attention: {option} must be one of {', '.join(known)}, got {parts[option]!r}")
    score, distribution = parts["score"], parts["distribution"]
    if distribution == "coda" and not SCORES[score].has_distance:
        raise ValueError(
            f"composed attention: the distribution 'coda' requires a distance between query and key, which the score "
            f"{score!r} does not define"
        )
    if distribution == "ratio" and score != "kernel":
        raise ValueError(
            f"composed attention: the distribution 'ratio' requires non-negative scores, but those of {score!r} "
            "can be negative; set score to 'kernel'"
        )


def _check_lengths(
    score: str, position: str, time: str, window: int | None, max_length: int | None, causal: bool
) -> None:
    for name, frames in (("window", window), ("max_length", max_length)):
        if frames is not None and frames < 1:
            raise ValueError(f"composed attention: {name} must be at least 1 frame, got {frames}")
    if window is not None and position == "global" and not causal:
        raise ValueError("composed attention: window applies to the positions local, predicted and causal, not global")
    if max_length is not None and score != "location" and time != "learnt":
        raise ValueError("composed attention: max_length requires the score 'location' or the time 'learnt'")


class KeyValueAttention(ComposedAttention):
    """Attention with separate parts of a token for keys and values, without queries (Mino et al., 2017)."""

    # The output is out(sum_s a_ts v_s) with a_t = softmax_s(w.tanh(W_y k_s + W_h k_t + b)), plus a time term as in the
    # score `additive`. The last `window` frames are visible, unless causal also the `window` - 1 frames after the
    # query.

    def __init__(self, dim: int, heads: int, *, causal: bool = False, window: int = DEFAULT_WINDOW) -> None:
        super().__init__(dim, heads, causal=causal, score="additive", position="local", window=window)
        self.q_proj = None

    def compared(self, x_BTD: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        assert self.k_proj is not None
        k_BHTK = self.split(self.k_proj(x_BTD))
        return k_BHTK, self.score.queries(k_BHTK, context), self.score.keys(k_BHTK, context)


class KeyValuePredictAttention(KeyValueAttention):
    """Key-value attention with a third part p of each token, for tanh(W_r sum_s a_ts v_s + W_x p_t) (Daniluk, 2017)."""

    weights = Attention.weights

    def __init__(self, dim: int, heads: int, *, causal: bool = False, window: int = DEFAULT_WINDOW) -> None:
        super().__init__(dim, heads, causal=causal, window=window)
        self.p_proj, self.predict_proj = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)

    def output(self, summed_BTD: Tensor, x_BTD: Tensor) -> Tensor:
        return torch.tanh(self.out_proj(summed_BTD) + self.predict_proj(self.p_proj(x_BTD)))
