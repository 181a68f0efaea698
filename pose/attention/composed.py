"""Attention put together from parts: any score, any distribution, any place to look.

Where a mechanism of the literature differs from scaled dot-product attention in one of these alone, it is a choice
here and needs no file of its own. The default is `softmax`, computed the plain way.
"""

import torch
from torch import Tensor, nn

from pose.attention.base import Attention, Cache, Capabilities, Context, KVCache
from pose.attention.distributions import DISTRIBUTIONS
from pose.attention.scores import SCORES
from pose.attention.softmax import DEFAULT_MEMORY, Window

POSITIONS = ("global", "local", "predicted")


class ComposedAttention(Attention):
    """out(sum_s a_ts v_s), a_t = distribution(score(q_t, k_s)) over the frames s that t sees.

    score: of `pose.attention.scores.SCORES`. distribution: of `pose.attention.distributions.DISTRIBUTIONS`. position:
    "global" sees all frames (causal: the last `window`, 1024 unless given); "local" the `window` nearest before, itself
    included, and as many after unless causal (Luong et al., 2015, local-m); "predicted" sees all, and the weights are
    multiplied by a Gaussian about a frame that each query names itself (local-p, whose hard edge it does without). Its
    standard deviation is half the window (27 unless given).
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T^2 D)")
    cache_fields = KVCache._fields

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
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        _check(score, distribution, position, window, causal)
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.score = SCORES[score](heads, self.head_dim)
        self.distribution = DISTRIBUTIONS[distribution](heads)
        self.window: Window | None = None
        if position == "local":
            self.window = Window(window or 27, causal)
        elif causal:
            self.window = Window(DEFAULT_MEMORY if position == "predicted" else window or DEFAULT_MEMORY, causal)
        self.centre = _Centre(heads, self.head_dim, window or 27) if position == "predicted" else None

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        v = self.split(self.v_proj(x_BTD))
        y_BTD: Tensor = self.out_proj(self.merge(self.weights(x_BTD, context).to(v.dtype) @ v))
        return y_BTD

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        seen = context.shared_mask(("composed", self.window), lambda: self._seen(x_BTD, context.valid))
        assert seen is not None
        q_raw = self.split(self.q_proj(x_BTD))
        q = self.score.queries(q_raw, context)
        k = self.score.keys(self.split(self.k_proj(x_BTD)), context)
        weights: Tensor = self.distribution(self.score.compare(q, k), seen, q, k)
        if self.centre is not None:
            frames_1T = torch.arange(x_BTD.shape[1], device=x_BTD.device)[None]
            last_B = None if self.causal else _last_frame(x_BTD, context)
            weights = weights * self.centre(q_raw, frames_1T, frames_1T, last_B)
        return weights

    def _seen(self, x_BTD: Tensor, valid_BT: Tensor | None) -> Tensor:
        """(B or 1, 1, T, T): True where query (row) sees key (column)."""
        window = self.window or Window(x_BTD.shape[1], causal=False)
        mask = window.mask(x_BTD.shape[1], valid_BT, x_BTD.device)
        return mask if mask.ndim == 4 else mask[None, None]

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> KVCache:
        assert self.window is not None
        kept = KVCache.empty(batch, self.heads, self.window.reach, self.score.width, device, dtype)
        values = torch.zeros(batch, self.heads, self.window.reach, self.head_dim, device=device, dtype=dtype)
        return kept._replace(values=values)

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        assert self.window is not None
        kept = KVCache(*cache)
        now_B1 = kept.frames[:, None]
        q_raw = self.split(self.q_proj(x_B1D))
        q = self.score.queries(q_raw, context)
        k = self.score.keys(self.split(self.k_proj(x_B1D)), context)
        kept = kept.push(k, self.split(self.v_proj(x_B1D)), context.valid)
        seen_BS = (kept.position >= 0) & self.window.allows(now_B1, kept.position)
        weights = self.distribution(self.score.compare(q, kept.keys), seen_BS[:, None, None, :], q, kept.keys)
        if self.centre is not None:
            weights = weights * self.centre(q_raw, now_B1, kept.position, None)
        return self.out_proj(self.merge(weights.to(kept.values.dtype) @ kept.values)), kept


class _Centre(nn.Module):
    """Luong's local-p: exp(-(s - p_t)^2 / (2 s0^2)), p_t from the query, s0 half the window.

    p_t is last * sigmoid(w.tanh(W q_t)) in frames, `last` being the sequence's last frame; where the future is not seen
    it is t - window * sigmoid(...).
    """

    def __init__(self, heads: int, head_dim: int, window: int) -> None:
        super().__init__()
        self.reach, self.spread = window, window / 2
        self.weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.out = nn.Parameter(torch.empty(heads, head_dim))
        for weight in (self.weight, self.out):
            nn.init.normal_(weight, std=head_dim**-0.5)

    def forward(self, q_BHTK: Tensor, query_BT: Tensor, key_BS: Tensor, last_B: Tensor | None) -> Tensor:
        """(B, H, T, S). query, key: numbers of frames."""
        share = torch.sigmoid((torch.tanh(q_BHTK @ self.weight) * self.out[:, None]).sum(dim=-1))  # (B, H, T)
        centre = query_BT[:, None] - self.reach * share if last_B is None else last_B[:, None, None] * share
        apart = (key_BS[:, None, None, :] - centre[..., None]) / self.spread
        return torch.exp(-apart.square() / 2)


def _last_frame(x_BTD: Tensor, context: Context) -> Tensor:
    """(B,) number of the last frame that is there."""
    if context.valid is None:
        return torch.full((len(x_BTD),), x_BTD.shape[1] - 1, device=x_BTD.device)
    frames = torch.arange(x_BTD.shape[1], device=x_BTD.device)
    return torch.where(context.valid, frames, 0).amax(dim=1)


def _check(score: str, distribution: str, position: str, window: int | None, causal: bool) -> None:
    """ValueError, saying why, for what is not there or makes no sense."""
    for option, value, known in (
        ("score", score, SCORES),
        ("distribution", distribution, DISTRIBUTIONS),
        ("position", position, POSITIONS),
    ):
        if value not in known:
            raise ValueError(f"composed attention: {option} must be one of {', '.join(known)}, got {value!r}")
    if window is not None and window < 1:
        raise ValueError(f"composed attention: window must be at least 1 frame, got {window}")
    if window is not None and position == "global" and not causal:
        raise ValueError("composed attention: window bounds a local, predicted or causal one; position global sees all")
    if distribution == "coda" and score in ("additive", "deep"):
        raise ValueError(
            f"composed attention: coda weighs by how far query and key are apart, which the score {score} cannot say"
        )
