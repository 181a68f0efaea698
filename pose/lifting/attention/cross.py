"""Cross-attention: queries come from one sequence, keys and values from another."""

import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention.base import Context, rotate


class CrossAttention(nn.Module):
    """Softmax cross-attention with rotary time (Vaswani et al., 2017; Su et al., 2021), without a causal form."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        if heads < 1 or dim % heads or dim // heads % 2:
            raise ValueError(f"dim must be an even multiple of heads, got dim {dim} and {heads} heads")
        self.heads, self.head_dim = heads, dim // heads
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def remember(self, memory_BSD: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        """Compute keys and values (B, H, S, K) of the attended sequence, for several calls of `forward`."""
        return rotate(self._split(self.k_proj(memory_BSD)), context), self._split(self.v_proj(memory_BSD))

    def forward(
        self, x_BTD: Tensor, context: Context, remembered: tuple[Tensor, Tensor], valid_BS: Tensor | None = None
    ) -> Tensor:
        """Attend to a remembered sequence; return (B, T, D), 0 if it has no valid tokens."""
        # The content of invalid tokens, NaN included, has no effect.
        keys, values = remembered
        q_BHTK = rotate(self._split(self.q_proj(x_BTD)), context)
        if valid_BS is None:
            return self._merge(F.scaled_dot_product_attention(q_BHTK, keys, values))
        seen_B11 = valid_BS.any(dim=1)[:, None, None]
        mask = (valid_BS | ~seen_B11[..., 0])[:, None, None, :]
        invalid = ~valid_BS[:, None, :, None]
        y_BHTK = F.scaled_dot_product_attention(
            q_BHTK, keys.masked_fill(invalid, 0), values.masked_fill(invalid, 0), attn_mask=mask
        )
        return self._merge(y_BHTK).where(seen_B11, 0)

    def _merge(self, y_BHTK: Tensor) -> Tensor:
        y_BTD: Tensor = self.out_proj(y_BHTK.transpose(1, 2).flatten(2))
        return y_BTD

    def _split(self, x_BTD: Tensor) -> Tensor:
        x_BTHK: Tensor = x_BTD.unflatten(-1, (self.heads, self.head_dim))
        return x_BTHK.transpose(1, 2)
