"""Window attention whose time and memory grow with the length alone: blocks of queries, each against its neighbourhood.

Axes: B batch, H head, T time, K feature of one head, N block, C query of a block, L key of a block's neighbourhood.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from pose.attention.softmax import Window

SMALLEST_BLOCK = 32


def banded_attention(q: Tensor, k: Tensor, v: Tensor, window: Window, valid_BT: Tensor | None) -> Tensor:
    """softmax(q k^T / sqrt(K)) v masked by `window.mask(T, valid_BT)`; all (B, H, T, K)."""
    batch, heads, length, size = q.shape
    window = replace(window, pinned=min(window.pinned, length))
    block = max(SMALLEST_BLOCK, window.reach - 1)
    blocks = -(-length // block)
    fill = (0, 0, 0, blocks * block - length)
    q_BNHCK, k_BNHCK, v_BNHCK = (F.pad(x, fill).unflatten(2, (blocks, block)).transpose(1, 2) for x in (q, k, v))
    k_BNHLK, v_BNHLK = (_neighbourhood(x, window) for x in (k_BNHCK, v_BNHCK))
    if window.pinned:
        first = (x[:, None, :, : window.pinned].expand(-1, blocks, -1, -1, -1) for x in (k, v))
        k_BNHLK, v_BNHLK = (torch.cat(pair, dim=3) for pair in zip((k_BNHLK, v_BNHLK), first, strict=True))
    mask_BNCL = _mask(window, length, block, blocks, valid_BT, q.device).expand(batch, -1, -1, -1)
    y = F.scaled_dot_product_attention(
        q_BNHCK.flatten(0, 1), k_BNHLK.flatten(0, 1), v_BNHLK.flatten(0, 1), mask_BNCL.flatten(0, 1)[:, None]
    )
    y_BHTK = y.unflatten(0, (batch, blocks)).transpose(1, 2).reshape(batch, heads, -1, size)[:, :, :length]
    if not window.pinned or window.causal:
        return y_BHTK
    pinned_mask = window.mask_rows(slice(0, window.pinned), length, valid_BT, q.device)
    y_first = F.scaled_dot_product_attention(q[:, :, : window.pinned], k, v, attn_mask=pinned_mask)
    return torch.cat((y_first, y_BHTK[:, :, window.pinned :]), dim=2)


def _neighbourhood(x_BNHCK: Tensor, window: Window) -> Tensor:
    """Every block with the one before it and, unless causal, the one after it: (B, N, H, L, K)."""
    none = torch.zeros_like(x_BNHCK[:, :1])
    parts = [torch.cat((none, x_BNHCK[:, :-1]), dim=1), x_BNHCK]
    if not window.causal:
        parts.append(torch.cat((x_BNHCK[:, 1:], none), dim=1))
    return torch.cat(parts, dim=3)


def _mask(
    window: Window, length: int, block: int, blocks: int, valid_BT: Tensor | None, device: torch.device
) -> Tensor:
    """(1 or B, N, C, L + pinned): which keys of its neighbourhood, then of the pinned frames, each query sees."""
    start_N11 = torch.arange(blocks, device=device)[:, None, None] * block
    query_NC1 = start_N11 + torch.arange(block, device=device)[:, None]
    near_N1L = start_N11 - block + torch.arange(block * (2 if window.causal else 3), device=device)
    pinned = torch.arange(window.pinned, device=device)
    near_NCL = replace(window, pinned=0).allows(query_NC1, near_N1L) & (near_N1L >= window.pinned)
    allowed_NCL = torch.cat((near_NCL, window.allows(query_NC1, pinned)), dim=-1)
    key_N1L = torch.cat((near_N1L, pinned.expand(blocks, 1, -1)), dim=-1)
    there = (key_N1L >= 0) & (key_N1L < length)
    if valid_BT is not None:
        there = there & valid_BT[:, key_N1L.clamp(0, length - 1)]
    return (allowed_NCL & (there | (key_N1L == query_NC1))).view(-1, blocks, block, key_N1L.shape[-1])
