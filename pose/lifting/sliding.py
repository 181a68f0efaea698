"""An offline lifter as a stream: a sliding window of which only some frames are recomputed.

A window of the lifter's size slides over the stream. Each layer caches the keys and values of all its frames. With
every new frame, the tokens that are `AGES` frames old run through all layers again, attend to all keys and values, and
replace their own keys and values. A frame is thus lifted when it is new, again as later frames arrive, and finally when
it is 36 frames old. A step costs a twelfth of lifting the whole window. The accuracy is that of lifting the whole
window for every frame, because keys and values of old frames hardly change.

A window and its mirror image are lifted together and averaged, as offline. Axes: P person, M plain and mirrored (2), N
refreshed tokens, F feature, H head, K feature of one head, S slot of the window.
"""

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention import rotary_phases
from pose.lifting.attention.softmax import SoftmaxAttention
from pose.lifting.blocks import Block
from pose.lifting.features import Lifted, decode, observe_next, split_features
from pose.lifting.format import FEATURES, JOINTS, OUTPUT_NAMES, STEP_INPUT_NAMES, STREAM_STATE_NAMES, TYPICAL_STEP
from pose.lifting.model import LifterNetwork
from pose.lifting.step import RotaryFactors, WindowedBlock
from pose.lifting.step_batch import CacheLayout
from pose.structures.skeletons import H36M17

AGES = (0, 1, 2, 4, 9, 18, 36)  # in frames: the frames that each step lifts; 0 is the new one

_FLIP = torch.tensor(H36M17.flip_order)


class SlidingStep(nn.Module):
    """Step for one frame of a stream, with an offline network of softmax attention."""

    # A step lifts the new frame and again some earlier ones, the refreshed frames. Its output `update` holds their new
    # keys and values, for the state tensors `keys0`, `values0`, `keys1`, ... The caller writes them to their slots
    # (`pose.lifting.step_batch.PeopleState`).

    def __init__(self, network: LifterNetwork) -> None:
        super().__init__()
        if not supports(network):
            raise ValueError(
                "a sliding window needs an offline lifter of softmax attention over frames, with a window of more than "
                f"{AGES[-1]}"
            )
        self.window = network.config.window
        attention = cast(SoftmaxAttention, cast(Block, network.blocks[0]).attention)
        self.heads, self.head_dim = attention.heads, attention.head_dim
        self.embed, self.norm, self.head = network.embed, network.norm, network.head
        self.blocks = nn.ModuleList(SlidingBlock(cast(Block, block)) for block in network.blocks)
        self.calibration: Tensor
        self.register_buffer("calibration", network.calibration)
        self.state_names = [f"{name}{i}" for i in range(len(self.blocks)) for name in ("keys", "values")]
        self.inputs = [*STEP_INPUT_NAMES, *STREAM_STATE_NAMES, *self.state_names]  # names of the arguments of `forward`
        self.outputs = [*OUTPUT_NAMES, *(f"next_{name}" for name in STREAM_STATE_NAMES), "update"]
        self.register_buffer("ages", torch.tensor(AGES), persistent=False)
        self.register_buffer(
            "reusable", torch.tensor([a not in (*AGES, self.window) for a in range(self.window + 1)]), False
        )
        order, signs = _mirrored_features()
        self.register_buffer("mirror_order", order, persistent=False)
        self.register_buffer("mirror_signs", signs, persistent=False)

    ages: Tensor
    reusable: Tensor
    mirror_order: Tensor
    mirror_signs: Tensor

    @property
    def cache_layout(self) -> CacheLayout:
        """Initial caches of one person and their layout."""
        empty = torch.zeros(2, self.heads, self.window, self.head_dim).numpy()
        return CacheLayout(dict.fromkeys(self.state_names, empty), pinned=0, ages=AGES)

    def forward(
        self,
        keypoints: Tensor,
        scores: Tensor,
        time: Tensor,
        intrinsics: Tensor,
        derived: Tensor,
        intrinsics_known: Tensor,
        frames: Tensor,
        recent: Tensor,
        recent_times: Tensor,
        *state: Tensor,
    ) -> tuple[Tensor, ...]:
        """Process one frame of P people; return joints (P, N, 17, 3) m, root, sigma (mm), next state and update."""
        # As in `StreamStep`, but `frames` counts the frames before this one, `recent` (P, 37, F) holds the last 37
        # frames, oldest first, and `state` keys and values (P, M, H, S, K) of the plain window and its mirror image (M
        # = 2). N are the ages in `AGES`; the update is (P, 2 depth, M, H, N, K).
        elapsed = torch.where(frames == 0, TYPICAL_STEP, time - recent_times[:, -1])
        newest = observe_next(keypoints, scores, elapsed, recent[:, -1], intrinsics, derived, intrinsics_known)
        recent = torch.cat([recent, newest[:, None]], dim=1)[:, 1:]
        recent_times = torch.cat([recent_times, time[:, None]], dim=1)[:, 1:]
        rows = AGES[-1] - self.ages
        plain = recent[:, rows]
        both = torch.stack([plain, plain[..., self.mirror_order] * self.mirror_signs], dim=1)
        cos, sin = rotary_phases(recent_times[:, rows], self.head_dim)
        rotary = RotaryFactors(
            torch.cat([cos, cos], dim=-1)[:, None, None], torch.cat([-sin, sin], dim=-1)[:, None, None]
        )
        attn_bias = torch.where(self._attention_mask(frames), 0.0, -torch.inf)[:, None, None, None]
        x, update = self.embed(both), []
        for block, keys, values in zip(self.blocks, state[::2], state[1::2], strict=True):
            x, key, value = block(x, rotary, attn_bias, keys, values)
            update += [key, value]
        lifted = self._mean(self.head(self.norm(x)), both)
        following = (frames + 1, recent, recent_times, torch.stack(update, dim=1))
        return lifted.joints, lifted.root, lifted.sigma, *following

    def _attention_mask(self, frames: Tensor) -> Tensor:
        """Return a mask (P, S + N) to attend to: slots not refreshed in this step, and existing refreshed frames."""
        now = frames[:, None]
        slot = torch.arange(self.window, device=frames.device)
        age = 1 + (now - 1 - slot) % self.window
        return torch.cat([(age <= now) & self.reusable[age], self.ages <= now], dim=1)

    def _mean(self, outputs: Tensor, both: Tensor) -> Lifted:
        """Return the mean of the outputs for a window and for its mirror image; geometric for sigma."""
        plain, mirrored = (
            decode(outputs[:, side], split_features(both[:, side]), self.calibration) for side in range(2)
        )
        signs = outputs.new_tensor([-1.0, 1.0, 1.0])
        return Lifted(
            (plain.joints + mirrored.joints[..., _FLIP, :] * signs) / 2,
            (plain.root + mirrored.root * signs) / 2,
            (plain.sigma * mirrored.sigma[..., _FLIP]).sqrt(),
        )


