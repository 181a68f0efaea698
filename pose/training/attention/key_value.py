"""Attention with separate parts of a token for keys and for values.

Axes: B batch, H head, T time, D feature, K feature of one head, P feature that is compared.
"""

import torch
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Context
from pose.lifting.attention.softmax import DEFAULT_WINDOW
from pose.training.attention.composed import ComposedAttention


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
