"""Motion of all people at evenly spaced times in the frame of the first camera, and vertical and floor of the world."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.multiview.fuse import fuse
from pose.multiview.rig import Rig
from pose.multiview.stored import (
    BATCH_ROWS,
    MAX_ROWS_IN_MEMORY,
    FusedMotion,
    motion_row,
    motion_rows,
    stored_motions,
)
from pose.multiview.types import Lab, ViewCamera, ViewTrack
from pose.structures.defaults import MAX_TRACK_GAP_S
from pose.structures.refine import lengths_of
from pose.structures.types import F32, F64, Flags
from pose.utils.row_file import RowFile, Rows
from pose.world.contacts import common_floor, find_contacts, own_floor
from pose.world.frame import CALIBRATION, UNKNOWN, World
from pose.world.gravity import ANKLES, body_directions, find_gravity, given_gravity
from pose.world.height import scale_to, scaled_stature, stature
from pose.world.rules import TRACKS

# Agreement of a calibration's frame with people: minimum cosine of its vertical and theirs, and maximum distance of its
# origin from their floor.
_MIN_LAB_COSINE, _MAX_LAB_FLOOR_M = 0.94, 0.15

MAX_FPS = 60.0  # maximum frames/s of the result
ADULT_LOG_SIGMA = 0.054  # of body heights: C. C. Gordon et al., ANSUR II, 2014
_MAX_HEIGHT_CONTRADICTION = 0.08  # largest difference of the logarithms of scales from several heights, without a note
MIN_SEEN_JOINTS = 4  # minimum observed joints of a person that a camera sees


@dataclass(frozen=True, slots=True)
class FusedTimes:
    """Times of the fused results."""

    times: F64  # (F,) s since the first frame of the camera that starts first, evenly spaced
    begins: float  # time zero on the first camera's clock, s

    @property
    def fps(self) -> float:
        """Frame rate, frames/s."""
        return 1 / float(self.times[1] - self.times[0])


def fused_times(cameras: Sequence[ViewCamera], spans: Sequence[tuple[float, float]], fps: float) -> FusedTimes:
    """Return the time line from the earliest start to the latest end of the cameras."""
    ends = [camera.common_time(np.array(span)) for camera, span in zip(cameras, spans, strict=True)]
    begins, last = min(float(end[0]) for end in ends), max(float(end[1]) for end in ends)
    rate = min(fps, MAX_FPS)
    count = max(math.floor((last - begins) * rate + 1e-6) + 1, 2)
    return FusedTimes(np.arange(count) / rate, begins)


def on_time_line(rig: Rig, line: FusedTimes) -> Rig:
    """Return the rig with clock offsets relative to the time line instead of the first camera's clock."""
    return replace(rig, cameras=[replace(camera, offset=camera.offset - line.begins) for camera in rig.cameras])


def find_motions(rig: Rig, line: FusedTimes, step: Callable[[int], None] = lambda frames: None) -> list[FusedMotion]:
    """Fuse the tracks of all people, and return their motion; PoseError if the disk is full."""
    kind = motion_row(len(rig.cameras))
    with RowFile(kind, memory=MAX_ROWS_IN_MEMORY * kind.itemsize) as rows:
        kept = []
        for person, (tracks, bones) in enumerate(zip(rig.people, rig.bones, strict=True)):
            instants, present = [np.zeros(0)], [np.zeros(0, bool)]
            for part in fuse(tracks, rig.cameras, _times_of(tracks, rig, line), bones, rig.scale):
                rows.append(person, motion_rows(part, line.fps))
                instants.append(part.instants)
                present.append(part.present)
                step(len(part.instants))
            times = np.concatenate(instants)
            kept.append(_near(times, times[np.concatenate(present)], MAX_TRACK_GAP_S / 2))
        counts = [int(mask.sum()) for mask in kept if len(mask)]
        return stored_motions(_kept(rows, kept), counts, kind)


def _times_of(tracks: Mapping[int, ViewTrack], rig: Rig, line: FusedTimes) -> F64:
    """Return the times of the time line at which a person is tracked, at least two."""
    ends = [rig.cameras[c].common_time(track.times[[0, -1]]) for c, track in tracks.items()]
    low = int(np.searchsorted(line.times, min(float(end[0]) for end in ends) - 1e-6))
    high = int(np.searchsorted(line.times, max(float(end[1]) for end in ends) + 1e-6))
    high = max(high, min(low + 2, len(line.times)))
    return line.times[min(low, high - 2) : high]


def _kept(rows: RowFile, masks: Sequence[Flags]) -> Iterator[Rows]:
    """Yield the rows of each person where its mask is True."""
    for person, mask in enumerate(masks):
        first = 0
        for part in rows.portions(person, BATCH_ROWS):
            yield part[mask[first : first + len(part)]]
            first += len(part)


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


def doubtful_people(motions: Sequence[FusedMotion], fps: float) -> tuple[int, ...]:
    """Return the ids 1, 2, ... of people that two cameras see at once for less than 0.5 s and half of their time."""
    return tuple(
        person for person, motion in enumerate(motions, 1)
        if _shared_frames(motion) < min(TRACKS.doubtful_seen_s * fps, len(motion.frames) / 2)
    )  # fmt: skip


