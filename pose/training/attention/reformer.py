"""Reformer's attention among frames with equal hashes (Kitaev et al., 2020).

Axes: B batch, H head, R round of hashing, T time, N chunk, C frame of a chunk, L key of a chunk, K feature of one head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Capabilities, Context, rotate

MAX_DIRECTIONS = 64  # maximum number of random directions; there are twice as many buckets
SELF_SCORE = -1e5  # score of a frame with itself, so low that it matters only if the frame sees no other frame


class ReformerAttention(Attention):
    """Attention softmax(q_t . k_s) v_s with k = q / |q|, over frames s that are hashed near frame t.

    A frame is seen if hashing places it near t in at least one of `rounds` rounds. Each round has 2 T / `chunk`
    buckets, each with one random direction or its opposite. A frame belongs to the bucket whose direction is nearest to
    its query. Frames are sorted by bucket and time, and cut into chunks. Each chunk attends to itself and the previous
    chunk (the first one only to itself). Pairs that meet in several rounds count once, so the result is a softmax over
    the union, as in the paper. Hashes are of queries without rotary time, so that they do not depend on the origin of
    time.

    Random directions are drawn for every training step and fixed in evaluation mode. There is no causal form, because
    the assignment to chunks depends on later frames.

    Args:
        chunk: Number of frames in a chunk; default 32.
        rounds: Number of rounds of hashing; default 2.
    """

    capabilities = Capabilities(padding=True, causal=False, streaming=False, relative_time=True, cost="O(T log T D)")

    directions: Tensor

    def __init__(self, dim: int, heads: int, *, causal: bool = False, chunk: int = 32, rounds: int = 2) -> None:
        super().__init__(dim, heads, causal=causal)
        if chunk < 1 or rounds < 1:
            raise ValueError(f"chunk and rounds must be at least 1, got {chunk} and {rounds}")
        self.chunk, self.rounds = chunk, rounds
        self.qk_proj = nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.register_buffer("directions", torch.randn(heads, rounds, self.head_dim, MAX_DIRECTIONS))

    @torch.no_grad()
    def begin_step(self, step: int, generator: torch.Generator) -> None:
        self.directions.copy_(torch.randn(self.directions.shape, generator=generator))

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        raw = self.split(self.qk_proj(x_BTD))
        rank = self._ranks(raw, context)
        q, k = _compared(raw, context)
        y_BHTK = self._in_chunks(q, k, self.split(self.v_proj(x_BTD)), rank, context.valid)
        y_BTD: Tensor = self.out_proj(self.merge(y_BHTK))
        return y_BTD

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        """Compute the attention map from all pairs of frames, as a reference for `mix`."""
        raw = self.split(self.qk_proj(x_BTD))
        chunk_BHRT = self._ranks(raw, context) // self.chunk
        before = chunk_BHRT[..., :, None] - chunk_BHRT[..., None, :]
        visible = ((before == 0) | (before == 1)).any(dim=2)
        q, k = _compared(raw, context)
        is_self = torch.eye(x_BTD.shape[1], dtype=torch.bool, device=x_BTD.device)
        if context.valid is not None:
            visible = visible & context.valid[:, None, None] | is_self
        scores = (q @ k.mT).masked_fill(is_self, SELF_SCORE).masked_fill(~visible, -torch.inf)
        return scores.softmax(dim=-1).to(x_BTD.dtype)

    def _ranks(self, raw_BHTK: Tensor, context: Context) -> Tensor:
        """Return the rank of each frame by bucket and time, (B, H, R, T), invalid ones last; reused in a replay."""
        if context.replay:
            return context.stored(self)
        length = raw_BHTK.shape[2]
        with torch.no_grad():
            bucket_BHRT = self._buckets(raw_BHTK, context.valid)
            if context.valid is not None:
                bucket_BHRT = bucket_BHRT.where(context.valid[:, None, None], 2 * MAX_DIRECTIONS)
            order = (bucket_BHRT * length + torch.arange(length, device=bucket_BHRT.device)).argsort(dim=-1)
            return context.store(self, order.argsort(dim=-1))

    def _buckets(self, raw_BHTK: Tensor, valid_BT: Tensor | None) -> Tensor:
        near_BHRTC = raw_BHTK[:, :, None] @ self.directions.to(raw_BHTK.dtype)
        count = raw_BHTK.shape[2] if valid_BT is None else valid_BT.sum(dim=1).view(-1, 1, 1, 1, 1)
        # The number of buckets depends on valid frames only, so that padding has no influence.
        columns = (count + self.chunk - 1) // self.chunk
        unused = torch.arange(MAX_DIRECTIONS, device=near_BHRTC.device) >= columns
        unused = unused & (torch.arange(MAX_DIRECTIONS, device=near_BHRTC.device) > 0)
        return torch.cat(
            (near_BHRTC.masked_fill(unused, -torch.inf), (-near_BHRTC).masked_fill(unused, -torch.inf)), dim=-1
        ).argmax(dim=-1)

    def _in_chunks(self, q: Tensor, k: Tensor, v: Tensor, rank_BHRT: Tensor, valid_BT: Tensor | None) -> Tensor:
        length, rounds = q.shape[2], self.rounds
        order_BHRT = rank_BHRT.argsort(dim=-1)
        fill = -length % self.chunk
        frame_BHRNC = F.pad(order_BHRT + 1, (0, fill)).unflatten(-1, (-1, self.chunk))
        seen_BHRNL = _with_previous_chunk(frame_BHRNC)
        q_BHRNCK, k_BHRNLK, v_BHRNLK = _gathered(q, frame_BHRNC), _gathered(k, seen_BHRNL), _gathered(v, seen_BHRNL)
        is_self = frame_BHRNC[..., :, None] == seen_BHRNL[..., None, :]
        valid = seen_BHRNL > 0
        if valid_BT is not None:
            padded = F.pad(valid_BT, (1, 0))[:, None, None, None].expand(*seen_BHRNL.shape[:4], -1)
            valid = padded.gather(-1, seen_BHRNL)
        scores = (q_BHRNCK @ k_BHRNLK.mT).masked_fill(is_self, SELF_SCORE)
        if rounds > 1:
            scores = scores - self._shared_rounds(rank_BHRT, frame_BHRNC, seen_BHRNL).to(scores.dtype).log()
        scores = scores.masked_fill(~(valid[..., None, :] | is_self), -torch.inf)
        total_BHRNC1 = scores.logsumexp(dim=-1, keepdim=True)
        y_BHRNCK = (scores - total_BHRNC1).exp().to(v.dtype) @ v_BHRNLK
        back = rank_BHRT[..., None]
        y_BHRTK = y_BHRNCK.flatten(3, 4).gather(3, back.expand(-1, -1, -1, -1, v.shape[-1]))
        share = total_BHRNC1.flatten(3, 4).gather(3, back).softmax(dim=2)
        return (share.to(v.dtype) * y_BHRTK).sum(dim=2)

    def _shared_rounds(self, rank_BHRT: Tensor, frame_BHRNC: Tensor, seen_BHRNL: Tensor) -> Tensor:
        """Count the rounds in which a frame sees another, (B, H, R, N, C, L); at least 1."""
        chunk_BHRT = F.pad(rank_BHRT // self.chunk, (1, 0), value=-2)
        count = torch.zeros(*frame_BHRNC.shape, seen_BHRNL.shape[-1], dtype=torch.int64, device=rank_BHRT.device)
        for chunk_BHT in chunk_BHRT.unbind(dim=2):
            query, key = (
                chunk_BHT[:, :, None].expand(-1, -1, self.rounds, -1).gather(-1, frames.flatten(3)).view_as(frames)
                for frames in (frame_BHRNC, seen_BHRNL)
            )
            before = query[..., :, None] - key[..., None, :]
            count = count + ((before == 0) | (before == 1)).long()
        return count.clamp_min(1)


def _compared(raw_BHTK: Tensor, context: Context) -> tuple[Tensor, Tensor]:
    """Return queries and keys rotated by time, with keys of length 1."""
    # The type is at least float32, because masked scores are as low as -1e5.
    q = rotate(raw_BHTK, context)
    q = q.to(torch.promote_types(q.dtype, torch.float32))
    return q, F.normalize(q, dim=-1)


def _with_previous_chunk(frame_BHRNC: Tensor) -> Tensor:
    """Join the previous chunk (zeros before the first) and the chunk itself, (B, H, R, N, 2 C); 0 is padding."""
    before = F.pad(frame_BHRNC, (0, 0, 1, 0))[..., :-1, :]
    return torch.cat((before, frame_BHRNC), dim=-1)


def _gathered(x_BHTK: Tensor, frames: Tensor) -> Tensor:
    """Gather the vectors of the given frames, (B, H, R, N, C or L, K). Frames count from 1; 0 gives zeros."""
    padded = F.pad(x_BHTK, (0, 0, 1, 0))[:, :, None].expand(-1, -1, frames.shape[2], -1, -1)
    index = frames.flatten(3)[..., None].expand(-1, -1, -1, -1, x_BHTK.shape[-1])
    taken: Tensor = padded.gather(3, index).unflatten(3, frames.shape[3:])
    return taken
