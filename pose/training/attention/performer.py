"""Performer (Choromanski et al., 2021): softmax attention in linear time through positive random features (FAVOR+)."""

import torch
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Cache, Capabilities, Context, rotate
from pose.lifting.attention.scan import ScanInputs, ScanState

EPSILON = 1e-6
ROTATIONS = ("before", "numerator")


def orthogonal_features(blocks: int, size: int, generator: torch.Generator | None = None) -> Tensor:
    """Sample (blocks * size, size) vectors of Gaussian lengths that are orthogonal within each block."""
    # The signs of a QR decomposition are not random, which would bias the estimate. The signs of R's diagonal correct
    # them (Mezzadri, 2007).
    q, r = torch.linalg.qr(torch.randn(blocks, size, size, generator=generator, dtype=torch.float64))
    directions = (q * r.diagonal(dim1=1, dim2=2).sign()[:, None]).mT
    lengths = torch.randn(blocks, size, size, generator=generator, dtype=torch.float64).norm(dim=-1, keepdim=True)
    rows: Tensor = directions * lengths
    return rows.flatten(0, 1)


class PerformerAttention(Attention):
    """Softmax attention estimated with positive random features. A stream has a state of constant size.

    The output is sum_i (phi(q_t) . phi(k_i)) v_i / sum_i phi(q_t) . phi(k_i). The features are phi(x)_m = exp(w_m . x'
    - |x'|^2 / 2) with x' = x / K^(1/4). Their products estimate exp(q . k / sqrt(K)); the w_m are orthogonal random
    vectors.

    Time rotates queries and keys before phi, as in softmax attention. The weights are then positive and sum to 1, so
    the output is a mean of values. The estimate varies slightly with the origin of time, because the random vectors do
    not turn with it. With `rotation` "numerator", time rotates the features in the numerator only (Su et al., 2021, eq.
    19): the origin does not matter, but weights can be negative, do not sum to 1, and the output is not bounded.

    The features of a frame are divided by their largest one before epsilon is added. Keys are then weighted by that
    value relative to the largest one so far. This prevents overflow, and no weight depends on later frames. The
    authors' code uses the maximum over all frames instead, so that later frames affect earlier ones through epsilon.

    Args:
        blocks: Number of blocks of K random features, which all heads share; default 2.
        redraw_every: Number of training steps between new random features; default 0, which keeps them.
        rotation: What time rotates: queries and keys "before" the features (default), or features in the "numerator".
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T M D)")
    cache_fields = ScanState._fields

    random_features: Tensor

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,
        blocks: int = 2,
        redraw_every: int = 0,
        rotation: str = ROTATIONS[0],
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        if rotation not in ROTATIONS:
            raise ValueError(f"rotation: {rotation!r} is not one of {', '.join(ROTATIONS)}")
        if blocks < 1 or redraw_every < 0:
            raise ValueError(f"blocks must be at least 1 and redraw_every at least 0, got {blocks} and {redraw_every}")
        self.blocks, self.redraw_every, self.rotation = blocks, redraw_every, rotation
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.register_buffer("random_features", orthogonal_features(blocks, self.head_dim).float())

    @torch.no_grad()
    def redraw(self, generator: torch.Generator) -> None:
        """Draw new random features from a CPU generator."""
        if not self.training:
            raise ValueError("random features are redrawn in training only")
        self.random_features.copy_(orthogonal_features(self.blocks, self.head_dim, generator))

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        if self.redraw_every and step and step % self.redraw_every == 0:
            self.redraw(generator)

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        if self.causal:
            return self.mix_step(x_BTD, context, self.empty_cache(len(x_BTD), x_BTD.device, x_BTD.dtype))[0]
        y_BHTK = self._scan_inputs(x_BTD, context).bidirectional()
        y_BTD: Tensor = self.out_proj(self.merge(y_BHTK).to(x_BTD.dtype))
        return y_BTD

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> ScanState:
        return ScanState.empty(batch, self.heads, self.blocks * self.head_dim, self.head_dim, device, dtype)

    def mix_step(self, x_BTD: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        y_BHTK, state = self._scan_inputs(x_BTD, context).scan(ScanState(*cache))
        return self.out_proj(self.merge(y_BHTK).to(x_BTD.dtype)), state

    def _scan_inputs(self, x_BTD: Tensor, context: Context) -> ScanInputs:
        q_BHTK, k_BHTK, v_BHTK = (self.split(p(x_BTD)) for p in (self.q_proj, self.k_proj, self.v_proj))
        with torch.autocast(x_BTD.device.type, enabled=False):
            if self.rotation == "before":
                q_BHTK, k_BHTK = rotate(q_BHTK, context), rotate(k_BHTK, context)
            q_BHTM, _ = self._features(q_BHTK)
            k_BHTM, weight_BHT = self._features(k_BHTK)
            if context.valid is not None:
                weight_BHT = weight_BHT.masked_fill(~context.valid[:, None], -torch.inf)
            values_BHTK = v_BHTK.to(k_BHTM.dtype)
            if self.rotation == "before":
                return ScanInputs(q_BHTM, k_BHTM, values_BHTK, weight_BHT, q_BHTM, k_BHTM)
            tiled = Context(context.cos.repeat(1, 1, self.blocks), context.sin.repeat(1, 1, self.blocks))
            turned = (rotate(x, tiled) for x in (q_BHTM, k_BHTM))
            return ScanInputs(q_BHTM, k_BHTM, values_BHTK, weight_BHT, *turned)

    def _features(self, x_BHTK: Tensor) -> tuple[Tensor, Tensor]:
        """Return phi(x) divided by its largest feature, plus epsilon, and the logarithm of that largest feature."""
        x_BHTK = x_BHTK.to(torch.promote_types(x_BHTK.dtype, torch.float32)) * self.head_dim**-0.25
        log_BHTM = x_BHTK @ self.random_features.to(x_BHTK.dtype).mT
        peak_BHT1 = log_BHTM.amax(dim=-1, keepdim=True)
        return (log_BHTM - peak_BHT1).exp() + EPSILON, peak_BHT1[..., 0] - x_BHTK.square().sum(-1) / 2
