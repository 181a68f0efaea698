"""Test whether standing feet stay in place after compensation of the camera's motion.

A camera carried in front of a wall looks like one that rotates or zooms; the background alone cannot distinguish them.
People can: if the translation of the camera is not compensated, standing feet seem to move, all with the same velocity.

The lower foot of a person is mostly in contact, so the most frequent velocity of lower feet is that of the floor. It is
found by mean shift (D. Comaniciu and P. Meer, PAMI 24, 2002) over all people, in windows of some seconds. The density
at zero velocity relative to the highest density is 1 if feet stand, and decreases towards 0 if they slide.

`LiveFooting` is the same test from past frames only.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from pose.structures.types import F64, Flags, FrameResult
from pose.world.camera_motion.decision import Decision, without_scenes
from pose.world.camera_motion.verdict import TRANSLATING, UNKNOWN, CameraMotion, summarise
from pose.world.camera_motion.watch import CameraWatch
from pose.world.contacts import ANKLE_HEIGHT, ground_below
from pose.world.gravity import ANKLES
from pose.world.rules import CONTACTS, FOOTING, LIVE

_STARTS, _ITERATIONS = 60, 8  # start points and iterations of the mean shift
_MIN_SAMPLES = 8  # minimum samples of a window
_REMEDY = "--camera rotating ignores that"


def lower_foot_velocities(placed: F64, times: F64, seen: Flags) -> F64:
    """Return (N, 6) of the visible lower foot near the floor: time, vx, vz, duration, line of sight (x, z)."""
    # The lower foot has the lower ankle in a frame; it is mostly in contact. Velocities are in m/s, with the component
    # along the line of sight times `FOOTING.along_share`; the line of sight is a unit vector.
    if len(times) < 3:
        return np.zeros((0, 6))
    ankles, rows = placed[:, ANKLES], np.arange(len(times))
    low = ankles[..., 1].argmin(axis=1)
    velocity = np.gradient(ankles, times, axis=0)[rows, low]
    above = ankles[rows, low, 1] - ground_below(placed, times)
    near = (
        seen[rows, low] & (np.abs(velocity[:, 1]) < FOOTING.max_vertical_mps) & (above < CONTACTS.max_contact_height_m)
    )
    line_of_sight = placed[:, 0, [0, 2]]  # the camera is vertically above the origin
    line_of_sight = line_of_sight / np.maximum(np.linalg.norm(line_of_sight, axis=1, keepdims=True), 1e-9)
    level = velocity[:, [0, 2]]
    level = level - (1 - FOOTING.along_share) * (level * line_of_sight).sum(axis=1, keepdims=True) * line_of_sight
    step = float(np.median(np.diff(times)))
    samples = np.column_stack([times, level, np.full(len(times), step), line_of_sight])
    return np.asarray(samples[near])


@dataclass(frozen=True, slots=True)
class RestDensities:
    """Density of the velocities of lower feet, in W windows of time with enough samples."""

    # `at_rest` is relative to the highest density, whose speed is the apparent speed of the floor if the camera
    # translates.

    at_rest: F64  # (W,) density at zero velocity, relative to the highest density
    peak_speeds: F64  # (W,) m/s, speed at the highest density; the apparent speed of the floor if the camera translates


def find_rest_densities(samples: Iterable[F64]) -> RestDensities:
    """Find the density of the velocities of lower feet at rest, in successive windows of time."""
    rows = _all_rows(samples)
    if not len(rows):
        return RestDensities(np.zeros(0), np.zeros(0))
    begin, span = float(rows[:, 0].min()), float(np.ptp(rows[:, 0]))
    count = max(1, round(span / FOOTING.window_s))
    window = np.minimum(((rows[:, 0] - begin) / max(span, 1e-9) * count).astype(int), count - 1)
    peaks = []
    for number in range(count):
        window_rows = rows[window == number]
        if len(window_rows) >= _MIN_SAMPLES and window_rows[:, 3].sum() >= FOOTING.min_samples_s:
            peaks.append(velocity_peak(window_rows[:, 1:3], FOOTING.kernel_width_mps))
    at_rest, peak_speeds = np.array(peaks).reshape(-1, 2).T
    return RestDensities(at_rest, peak_speeds)


def check_with_feet(decision: Decision, samples: Iterable[F64]) -> Decision:
    """Check with standing feet the decision to compensate a camera motion."""
    # If the background clearly shows the motion, feet change the decision only if they clearly contradict it. Otherwise
    # they must support it. A decision without a path, or whose `check_feet` is False, is returned unchanged. In a clip
    # with cuts, the scenes that feet contradict have no world.
    if decision.path is None or not decision.check_feet:
        return decision
    rows = _all_rows(samples)
    if decision.motion.scenes:
        return _check_scenes(decision, rows)
    motion, why = _checked_motion(decision.motion, rows)
    if not why:
        return replace(decision, motion=motion)
    problem = f"the camera's motion is unknown: {why}; no world is written ({_REMEDY})"
    return replace(decision, motion=motion, path=None, problem=problem)


def _check_scenes(decision: Decision, rows: F64) -> Decision:
    """Check a decision about a clip with cuts, each scene with its own feet, as `check_with_feet` does."""
    scenes, reasons = [], {}
    for scene in decision.motion.scenes:
        if scene.world and scene.motion.moves:
            scene_rows = rows[(rows[:, 0] >= scene.begin) & (rows[:, 0] < scene.end)]
            motion, reason = _checked_motion(scene.motion, scene_rows)
            scene = replace(scene, motion=motion)
            if reason:
                reasons[scene.number] = f"the camera's motion is unknown, since {reason},", _REMEDY
        scenes.append(scene)
    return without_scenes(replace(decision, motion=summarise(scenes)), reasons)


def _checked_motion(motion: CameraMotion, rows: F64) -> tuple[CameraMotion, str]:
    """Return the motion checked with samples (N, 4) of feet, and why it is unknown; else an empty text."""
    footing, excludes_translation = find_rest_densities([rows]), motion.excludes_translation
    at_rest = footing.at_rest
    if not len(at_rest):
        why = (
            "" if excludes_translation else "the background does not tell rotation from translation, and no feet stand"
        )
    else:
        least = FOOTING.min_rest_density_share if excludes_translation else FOOTING.min_rest_density_share_uncertain
        slides = float((at_rest < least).mean()) > FOOTING.max_sliding_share
        compensated = "motion" if motion.translation_known else "rotation"
        why = f"standing feet slide with its {compensated} compensated" if slides else ""
        drift = velocity_peak(rows[:, 1:3], FOOTING.kernel_width_mps)[1]
        far = drift > FOOTING.max_drift_mps and drift * float(np.ptp(rows[:, 0])) > FOOTING.max_drift_m
        if not why and not motion.translation_known and far:
            why = f"standing feet drift at {drift:.2f} m/s with its {compensated} compensated"
        why += ", so it may have moved from its place" if why and not motion.translation_known else ""
    if why:
        return replace(motion, kind=UNKNOWN, distance=float("nan"), distance_sigma=float("nan")), why
    drift = float(footing.peak_speeds.max()) if len(at_rest) and not motion.translation_known else float("nan")
    return replace(motion, drift=drift), ""


def _all_rows(samples: Iterable[F64]) -> F64:
    return np.concatenate([np.zeros((0, 4)), *(rows[:, :4] for rows in samples)])


def velocity_peak(velocities: F64, width: float) -> tuple[float, float]:
    """Return density at zero velocity relative to the highest, and the speed (m/s) of the highest, from (N, 2) m/s."""

    def weights(at: F64) -> F64:
        return np.asarray(np.exp(-0.5 * ((velocities - at[:, None]) ** 2).sum(axis=2) / width**2))

    rest = float(weights(np.zeros((1, 2))).sum())
    starts = np.linspace(0, len(velocities) - 1, min(_STARTS, len(velocities))).astype(int)
    peaks = velocities[starts]
    for _ in range(_ITERATIONS):
        weight = weights(peaks)
        peaks = weight @ velocities / weight.sum(axis=1, keepdims=True)
    densities = weights(peaks).sum(axis=1)
    best = int(densities.argmax())
    if densities[best] <= rest:
        return 1.0, 0.0
    return rest / float(densities[best]), float(np.linalg.norm(peaks[best]))


class LiveFooting:
    """Test of a compensated camera rotation with the velocities of lower feet."""

    def __init__(self) -> None:
        """Start without frames."""
        self._feet: dict[int, deque[tuple[float, F64]]] = {}  # by id: times (s), and ankles (2, 3) m in the world
        # time (s), velocity along x and z (m/s), duration (s)
        self._samples: deque[tuple[float, float, float, float]] = deque()
        self._last = self._due = -np.inf
        self._unsupported_s = self._sliding_s = 0.0
        # Result of the test: 'translating' if feet slide, 'unknown' if neither feet nor background support the
        # rotation, else empty.
        self.result = ""

    def update(self, placed: FrameResult, feet_seen: Flags, watch: CameraWatch) -> str:
        """Add a frame with world positions of P people, and return `result`."""
        time = placed.time
        elapsed = min(max(time - self._last, 0.0), LIVE.speed_window_s) if np.isfinite(self._last) else 0.0
        self._last = time
        self._sample(placed, feet_seen, elapsed)
        while self._samples and self._samples[0][0] < time - FOOTING.window_s:
            self._samples.popleft()
        if time >= self._due:
            self._due = time + LIVE.footing_update_interval_s
            self.result = self._tested(watch.excludes_translation, watch.at_rest)
        return self.result

    def _tested(self, excludes_translation: bool, at_rest: bool) -> str:
        rows = np.array(self._samples).reshape(-1, 4)
        known = float(rows[:, 3].sum())
        unsupported = not (known >= LIVE.min_footing_s / 2 or excludes_translation or at_rest)
        self._unsupported_s = self._unsupported_s + LIVE.footing_update_interval_s if unsupported else 0.0
        if known >= LIVE.min_footing_s:
            least = (
                FOOTING.min_rest_density_share
                if excludes_translation and not self.result
                else FOOTING.min_rest_density_share_uncertain
            )
            slides = velocity_peak(rows[:, 1:3], FOOTING.kernel_width_mps)[0] < least
            self._sliding_s = self._sliding_s + LIVE.footing_update_interval_s if slides else 0.0
            return TRANSLATING if slides and (self.result or self._sliding_s > LIVE.min_sliding_s) else ""
        self._sliding_s = 0.0
        if self.result:
            return "" if at_rest else self.result
        return UNKNOWN if self._unsupported_s > LIVE.max_unsupported_s else ""

    def _sample(self, result: FrameResult, feet_seen: Flags, elapsed: float) -> None:
        """Add the velocity of the lower foot of each person, if it is seen and near the floor."""
        assert result.placed is not None
        time = result.time
        ids = result.people.ids.tolist()
        self._feet = {number: self._feet.get(number, deque()) for number in ids}
        for row, number in enumerate(ids):
            joints = result.placed.joints[row].astype(np.float64)
            seen = self._feet[number]
            if not np.isfinite(joints).all():
                seen.clear()
                continue
            ankles = joints[ANKLES]
            while len(seen) > 1 and time - seen[1][0] >= LIVE.speed_window_s:
                seen.popleft()
            low = int(ankles[:, 1].argmin())
            span = time - seen[0][0] if seen else 0.0
            if 0.5 * LIVE.speed_window_s <= span <= 2 * LIVE.speed_window_s:
                velocity = (ankles[low] - seen[0][1][low]) / span
                near = ankles[low, 1] - ANKLE_HEIGHT < CONTACTS.max_contact_height_m
                if feet_seen[row, low] and near and abs(velocity[1]) < FOOTING.max_vertical_mps:
                    line_of_sight = joints[0, [0, 2]] / max(float(np.linalg.norm(joints[0, [0, 2]])), 1e-9)
                    level = velocity[[0, 2]]
                    level = level - (1 - FOOTING.along_share) * float(level @ line_of_sight) * line_of_sight
                    self._samples.append((time, float(level[0]), float(level[1]), elapsed))
            seen.append((time, ankles))