def _shared_frames(motion: FusedMotion) -> int:
    """Return the number of frames in which two or more cameras see at least `MIN_SEEN_JOINTS` joints each."""
    bits, count = np.arange(motion.residual.shape[1]), 0
    for first in range(0, len(motion.frames), BATCH_ROWS):
        seen_by = motion.seen_by[first : first + BATCH_ROWS, :, None]
        seen = ((seen_by >> bits) & 1).sum(axis=1) >= MIN_SEEN_JOINTS
        count += int((seen.sum(axis=1) >= 2).sum())
    return count


@dataclass(frozen=True, slots=True)
class GivenScale:
    """Scale of a scene from given body heights."""

    factor: float  # factor of all lengths
    sigma: float | None  # standard deviation of the logarithm of the scale; None if no person has a given height
    notes: list[str]  # messages about heights that contradict each other, and about unknown ids


def scale_for_heights(motions: Sequence[FusedMotion], heights: Mapping[int | None, float]) -> GivenScale:
    """Return the scale from body heights, m, by id 1, 2, ...; the key None stands for the person seen longest."""
    own = [stature_of(motion) for motion in motions]
    longest = max(range(len(motions)), key=lambda row: len(motions[row].frames))
    rows = {longest if person is None else person - 1: height for person, height in heights.items()}
    known = {row: height for row, height in rows.items() if 0 <= row < len(motions)}
    notes = []
    if absent := sorted(row + 1 for row in rows.keys() - known.keys()):
        ids = ", ".join(map(str, range(1, len(motions) + 1)))
        notes.append(f"height: no person has the id {', '.join(map(str, absent))}; ids: {ids}")
    if not known:
        return GivenScale(1.0, None, notes)
    logs = np.log([scale_to(height, own[row]) for row, height in known.items()])
    sigma = float(logs.std(ddof=1) / math.sqrt(len(logs))) if len(logs) > 1 else 0.0
    factor = math.exp(float(logs.mean()))
    if np.ptp(logs) > _MAX_HEIGHT_CONTRADICTION:
        said = ",".join(f"{row + 1}:{height:.2f}" for row, height in known.items())
        seen = ", ".join(f"{scaled_stature(own[row], factor):.2f}" for row in known)
        notes.insert(
            0, f"height: {said} contradict the cameras, which measure {seen} m at the mean scale; check the ids"
        )
    return GivenScale(factor, sigma, notes)


@dataclass(frozen=True, slots=True)
class _StoredMotion:
    """A person for `find_gravity`, whose joints (K, 17, 3) m may be in a file. Only a part of them is in memory."""

    joints: F32
    times: F64

    def directions(self, feet_ahead: float) -> tuple[F64, F64]:
        """See `gravity.AnyBodyMotion`."""
        axes, heights = np.empty((len(self.joints), 3)), np.empty(len(self.joints))
        for first in range(0, len(self.joints), BATCH_ROWS):
            part = slice(first, first + BATCH_ROWS)
            joints = self.joints[part]
            axes[part], heights[part] = body_directions(joints - joints[:, :1], feet_ahead)
        return axes, heights

    def ankles(self) -> F64:
        """See `gravity.AnyBodyMotion`."""
        root, joints = self.joints[:, :1], self.joints[:, ANKLES]
        return (joints - root).astype(np.float64) + root.astype(np.float64)


def find_world(
    motions: Sequence[FusedMotion], line: FusedTimes, up: F64 | None = None, lab: Lab | None = None
) -> World:
    """Find vertical and floor of the scene relative to the first camera.

    The vertical is `up` (3,), an axis of the calibration's frame `lab` that agrees with people, or that of people. The
    floor contains the origin of `lab` if people stand near it.
    """
    standing = (_StoredMotion(motion.joints, line.times[motion.frames]) for motion in motions)
    world = given_gravity(up) if up is not None else find_gravity(standing)
    if up is None and lab is not None and world.found_by != UNKNOWN:
        axes = np.concatenate([lab.axes.T, -lab.axes.T])
        axis = axes[int((axes @ world.up).argmax())]
        if axis @ world.up > _MIN_LAB_COSINE:
            world = replace(given_gravity(axis), found_by=CALIBRATION)
    floors, seconds = [], []
    for motion in motions:
        floor = own_floor(world.place(motion.joints[:, ANKLES].astype(np.float64)), line.times[motion.frames])
        if floor is not None:
            floors.append(floor)
            seconds.append(len(motion.frames) / line.fps)
    if not floors:
        return world
    floor = world.floor + common_floor(floors, seconds)
    if world.found_by == CALIBRATION and lab is not None and abs(lab.origin @ world.up - floor) < _MAX_LAB_FLOOR_M:
        floor = float(lab.origin @ world.up)
    return replace(world, floor=floor, floor_known=True)


def contacts_of(motion: FusedMotion, world: World, line: FusedTimes) -> F64:
    """Return the probabilities of contact of the left and right foot with the floor, (K, 2) in the K frames."""
    placed = world.place(motion.joints[:, ANKLES].astype(np.float64))
    return find_contacts(placed, line.times[motion.frames])[1]
