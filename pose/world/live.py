"""World coordinates for live results: the steps of `pose.world.clean`, from past frames only.

1. size       estimates bone lengths, equal on both sides, which settle over the first seconds; scales the person to a
              given height
2. depth      filters the distance of single frames, and gives its uncertainty
3. smoothing  applies the One-Euro filter, and restores the bone lengths
4. world      estimates gravity and floor, and follows changes of the estimate slowly
5. contacts   finds foot contacts with hysteresis thresholds

Gaps are not filled and feet are not corrected, because both need future frames. Memory is bounded: people who have left
are forgotten.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera import Camera
from pose.structures.refine import assembled
from pose.structures.skeletons import Skeleton, to_h36m17
from pose.structures.smooth import OneEuro
from pose.structures.types import F64, CameraView, FrameResult, Placed, Poses3D
from pose.world.camera_motion.fit import IDENTITY_VIEW, View
from pose.world.clean import Steps
from pose.world.depth import estimate_pelvis
from pose.world.floor import ANKLE_HEIGHT
from pose.world.frame import World
from pose.world.gravity import ANKLES
from pose.world.height import scale_to, stature
from pose.world.live_ground import LiveGround, LivePeople
from pose.world.live_person import LiveBones, LiveContacts, LiveDepth
from pose.world.person import Person
from pose.world.rules import RULES, Rules
from pose.world.scene.lines import FrameLines, LineEvidence


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


class LiveWorld:
    """Transformation of the people of each frame to the world, for a camera that does not translate."""

    def __init__(
        self,
        camera: Camera,
        steps: Steps | None = None,
        rules: Rules = RULES,
        *,
        measured: bool = False,
        background: bool = False,
    ) -> None:
        """Start without people.

        Args:
            camera: Camera of the frames.
            steps: Steps to run, and known properties of camera and people.
            rules: Thresholds.
            measured: Whether several cameras measure the people, whose sizes and distances are therefore kept.
            background: Whether the scene is solved in a thread; otherwise some frames take tenths of a second longer.
        """
        self._camera, self._steps, self._rules = camera, steps or Steps(), rules
        self._ground = LiveGround(
            self._steps.up, rules, camera_known=camera.known, measured=measured, background=background
        )
        smooth, pelvis = rules.smooth, np.arange(17)[:, None] == 0
        self._cut_offs = (
            np.where(pelvis, smooth.live_root_cutoff_hz, smooth.live_cutoff_hz),
            np.where(pelvis, smooth.live_root_cutoff_hz_per_mps, smooth.live_cutoff_hz_per_mps),
        )
        self._people: dict[int, _Live] = {}
        # Heights and their sigmas (m) of the people in the last frame, by track id.
        self.heights: dict[int, tuple[float, float]] = {}

    @property
    def world(self) -> World:
        """The world of the last frame."""
        return self._ground.world

    def place(self, result: FrameResult, skeleton: Skeleton, view: View = IDENTITY_VIEW) -> FrameResult:
        """Clean the poses of the next frame and transform them to the world; NaN for people without 3D."""
        time = result.time
        forget_s = self._rules.live.forget_s
        self._people = {n: one for n, one in self._people.items() if time - (one.last or time) < forget_s}
        rows = _finite_rows(result.poses)
        ids = result.people.ids[rows].tolist()
        lives, elapsed = self._states(ids, time)
        person, lengths = self._sized(_unzoomed(self._seen(result, skeleton, rows), view.zoom), lives, ids, elapsed)
        joints, root = person.joints, person.root
        lifted = (joints + root[:, None]) @ view.rotation
        spread = np.full(len(ids), np.nan)
        if self._steps.depth and ids:
            root, spread = self._at_depth(person, lives, elapsed)
        joints, root = joints @ view.rotation, root @ view.rotation
        if self._steps.smooth and ids:
            joints, root = self._smoothed(joints, root, lives, lengths, time)
        self._add_lines(result, view)
        seen = person.scores[:, ANKLES] > self._rules.floor.min_score
        heights, given = [one.height for one in lives], [one.height_sigma == 0 for one in lives]
        raised = self._ground.update(LivePeople(ids, joints, root, seen, lengths, heights, given), time)
        joints, root = self._ground.sized(ids, joints, root)
        body, pelvis = self._ground.sized(ids, lifted - lifted[:, :1], lifted[:, 0])
        lifted = body + pelvis[:, None]
        self.heights = {n: self._height(n, one) for n, one in zip(ids, lives, strict=True)}
        spread = self._distance_sigmas(ids, lives, spread, root)
        ankles = joints[:, ANKLES] + root[:, None]
        root = root + np.array(raised).reshape(-1, 1) * self.world.up
        camera = joints + root[:, None]
        placed = self.world.place(camera)
        heights = (placed[:, ANKLES, 1] - ANKLE_HEIGHT).tolist()
        contacts = np.zeros((len(ids), 2))
        for row, one in enumerate(lives):
            _, contacts[row] = one.contacts.update(ankles[row], heights[row], time)
            one.last = time
        moved = 1000 * _lengths(camera - lifted).mean(axis=1)
        return _result(
            result,
            rows,
            joints @ view.rotation.T,
            root @ view.rotation.T,
            placed,
            spread,
            contacts,
            moved,
            self._ground.focal,
        )

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
        return self._ground.height(number, one.height) or (one.height, one.height_sigma)

    def _distance_sigmas(self, ids: list[int], lives: list[_Live], spread: F64, root: F64) -> F64:
        """Return sigmas (P,) mm of distances from those of the filter, with those of body size and focal length."""
        lens = 0.0 if self._camera.known else self._rules.depth.assumed_focal_sigma_share
        sizes = []
        for number, one in zip(ids, lives, strict=True):
            found = self._ground.distance_sigma(number)
            sizes.append(math.hypot(one.height_sigma / one.height, lens) if found is None else found)
        return np.hypot(spread, 1000 * np.array(sizes) * _lengths(root))

    def _states(self, ids: list[int], time: float) -> tuple[list[_Live], list[float]]:
        """Return the state of each of the people `ids`, and the time in s since each was last seen."""
        lives, elapsed, rules = [], [], self._rules
        for number in ids:
            one = self._people.get(number)
            if one is None:
                bones, depth = LiveBones(rules.live), LiveDepth(rules.depth, rules.live)
                one = self._people[number] = _Live(bones, depth, LiveContacts(rules.contacts, rules.live))
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
        rules, heights = self._rules, self._steps.heights
        for row, live in enumerate(lives):
            if live.bones.needs_frame(elapsed[row]):
                live.bones.update(person.joints[row], person.sigma[row])
        lengths = np.array([live.bones.lengths for live in lives]).reshape(-1, 16)
        joints, root = person.joints, person.root
        if self._steps.bones:
            joints = assembled(joints, lengths)
        factors = []
        for row, (number, live) in enumerate(zip(ids, lives, strict=True)):
            own_height = stature(lengths[row], rules.size)
            wanted = heights.get(number, heights.get(None))
            live.height = own_height if wanted is None else wanted
            factors.append(1.0 if wanted is None else scale_to(wanted, own_height, rules.size))
            unsettled = rules.live.unsettled_share / math.sqrt(1 + live.bones.seconds)
            live.height_sigma = (
                own_height * math.hypot(rules.size.live_sigma_share, unsettled) if wanted is None else 0.0
            )
        if heights:
            factor = np.array(factors)[:, None]
            joints, root, lengths = joints * factor[..., None], root * factor, lengths * factor
        return Person(joints, root, person.sigma, person.times, person.rays, person.scores), lengths

    def _at_depth(self, person: Person, lives: list[_Live], elapsed: list[float]) -> tuple[F64, F64]:
        """Return roots (P, 3) m after step 2 (depth), and sigmas (P,) mm of the filtered distances."""
        estimate, rules = estimate_pelvis(person, self._rules.depth), self._rules
        depth, spread = np.empty(len(lives)), np.empty(len(lives))
        for row, one in enumerate(lives):
            one.depth.update(float(estimate.depth[row]), float(estimate.variance[row]), elapsed[row])
            depth[row] = max(one.depth.depth, rules.live.min_depth_m)
            spread[row] = 1000 * math.sqrt(max(one.depth.variance, 0.0))
        return estimate.positions(depth), spread

    def _smoothed(self, joints: F64, root: F64, lives: list[_Live], lengths: F64, time: float) -> tuple[F64, F64]:
        """Run step 3 (smoothing). The filter gets the root in place of the pelvis, which is always 0."""
        absolute = joints.copy()
        absolute[:, 0] = root
        for row, live in enumerate(lives):
            if live.smooth is None or (live.last is not None and time - live.last > self._rules.gaps.max_gap_s):
                live.smooth = OneEuro(*self._cut_offs, self._rules.smooth.live_speed_cutoff_hz)
            absolute[row] = live.smooth(absolute[row], time)
        root = absolute[:, 0].copy()
        absolute[:, 0] = 0
        return (assembled(absolute, lengths) if self._steps.bones else absolute), root


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
