"""Motion of all people at evenly spaced times in the frame of the first camera, and vertical and floor of the world."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.gaps import LONGEST_GAP_SECONDS
from pose.multiview.fuse import Fused, fuse
from pose.multiview.rig import Rig
from pose.multiview.types import ViewCamera
from pose.refine import lengths_of
from pose.types import F32, F64, U8, Flags
from pose.world.contacts import find_contacts
from pose.world.floor import common_floor, own_floor
from pose.world.frame import World
from pose.world.gravity import ANKLES, BodyMotion, find_gravity, given_gravity
from pose.world.height import scale_to, stature

FASTEST = 60.0  # maximum frames/s of the result


@dataclass(frozen=True, slots=True)
class FusedMotion:
    """Motion of one person, fused from all cameras.

    Attributes:
        frames: (K,) indices on the time line, increasing.
        joints: (K, 17, 3) m in the frame of the first camera.
        sigma: (K, 17) mm, the radius that contains the true joint with probability 0.68.
        seen_by: (K, 17), bit c is set if camera c detected the joint close to its fused position.
        residual: (C, K) px, median reprojection error over joints, NaN where a camera does not see the person.
    """

    frames: np.ndarray
    joints: F32
    sigma: F32
    seen_by: U8
    residual: F32


@dataclass(frozen=True, slots=True)
class _Part:
    """A fused window in the number types of the results; the attributes are those of `Fused` and `FusedMotion`."""

    instants: F64
    present: Flags
    joints: F32
    sigma: F32
    seen_by: U8
    residual: F32

    @classmethod
    def of(cls, fused: Fused) -> "_Part":
        seen = fused.observed.astype(np.int64)
        return cls(
            fused.instants,
            fused.present,
            fused.joints.astype(np.float32),
            fused.sigma.astype(np.float32),
            (seen << np.arange(len(seen))[:, None, None]).sum(axis=0).astype(np.uint8),
            fused.residual.astype(np.float32),
        )


@dataclass(frozen=True, slots=True)
class FusedTimes:
    """Times of the fused results.

    Attributes:
        times: (F,) s since the first frame of the camera that starts first, evenly spaced.
        begins: Time zero on the first camera's clock, s.
    """

    times: F64
    begins: float

    @property
    def fps(self) -> float:
        """Frame rate, frames/s."""
        return 1 / float(self.times[1] - self.times[0])


def fused_times(cameras: Sequence[ViewCamera], spans: Sequence[tuple[float, float]], fps: float) -> FusedTimes:
    """Return the time line from the earliest start to the latest end of the cameras.

    Args:
        cameras: The cameras.
        spans: Times (first, last) s of each camera on its own clock.
        fps: Frame rate of the results, frames/s; limited to `FASTEST`.
    """
    ends = [camera.common_time(np.array(span)) for camera, span in zip(cameras, spans, strict=True)]
    begins, last = min(float(one[0]) for one in ends), max(float(one[1]) for one in ends)
    rate = min(fps, FASTEST)
    count = max(math.floor((last - begins) * rate + 1e-6) + 1, 2)
    return FusedTimes(np.arange(count) / rate, begins)


def on_time_line(rig: Rig, line: FusedTimes) -> Rig:
    """Return the rig with clock offsets relative to the time line instead of the first camera's clock."""
    return replace(rig, cameras=[replace(camera, offset=camera.offset - line.begins) for camera in rig.cameras])


def find_motions(rig: Rig, line: FusedTimes, step: Callable[[int], None] = lambda frames: None) -> list[FusedMotion]:
    """Fuse the tracks of all people, and return their motion.

    Args:
        rig: Cameras and people, from `on_time_line`.
        line: The time line.
        step: Callback that receives the number of frames finished since the last call.
    """
    found = []
    for tracks, bones in zip(rig.people, rig.bones, strict=True):
        ends = [rig.cameras[c].common_time(track.times[[0, -1]]) for c, track in tracks.items()]
        low = int(np.searchsorted(line.times, min(float(one[0]) for one in ends) - 1e-6))
        high = int(np.searchsorted(line.times, max(float(one[1]) for one in ends) + 1e-6))
        high = max(high, min(low + 2, len(line.times)))
        low = min(low, high - 2)
        parts = []
        for part in fuse(tracks, rig.cameras, line.times[low:high], bones, rig.scale):
            parts.append(_Part.of(part))
            step(len(part.instants))
        if not parts:
            continue
        instants = np.concatenate([part.instants for part in parts])
        present = np.concatenate([part.present for part in parts])
        kept = _near(instants, instants[present], LONGEST_GAP_SECONDS / 2)
        found.append(
            FusedMotion(
                np.rint(instants * line.fps).astype(np.int64)[kept],
                np.concatenate([part.joints for part in parts])[kept],
                np.concatenate([part.sigma for part in parts])[kept],
                np.concatenate([part.seen_by for part in parts])[kept],
                np.concatenate([part.residual for part in parts], axis=1)[:, kept],
            )
        )
    return found


def _near(instants: F64, seen: F64, reach: float) -> np.ndarray:
    """Return (K,) whether times are within `reach` s of one of the times `seen`, which increase."""
    if not len(seen):
        return np.zeros(len(instants), bool)
    place = np.clip(np.searchsorted(seen, instants), 1, max(len(seen) - 1, 1))
    before, after = seen[place - 1], seen[np.minimum(place, len(seen) - 1)]
    return np.minimum(np.abs(instants - before), np.abs(after - instants)) <= reach + 1e-9


def stature_of(motion: FusedMotion) -> float:
    """Return the body height in m from the median bone lengths."""
    return stature(lengths_of(motion.joints, motion.sigma))


def scale_for_height(motions: Sequence[FusedMotion], height: float) -> float:
    """Return the scale factor that makes the person with the most frames `height` m tall."""
    longest = max(motions, key=lambda motion: len(motion.frames))
    return scale_to(height, stature_of(longest))


def find_world(motions: Sequence[FusedMotion], line: FusedTimes, up: F64 | None = None) -> World:
    """Find the vertical direction and floor of the scene.

    Args:
        motions: Motion of all people.
        line: The time line.
        up: (3,) upward direction in the first camera's axes; None to estimate it.

    Returns:
        The world relative to the first camera.
    """
    standing = [
        BodyMotion(
            (motion.joints - motion.joints[:, :1]).astype(np.float64),
            motion.joints[:, 0].astype(np.float64),
            line.times[motion.frames],
        )
        for motion in motions
    ]
    world = given_gravity(up) if up is not None else find_gravity(standing)
    floors, seconds = [], []
    for motion in motions:
        floor = own_floor(world.place(motion.joints[:, ANKLES].astype(np.float64)), line.times[motion.frames])
        if floor is not None:
            floors.append(floor)
            seconds.append(len(motion.frames) / line.fps)
    if not floors:
        return world
    return replace(world, floor=world.floor + common_floor(floors, seconds), floor_known=True)


def contacts_of(motion: FusedMotion, world: World, line: FusedTimes) -> F64:
    """Return the probabilities (K, 2) of contact of the left and right foot with the floor of the world."""
    placed = world.place(motion.joints[:, ANKLES].astype(np.float64))
    return find_contacts(placed, line.times[motion.frames])[1]