class SlidingBlock(WindowedBlock):
    """One block of a `SlidingStep`. In every step it recomputes the tokens of a few recent frames of all people."""

    # x (P, M, N, D), keys and values (P, M, H, N, K)

    def _attend(
        self, x: Tensor, rotary: RotaryFactors, attn_bias: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        qkv = F.linear(x, self.qkv_weight, self.qkv_bias).unflatten(-1, (3 * self.heads, self.head_dim))
        qkv = qkv.transpose(2, 3)
        query, key = rotary(qkv[:, :, : 2 * self.heads]).chunk(2, dim=2)
        value = qkv[:, :, 2 * self.heads :]
        weights = (torch.cat([query @ keys.mT, query @ key.mT], dim=-1) + attn_bias).softmax(dim=-1)
        slots = keys.shape[-2]
        y = weights[..., :slots] @ values + weights[..., slots:] @ value
        return self.out_proj(y.transpose(2, 3).flatten(3)), key, value


def supports(network: LifterNetwork) -> bool:
    """Return whether a network can run as a sliding window."""
    # It must be an offline transformer with one token per frame, softmax attention, plain residual connections, and a
    # window of more than 36 frames.
    config = network.config
    plain = config.model == "transformer" and config.residual == "plain" and config.tokens == "frames"
    window_fits = (
        config.window > AGES[-1] and not config.streaming and not config.adaptive_depth and config.shared_maps == 1
    )
    return (
        plain
        and window_fits
        and all(type(cast(Block, block).attention) is SoftmaxAttention for block in network.blocks)
    )


def _mirrored_features() -> tuple[Tensor, Tensor]:
    """Return the order and the signs (F,) that convert the features of a frame to those of its mirror image."""
    flip: Sequence[int] = H36M17.flip_order
    pairs = [2 * joint + axis for joint in flip for axis in range(2)]
    order = [*pairs, *(2 * JOINTS + j for j in flip), *(3 * JOINTS + j for j in flip), *range(4 * JOINTS, FEATURES)]
    signs = torch.ones(FEATURES)
    signs[: 2 * JOINTS : 2] = -1
    signs[4 * JOINTS] = -1  # x of the centre
    return torch.tensor(order), signs
