"""Sliding-window attention (Longformer, Beltagy et al., 2020), dilated and with pinned first frames if wanted."""

from torch import Tensor

from pose.attention.band import band_length, banded_attention
from pose.attention.base import Capabilities, Context
from pose.attention.softmax import SoftmaxAttention, Window

DENSE_UP_TO = 2  # times the keys of a band; in longer sequences blocks are faster than a mask of all pairs


class LocalAttention(SoftmaxAttention):
    """Softmax attention in which a frame sees the `window` nearest frames before it, itself included, and, when not
    causal, as many after it.

    dilation: see only every so manieth frame, so that the same cost reaches further. global_tokens: the first frames of
    the sequence see all others and are seen by all; in a stream they stay in the cache for good.
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T W D)")

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,
        window: int = 27,
        dilation: int = 1,
        global_tokens: int = 0,
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        if window < 1 or dilation < 1 or global_tokens < 0:
            raise ValueError(
                "window and dilation must be at least 1 and global_tokens at least 0, "
                f"got {window}, {dilation} and {global_tokens}"
            )
        self.window = Window(window, causal, dilation, global_tokens)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        assert self.window is not None
        if q.shape[2] <= DENSE_UP_TO * band_length(self.window):
            return super().attend(q, k, v, context)
        return banded_attention(q, k, v, self.window, context.valid)
