"""Windowed attention with time and memory linear in the sequence length.

Queries are processed in blocks, and each block is compared only with a band of nearby keys.

Axes: B batch, H head, X batch and head combined, T time, K feature of one head, N block, C query of a block, L key of
a block's band.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from pose.lifting.attention.softmax import Window

SMALLEST_BLOCK = 32


def band_length(window: Window) -> int:
    """Return the number of keys for which `banded_attention` computes each query's scores."""
    return _block(window) + (window.reach - 1) * (1 if window.causal else 2) + window.pinned


def banded_attention(q: Tensor, k: Tensor, v: Tensor, window: Window, valid_BT: Tensor | None) -> Tensor:
    """Compute softmax(q k^T / sqrt(K)) v of (B, H, T, K), masked by `window.mask(T, valid_BT)`."""
    heads, length = q.shape[1:3]
    window = replace(window, pinned=min(window.pinned, length))
    block, before = _block(window), window.reach - 1
    blocks = -(-length // block)
    fill, after = blocks * block - length, 0 if window.causal else before
    q_XNCK = F.pad(q.flatten(0, 1), (0, 0, 0, fill)).unflatten(1, (blocks, block))
    k_XNLK, v_XNLK = (
        F.pad(x.flatten(0, 1), (0, 0, before, fill + after)).unfold(1, before + block + after, block).mT for x in (k, v)
    )
    if window.pinned:
        first = (x.flatten(0, 1)[:, None, : window.pinned].expand(-1, blocks, -1, -1) for x in (k, v))
        k_XNLK, v_XNLK = (torch.cat(pair, dim=2) for pair in zip((k_XNLK, v_XNLK), first, strict=True))
    mask = _mask(window, length, valid_BT, q.device)
    if valid_BT is not None:
        mask = mask.repeat_interleave(heads, dim=0)
    y_XNCK = F.scaled_dot_product_attention(q_XNCK, k_XNLK, v_XNLK, attn_mask=mask)
    y_BHTK: Tensor = y_XNCK.flatten(1, 2)[:, :length].unflatten(0, (-1, heads))
    if not window.pinned or window.causal:
        return y_BHTK
    pinned_mask = window.mask_rows(slice(0, window.pinned), length, valid_BT, q.device)
    y_first = F.scaled_dot_product_attention(q[:, :, : window.pinned], k, v, attn_mask=pinned_mask)
    return torch.cat((y_first, y_BHTK[:, :, window.pinned :]), dim=2)


def _block(window: Window) -> int:
    return max(SMALLEST_BLOCK, window.reach - 1)


def _mask(window: Window, length: int, valid_BT: Tensor | None, device: torch.device) -> Tensor:
    """Return which keys of its band each query sees, (1 or B, N, C, L). The pinned frames are the last keys."""
    block, before = _block(window), window.reach - 1
    start_N11 = torch.arange(0, length, block, device=device)[:, None, None]
    query_NC1 = start_N11 + torch.arange(block, device=device)[:, None]
    near_N1L = start_N11 - before + torch.arange(band_length(window) - window.pinned, device=device)
    pinned = torch.arange(window.pinned, device=device)
    near_NCL = replace(window, pinned=0).allows(query_NC1, near_N1L) & (near_N1L >= window.pinned)
    allowed_NCL = torch.cat((near_NCL, window.allows(query_NC1, pinned)), dim=-1)
    key_N1L = torch.cat((near_N1L, pinned.expand(len(start_N11), 1, -1)), dim=-1)
    there = ((key_N1L >= 0) & (key_N1L < length))[None]
    if valid_BT is not None:
        there = there & valid_BT[:, key_N1L.clamp(0, length - 1)]
    return allowed_NCL & (there | (key_N1L == query_NC1))
