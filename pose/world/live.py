"""World coordinates for live results: the steps of `pose.world.clean`, from past frames only.

1. size       estimates bone lengths, equal on both sides, which settle over the first seconds; scales the person to a
              given height
2. depth      filters the distance of single frames, and gives its uncertainty
3. smoothing  applies the One-Euro filter, and restores the bone lengths
4. world      estimates gravity, focal length, floor and sizes together, and follows changes of the estimate slowly
5. contacts   finds foot contacts with hysteresis thresholds

Gaps are not filled and feet are not corrected, because both need future frames. Memory is bounded: people who have left
are forgotten.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera import Camera
from pose.structures.refine import assembled
from pose.structures.skeletons import Skeleton, to_h36m17
from pose.structures.smooth import OneEuro
from pose.structures.types import F64, SENSORS, CameraView, FrameResult, Placed, Poses3D
from pose.world.camera_motion.fit import IDENTITY_VIEW, View
from pose.world.clean import Steps
from pose.world.contacts import ANKLE_HEIGHT
from pose.world.depth import estimate_pelvis
from pose.world.frame import World
from pose.world.gravity import ANKLES
from pose.world.height import scale_to, scaled_stature, stature
from pose.world.live_ground import LiveGround, LivePeople, ShownScene
from pose.world.live_person import LiveBones, LiveContacts, LiveDepth
from pose.world.measured import MeasuredPose
from pose.world.rules import DEPTH, FLOOR, GAPS, LIVE, SIZE, SMOOTH
from pose.world.scene.lines import FrameLines, LineEvidence
from pose.world.work import Person

_MIN_RATIOS, _MAX_RATIOS = 5, 150  # measurements in depth images from which the size follows
_MEASURED_SHARE = 0.015  # standard deviation of a height from depth images, relative


@dataclass(slots=True)
class _Live:
    """State of one person."""

    bones: LiveBones  # bone lengths so far
    depth: LiveDepth  # filter of the distance
    contacts: LiveContacts  # foot contacts so far
    smooth: OneEuro | None = None  # filter of the joints; None before the first frame, and restarted after a long gap
    last: float | None = None  # time of the last frame of the person, s; None before the first one
    height: float = 0.0  # body height, m
    height_sigma: float = 0.0  # standard deviation of the height, m; 0 if the height was given
    # Ratios of the distance in depth images and that of the whole body at the lifted size.
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_RATIOS))
    factor: float = 1.0  # on the lifted size
    known: bool = False  # whether the height was given or measured


class LiveWorld:
    """Transformation of the people of each frame to the world, for a camera that does not translate."""

    def __init__(
        self, camera: Camera, steps: Steps | None = None, *, measured: bool = False, background: bool = False
    ) -> None:
        """Start without people.

        Args:
            camera: Camera of the frames.
            steps: Steps to run, and known properties of camera and people.
            measured: Whether several cameras measure the people, whose sizes and distances are therefore kept.
            background: Whether the scene is solved in a thread; otherwise some frames take tenths of a second longer.
        """
        self._camera, self._steps = camera, steps or Steps()
        self._ground = LiveGround(self._steps.up, camera_known=camera.known, measured=measured, background=background)
        self.shown = self._ground.shown  # the scene as displayed with the last frame
        pelvis = np.arange(17)[:, None] == 0
        self._cut_offs = (
            np.where(pelvis, SMOOTH.live_root_cutoff_hz, SMOOTH.live_cutoff_hz),
            np.where(pelvis, SMOOTH.live_root_cutoff_hz_per_mps, SMOOTH.live_cutoff_hz_per_mps),
        )
        self._people: dict[int, _Live] = {}
        # Heights and their sigmas (m) of the people in the last frame, by track id.
        self.heights: dict[int, tuple[float, float]] = {}

    def follower(self) -> "LiveWorld":
        """Return a new world of the same camera, for other poses of the same frames in the scenes shown here."""
        return LiveWorld(self._camera, self._steps)

    @property
    def world(self) -> World:
        """The world of the last frame."""
        return self.shown.world

    def place(
        self,
        result: FrameResult,
        skeleton: Skeleton,
        view: View = IDENTITY_VIEW,
        measured: Mapping[int, MeasuredPose] | None = None,
        shown: ShownScene | None = None,
    ) -> FrameResult:
        """Clean the poses of the next frame and transform them to the world; NaN for people without 3D.

        Args:
            view: View of a camera that rotates, relative to its first one.
            measured: What the depth image of the frame says, by track id; None without depth images.
            shown: Scene to use; None estimates it from the frames so far.
        """
        time = result.time
        forget_s = LIVE.forget_s
        self._people = {n: one for n, one in self._people.items() if time - (one.last or time) < forget_s}
        rows = _finite_rows(result.poses)
        ids = result.people.ids[rows].tolist()
        lives, elapsed = self._states(ids, time)
        person, lengths = self._sized(_unzoomed(self._seen(result, skeleton, rows), view.zoom), lives, ids, elapsed)
        joints, root = person.joints, person.root
        lifted = (joints + root[:, None]) @ view.rotation
        spread = np.full(len(ids), np.nan)
        if self._steps.depth and ids:
            root, spread = self._at_depth(person, lives, elapsed, [(measured or {}).get(n) for n in ids])
        joints, root = joints @ view.rotation, root @ view.rotation
        if self._steps.smooth and ids:
            joints, root = self._smoothed(joints, root, lives, lengths, time)
        seen, depths = person.scores[:, ANKLES] > FLOOR.min_score, [(measured or {}).get(n) for n in ids]
        sizes = [
            _MEASURED_SHARE * (one is not None or len(live.ratios) >= _MIN_RATIOS)
            for one, live in zip(depths, lives, strict=True)
        ]
        heights, given = [one.height for one in lives], [one.known for one in lives]
        if shown is None:
            self._add_lines(result, view)
            shown = self._ground.update(LivePeople(ids, joints, root, seen, lengths, heights, given, sizes), time)
        self.shown = shown
        joints, root = shown.sized(ids, joints, root)
        body, pelvis = shown.sized(ids, lifted - lifted[:, :1], lifted[:, 0])
        lifted = body + pelvis[:, None]
        self.heights = {n: self._height(n, one) for n, one in zip(ids, lives, strict=True)}
        spread = self._distance_sigmas(ids, lives, depths, spread, root)
        ankles = joints[:, ANKLES] + root[:, None]
        root = root + shown.shifts(ids) * self.world.up
        camera = joints + root[:, None]
        placed = self.world.place(camera)
        heights = (placed[:, ANKLES, 1] - ANKLE_HEIGHT).tolist()
        contacts = np.zeros((len(ids), 2))
        for row, one in enumerate(lives):
            _, contacts[row] = one.contacts.update(ankles[row], heights[row], time)
            one.last = time
        moved = 1000 * _lengths(camera - lifted).mean(axis=1)
        placed_result = _result(
            result, rows, joints @ view.rotation.T, root @ view.rotation.T, placed, spread, contacts, moved,
            self.world.focal,
        )  # fmt: skip
        return placed_result if measured is None else _with_sources(placed_result, measured, skeleton)

    def _add_lines(self, result: FrameResult, view: View) -> None:
        """Give the line segments of a frame to the scene, and keep the focal length of a camera that turns."""
        if view is not IDENTITY_VIEW:
            self._ground.fix_focal()
        segments = result.people.segments
        if segments is not None and len(segments):
            lines = FrameLines.of(result.time, segments, self._camera)
            turns = np.tile(view.rotation.T, (len(lines.ends), 1, 1))
            self._ground.add_lines(LineEvidence(lines.ends / view.zoom, lines.sigmas, turns))

    def _height(self, number: int, one: _Live) -> tuple[float, float]:
        """Return the height of a person and its standard deviation, m."""
        return self.shown.height(number, one.height) or (one.height, one.height_sigma)

    def _distance_sigmas(
        self, ids: list[int], lives: list[_Live], measured: Sequence[MeasuredPose | None], spread: F64, root: F64
    ) -> F64:
        """Return sigmas (P,) mm of distances from those of the filter, with those of body size and focal length."""
        lens = 0.0 if self._camera.known else DEPTH.assumed_focal_sigma_share
        shares = []
        for number, one, seen in zip(ids, lives, measured, strict=True):
            found = self.shown.distance_sigma(number)
            own = math.hypot(one.height_sigma / one.height, lens) if found is None else found
            shares.append(0.0 if seen is not None else own)
        return np.hypot(spread, 1000 * np.array(shares) * _lengths(root))

    def _states(self, ids: list[int], time: float) -> tuple[list[_Live], list[float]]:
        """Return the state of each of the people `ids`, and the time in s since each was last seen."""
        lives, elapsed = [], []
        for number in ids:
            one = self._people.get(number)
            if one is None:
                bones, depth = LiveBones(), LiveDepth()
                one = self._people[number] = _Live(bones, depth, LiveContacts())
            lives.append(one)
            elapsed.append(0.0 if one.last is None else time - one.last)
        return lives, elapsed

    def _seen(self, result: FrameResult, skeleton: Skeleton, rows: "slice | NDArray[np.intp]") -> Person:
        """Return the lifted people of the frame, one per row."""
        people, poses = result.people, result.poses
        pixels, scores = to_h36m17(people.keypoints[rows], people.scores[rows], skeleton)
        if not np.isfinite(pixels.sum()):
            is_finite = np.asarray(np.isfinite(pixels).all(axis=-1))
            pixels, scores = np.where(is_finite[..., None], pixels, 0), np.where(is_finite, scores, 0)
        rays = self._camera.unproject(pixels) * (scores > 0)[..., None]
        joints, root, sigma = (array[rows].astype(np.float64) for array in (poses.joints, poses.root, poses.sigma))
        return Person(joints, root, sigma, np.full(len(root), result.time), rays, scores.astype(np.float64))

    def _sized(self, person: Person, lives: list[_Live], ids: list[int], elapsed: list[float]) -> tuple[Person, F64]:
        """Run step 1 (size), and return the people with their bone lengths (P, 16) m."""
        heights = self._steps.heights
        for row, live in enumerate(lives):
            if live.bones.needs_frame(elapsed[row]):
                live.bones.update(person.joints[row], person.sigma[row])
        lengths = np.array([live.bones.lengths for live in lives]).reshape(-1, 16)
        joints, root = person.joints, person.root
        if self._steps.bones:
            joints = assembled(joints, lengths)
        factors = []
        for row, (number, live) in enumerate(zip(ids, lives, strict=True)):
            own_height = stature(lengths[row])
            wanted = heights.get(number, heights.get(None))
            by_depth = wanted is None and len(live.ratios) >= _MIN_RATIOS
            if by_depth:
                wanted = scaled_stature(own_height, float(np.median(live.ratios)))
            live.height, live.known = own_height if wanted is None else wanted, wanted is not None
            live.factor = 1.0 if wanted is None else scale_to(wanted, own_height)
            factors.append(live.factor)
            unsettled = LIVE.unsettled_share / math.sqrt(1 + live.bones.seconds)
            live.height_sigma = (
                own_height * math.hypot(SIZE.live_sigma_share, unsettled)
                if wanted is None
                else _MEASURED_SHARE * live.height * by_depth
            )
        if any(one != 1.0 for one in factors):
            factor = np.array(factors)[:, None]
            joints, root, lengths = joints * factor[..., None], root * factor, lengths * factor
        return Person(joints, root, person.sigma, person.times, person.rays, person.scores), lengths

    def _at_depth(
        self, person: Person, lives: list[_Live], elapsed: list[float], measured: Sequence[MeasuredPose | None]
    ) -> tuple[F64, F64]:
        """Return roots (P, 3) m after step 2 (depth), and sigmas (P,) mm of the filtered distances."""
        estimate = estimate_pelvis(person)
        depth, spread = np.empty(len(lives)), np.empty(len(lives))
        for row, (one, seen) in enumerate(zip(lives, measured, strict=True)):
            own, variance = float(estimate.depth[row]), float(estimate.variance[row])
            if seen is not None:
                if own > 0:
                    one.ratios.append(seen.depth * one.factor / own)
                weight = 1 / seen.sigma**2
                own, variance = (
                    (own / variance + seen.depth * weight) / (1 / variance + weight),
                    1 / (1 / variance + weight),
                )
            one.depth.update(own, variance, elapsed[row])
            depth[row] = max(one.depth.depth, LIVE.min_depth_m)
            spread[row] = 1000 * math.sqrt(max(one.depth.variance, 0.0))
        return estimate.positions(depth), spread

    def _smoothed(self, joints: F64, root: F64, lives: list[_Live], lengths: F64, time: float) -> tuple[F64, F64]:
        """Run step 3 (smoothing). The filter gets the root in place of the pelvis, which is always 0."""
        absolute = joints.copy()
        absolute[:, 0] = root
        for row, live in enumerate(lives):
            if live.smooth is None or (live.last is not None and time - live.last > GAPS.max_gap_s):
                live.smooth = OneEuro(*self._cut_offs, SMOOTH.live_speed_cutoff_hz)
            absolute[row] = live.smooth(absolute[row], time)
        root = absolute[:, 0].copy()
        absolute[:, 0] = 0
        return (assembled(absolute, lengths) if self._steps.bones else absolute), root


def _with_sources(result: FrameResult, measured: Mapping[int, MeasuredPose], skeleton: Skeleton) -> FrameResult:
    """Return the result with the sensors that measured each joint."""
    assert result.placed is not None
    _, scores = to_h36m17(result.people.keypoints, result.people.scores, skeleton)
    bits = (scores > 0).astype(np.uint8) << SENSORS.index("camera")
    for row, number in enumerate(result.people.ids.tolist()):
        if number in measured:
            bits[row] |= measured[number].joints.astype(np.uint8) << SENSORS.index("depth")
    return replace(result, placed=replace(result.placed, measured_by=bits.astype(np.uint8)))


def _unzoomed(person: Person, zoom: float) -> Person:
    """Correct a person for zoom: with a focal length longer by the factor `zoom`, the person is farther away by it."""
    return replace(person, root=person.root * [1, 1, zoom], rays=person.rays / zoom)


def _lengths(vectors: F64) -> F64:
    return np.asarray(np.sqrt((vectors * vectors).sum(axis=-1)))


def _finite_rows(poses: Poses3D) -> "slice | NDArray[np.intp]":
    """Select the people with finite 3D."""
    with np.errstate(invalid="ignore", over="ignore"):  # infinities of both signs give NaN
        total = poses.joints.sum() + poses.root.sum() + poses.sigma.sum()
    if math.isfinite(total):
        return slice(None)
    numbers = np.concatenate([poses.joints.reshape(len(poses), -1), poses.root, poses.sigma], axis=1)
    return np.flatnonzero(np.isfinite(numbers).all(axis=1))


def _result(
    result: FrameResult,
    rows: "slice | NDArray[np.intp]",
    joints: F64,
    root: F64,
    placed: F64,
    spread: F64,
    contacts: F64,
    moved: F64,
    focal: float,
) -> FrameResult:
    """Return the result of the frame with cleaned poses and world positions in float32; NaN for people without 3D."""
    n = len(result.poses)

    def per_person(values: F64, missing: float = np.nan) -> NDArray[np.float32]:
        if isinstance(rows, slice):
            return values.astype(np.float32)
        full = np.full((n, *values.shape[1:]), missing, np.float32)
        full[rows] = values
        return full

    where = Placed(
        per_person(placed), per_person(spread), per_person(contacts, 0.0), np.zeros(n, bool), per_person(moved)
    )  # fmt: skip
    poses = result.poses
    cleaned = Poses3D(per_person(joints), per_person(root), poses.sigma, poses.swapped, poses.ahead)
    view = None if focal == 1.0 else CameraView(np.eye(3), focal, math.nan)
    return FrameResult(result.people, cleaned, where, view)
