"""Steps from 3D poses in the camera frame to people in the world, in this order.

1. size       makes bone lengths constant and equal on both sides, scales the person to a given height, and flags limbs
              whose 2D keypoints contradict the bone lengths
2. depth      estimates the distance from the whole body, filters it over time, and gives its uncertainty
3. gaps       fills short gaps and marks the filled frames
4. smoothing  applies a zero-phase filter, whose cut-off follows from residuals, and restores the bone lengths
5. scene      estimates gravity, floor, sizes, and an unknown focal length together (`pose.world.scene`)
6. floor      puts people on the common floor
7. contacts   finds foot contacts with hysteresis thresholds
8. feet       corrects the path and the legs so that standing feet stay in place

`Steps` can turn off constant bone lengths, depth, gaps, smoothing and feet. `pose.world.rules` has the thresholds.

A frame is partial if the lower ankle is below the floor. It is also partial if it is before the first or after the last
fully visible frame of a visit. Fully visible means that at least `min_visible_share` of the joints and one ankle are
detected. A visit without fully visible frames, such as of a person behind a desk, is judged by the floor only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from pose.structures.refine import assembled, lengths_of
from pose.structures.types import F64, SENSORS, U8, Flags
from pose.world import depth as depths
from pose.world.camera_motion.decision import Spans
from pose.world.camera_motion.path import CameraPath, static_path
from pose.world.consistency import check_limbs
from pose.world.contacts import ANKLE_HEIGHT, find_contacts, ground_below
from pose.world.feet import exclude_sliding, hold_feet, path_correction, view_axes
from pose.world.footing import lower_foot_velocities
from pose.world.frame import World
from pose.world.given import Corrections
from pose.world.gravity import ANKLES
from pose.world.ground import Ground, find_at_focal, find_world
from pose.world.height import scale_to, scaled_stature, stature
from pose.world.measured import MeasuredPerson, WornOnBody
from pose.world.moving import to_cameras, to_static, unzoomed
from pose.world.rules import DEPTH, FLOOR, GAPS, TRIM
from pose.world.scene.lines import FrameLines, evidence_from
from pose.world.work import Cutoffs, Person, Work, all_at, distance_scale, find_cutoffs, resized, smooth_person

_UP = np.array([0.0, 1.0, 0.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Selection of the steps to run, and known properties of camera and people."""

    depth: bool = True  # whether to estimate the distance from the whole body; otherwise the lifter's distance is kept
    bones: bool = True  # whether to make bone lengths constant
    fill: bool = True  # whether to fill short gaps
    smooth: bool = True  # whether to smooth the motion
    cutoff_hz: float | None = None  # cut-off frequency of the smoothing for all joints, Hz; None estimates it
    feet: bool = True  # whether to keep standing feet in place
    # Whether the intrinsics are known. Otherwise the field of view is assumed, which adds to the uncertainty of the
    # distance.
    camera_known: bool = True
    up: F64 | None = None  # (3,) unit vector opposite to gravity, in camera axes; None if it is to be estimated
    # Known body heights in m by track id. The key None gives the height of all people whose id is missing.
    heights: Mapping[int | None, float] = field(default_factory=dict)
    # Sizes and distances from depth images, by track id. A height in `heights` has precedence.
    measured: Mapping[int, MeasuredPerson] = field(default_factory=dict)
    worn: Mapping[int, WornOnBody] = field(default_factory=dict)  # inertial sensors, by track id
    lines: tuple[FrameLines, ...] = ()  # line segments of the background in some frames
    path: CameraPath | None = None  # path of a moving camera; None if it is static, or the images give it
    refocused: bool = False  # whether the zoom of `path` is a focal length that people gave after the lifting
    # Start (inclusive) and end (exclusive), in s, of each scene whose camera motion is unknown. People in these scenes
    # get no world coordinates.
    without_world: Spans = ()
    corrections: Corrections = field(default_factory=Corrections)  # what a user says about people and floor

    @property
    def focal_known(self) -> bool:
        """Whether people have no say in the focal length: it is given, or a moving camera's path contains it."""
        return self.camera_known or self.path is not None

    def has_world(self, time: float) -> bool:
        """Return whether people in the scene at `time` (s) get world coordinates."""
        return not any(begin <= time < end for begin, end in self.without_world)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """One person after all steps, in T frames, including frames that fill gaps."""

    times: F64  # (T,) s
    joints: F64  # (T, 17, 3) m relative to the pelvis, in the camera axes of each frame
    root: F64  # (T, 3) m, pelvis, in the camera axes of each frame
    placed: F64  # (T, 17, 3) m in the world, y up, floor at 0
    sigma: F64  # (T, 17) mm, uncertainty of the joints from the lifter, enlarged for inconsistent limbs
    root_sigma: F64  # (T,) mm, uncertainty of the distance; NaN if the step that estimates it is off
    contacts: F64  # (T, 2) probability of contact of the left and the right foot
    feet_held: Flags  # (T, 2) whether the left and the right foot were held in place
    filled: Flags  # (T,) whether the frame fills a gap
    # (T,) mm, mean displacement of the joints, pelvis included, by the steps after the size step; NaN in filled frames
    moved: F64
    height: float  # body height, m
    height_sigma: float  # standard deviation of the height, m; 0 if the height was given
    height_interval: tuple[float, float]  # shortest interval that contains the height with a probability of 68 %, m
    # upward shift that puts the person on the common floor, m; 0 if the person's own floor is unknown or too far from
    # it
    raised: float
    partial: Flags  # (T,) whether the person enters or leaves the view, or is below the floor (`partial_frames`)
    # (T, 4) whether the 2D of each limb contradicts the person's bone lengths. The order is left leg, right leg, left
    # arm, right arm.
    inconsistent: Flags
    # (N, 6) samples of the lower foot from `lower_foot_velocities`. Empty for a static camera.
    foot_velocities: F64
    raw: F64  # (T, 17, 3) m, joints in the camera axes of each frame before steps 2 to 8; NaN in filled frames
    cutoffs: Cutoffs | None  # cut-off frequencies of the smoothing; None without smoothing
    measured_by: U8  # (T, 17) bits of `SENSORS`; 0 with a camera alone


def clean(
    people: Mapping[int, Person], frames: F64 | None = None, steps: Steps | None = None
) -> tuple[World, dict[int, Cleaned]]:
    """Estimate the world of people by track id, and transform each person to it; without frames no gaps are filled."""
    steps = steps or Steps()
    assumed = steps

    def prepared(steps: Steps) -> tuple[dict[int, Work], Steps]:
        return {number: prepare(number, person, frames, steps) for number, person in people.items()}, steps

    def find(run: tuple[dict[int, Work], Steps]) -> Ground:
        works, steps = run
        lines = evidence_from(steps.lines, [0.0], 0, steps.path)
        return find_world(works, steps.up, camera_known=steps.focal_known, lines=lines)

    def turned(focal: float) -> tuple[dict[int, Work], Steps]:
        every = np.unique(np.concatenate([person.times for person in people.values()]))
        return prepared(at_focal(assumed, every if frames is None else frames, focal))

    (works, steps), found = find_at_focal(prepared(steps), find, turned)
    return found.world, {number: put_on_floor(number, work, found, steps) for number, work in works.items()}


def at_focal(steps: Steps, frames: F64, focal: float) -> Steps:
    """Return the steps for a static camera whose focal length is `focal` times the assumed one."""
    path = static_path(frames, np.zeros(1))
    return replace(steps, path=replace(path, zooms=np.full(len(frames), focal)), refocused=True)


def prepare(number: int, person: Person, frames: F64 | None, steps: Steps) -> Work:
    """Run steps 1 to 4 (size, depth, gaps, smoothing) for one person; they do not depend on the world."""
    if steps.path is not None:
        person = unzoomed(person, steps.path, steps.refocused)
    measured = steps.measured.get(number)
    if measured is not None:
        person = replace(person, joints=measured.tilted(person.joints, person.root))
    lengths = lengths_of(person.joints, person.sigma)
    if steps.bones:
        person = replace(person, joints=assembled(person.joints, lengths))
    height = stature(lengths)
    wanted = steps.heights.get(number, steps.heights.get(None))
    if wanted is None and measured is not None:
        whole = depths.estimate_pelvis(person).depth
        wanted = scaled_stature(height, measured.scale_of(person.times, whole))
    if wanted is not None:
        factor = scale_to(wanted, height)
        person = replace(person, joints=factor * person.joints, root=factor * person.root)
        lengths, height = lengths * factor, wanted
    inconsistent, added = check_limbs(person)
    person = replace(person, sigma=np.hypot(person.sigma, added))
    lifted = person.joints + person.root[:, None]
    sources = _measured_by(number, person, steps)
    spread = np.full(len(person), np.nan)
    if steps.depth:
        estimate = depths.estimate_pelvis(person)
        pelvis, variance = estimate.depth, estimate.variance
        if measured is not None:
            pelvis, variance = measured.fused(person.times, pelvis, variance)
        slope, intercept = np.ones(1), np.zeros(1)
        if steps.path is not None:  # a rotation of the camera changes the depth of a person at rest
            rows = steps.path.rows(person.times)
            camera = None if steps.path.positions is None else steps.path.positions[rows]
            slope, intercept = estimate.distance_map(steps.path.rotations[rows], camera)
        distance, variance = slope * pelvis + intercept, slope**2 * variance
        carried = steps.path is not None and steps.path.positions is not None
        reach = float(np.median(estimate.depth)) if carried else None
        distance, left = depths.smooth_depths(distance, variance, person.times, reach)
        z, left = (distance - intercept) / slope, left / slope**2
        person = replace(person, root=estimate.positions(z))
        spread = np.hypot(np.sqrt(left), (0.0 if steps.camera_known else DEPTH.assumed_focal_sigma_share) * z)
    if steps.path is not None:
        person = to_static(person, steps.path)
    filled = np.zeros(len(person), bool)
    if steps.fill and frames is not None:
        before = person.times
        person, filled = fill_gaps(person, frames)
        spread = np.interp(person.times, before, spread)
        places = np.searchsorted(before, person.times[filled])
        lifted = np.insert(lifted, places, np.nan, axis=0)
        inconsistent = np.insert(inconsistent, places, False, axis=0)
        sources = np.insert(sources, places, 0, axis=0)
    cutoffs = None
    if steps.smooth:
        joints, root, parts = person.joints.copy(), person.root.copy(), stretches(person.times)
        cutoffs = find_cutoffs(person, parts) if steps.cutoff_hz is None else all_at(steps.cutoff_hz)
        for part in parts:
            joints[part], root[part] = smooth_person(joints[part], root[part], person.times[part], cutoffs)
        person = replace(person, joints=assembled(joints, lengths) if steps.bones else joints, root=root)
    return Work(
        lengths.astype(np.float64), height, person.times, person.joints, person.root, person.sigma, lifted,
        person.scores[:, ANKLES] > FLOOR.min_score, fully_visible(person.scores), filled,
        inconsistent, 1000 * spread, sources, height_given=wanted is not None,
        size_sigma=0.0 if measured is None else measured.scale_sigma, cutoffs=cutoffs,
    )  # fmt: skip


def _measured_by(number: int, person: Person, steps: Steps) -> U8:
    """Return which sensors measured each joint, (T, 17) bits of `SENSORS`; 0 with a camera alone."""
    measured, worn = steps.measured.get(number), steps.worn.get(number)
    if not steps.measured and not steps.worn:
        return np.zeros(person.scores.shape, np.uint8)
    seen = {"camera": person.scores > 0}
    if measured is not None:
        seen["depth"] = measured.joints_at(person.times)
    if worn is not None:
        seen["imu"] = worn.joints_at(person.times)
    bits = [flags.astype(np.uint8) << SENSORS.index(name) for name, flags in seen.items()]
    result: U8 = np.sum(bits, axis=0, dtype=np.uint8)
    return result


def put_on_floor(number: int, work: Work, ground: Ground, steps: Steps) -> Cleaned:
    """Run steps 6 to 8 (floor, contacts, feet) for one person, after scaling to the final size."""
    work, world, own_floor = resized(work, ground.sizes[number]), ground.world, ground.floors.get(number)
    if steps.path is not None and steps.path.positions is not None:  # the path has one scale for all people
        own_scale = distance_scale(work, ground.sizes[number])
        places = steps.path.positions[steps.path.rows(work.times)]
        common = 1.0 if steps.path.metric else ground.path_scale
        work = replace(work, root=work.root + (1 - own_scale / common) * places)
    placed = world.place(work.joints + work.root[:, None])
    raised = 0.0
    on_floor = ground.sizes[number].on_floor > 0.5
    given = number in steps.corrections.floors
    if own_floor is None and world.floor_known:  # too few frames to see which foot stands
        own_floor = world.floor + float(placed[:, ANKLES, 1].min()) - ANKLE_HEIGHT
    if own_floor is not None and (given or on_floor or abs(own_floor - world.floor) <= FLOOR.max_step_m):
        raised = world.floor - own_floor
        placed[..., 1] += raised
    cameras = np.zeros((len(placed), 3))
    if steps.path is not None and steps.path.positions is not None:
        cameras = steps.path.positions[steps.path.rows(work.times)]
    cameras = world.place(cameras) + raised * _UP
    feet_held, contacts = np.zeros((len(placed), 2), bool), np.zeros((len(placed), 2))
    footing = np.zeros((0, 6)) if steps.path is None else lower_foot_velocities(placed, work.times, work.feet_seen)
    for span in stretches(work.times):
        times = work.times[span]
        ankles = placed[span][:, ANKLES] - ground_below(placed[span], times)[:, None, None] * _UP
        in_contact, contacts[span] = find_contacts(ankles, times)
        by_user = steps.corrections.with_contacts(number, times, in_contact, contacts[span])
        if steps.feet and len(times) > 1:
            held = exclude_sliding(placed[span][:, ANKLES], in_contact, times)
            feet_held[span] = held | (by_user & in_contact)
            axes = view_axes(placed[span][:, 0], cameras[span])
            placed[span] += path_correction(placed[span][:, ANKLES], feet_held[span], times, axes)[:, None]
            placed[span] = hold_feet(placed[span], feet_held[span], times)
    joints = world.to_camera(placed)
    if steps.path is not None:
        joints = to_cameras(joints, work.times, steps.path)
    off = joints - work.lifted
    moved_by = 1000 * np.sqrt(np.einsum("tjc,tjc->tj", off, off)).mean(axis=1)
    root = joints[:, 0].copy()
    joints -= root[:, None]
    return Cleaned(
        work.times, joints, root, placed, work.sigma, work.root_sigma, contacts, feet_held, work.filled, moved_by,
        work.height, work.height_sigma, work.height_interval, raised,
        partial_frames(placed, work.visible, stretches(work.times)), work.inconsistent, footing,
        work.lifted, work.cutoffs, work.measured_by,
    )  # fmt: skip


def fill_gaps(person: Person, frames: F64) -> tuple[Person, Flags]:
    """Fill the short gaps of a person at the times (F,) s of the video's frames.

    Joints and root are interpolated linearly; sigma is the larger of the two at the ends of the gap. Filled joints have
    score 0. Longer gaps, and the time before the first and after the last frame of the person, are not filled. Returns
    the person in T' frames, and (T',) whether each was filled.
    """
    times = person.times
    after = np.searchsorted(times, frames)
    inside = (after > 0) & (after < len(times))
    missing = frames[inside & (times[np.minimum(after, len(times) - 1)] != frames)]
    after = np.searchsorted(times, missing)
    missing, after = (part[times[after] - times[after - 1] <= GAPS.max_gap_s] for part in (missing, after))
    if not len(missing):
        return person, np.zeros(len(times), bool)
    share = (missing - times[after - 1]) / (times[after] - times[after - 1])

    def between(values: F64) -> F64:
        part = share.reshape(-1, *[1] * (values.ndim - 1))
        return np.asarray(values[after - 1] * (1 - part) + values[after] * part)

    places = after  # indices at which the filled frames are inserted
    nothing = np.zeros((len(missing), *person.scores.shape[1:]))
    new = {
        "joints": between(person.joints),
        "root": between(person.root),
        "sigma": np.maximum(person.sigma[after - 1], person.sigma[after]),
        "times": missing,
        "rays": np.zeros((len(missing), *person.rays.shape[1:])),
        "scores": nothing,
    }
    filled = Person(**{name: np.insert(getattr(person, name), places, rows, axis=0) for name, rows in new.items()})
    return filled, np.insert(np.zeros(len(times), bool), places, True)


def stretches(times: F64) -> list[slice]:
    """Return the slices of frames between gaps that are too long to fill, for frames at `times` (T,) s."""
    cuts = (np.flatnonzero(np.diff(times) > GAPS.max_gap_s) + 1).tolist()
    return [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(times)], strict=True)]


def fully_visible(scores: F64) -> Flags:
    """Return (T,) whether frames show a person fully: enough of the joints and an ankle have scores (T, 17)."""
    seen = scores >= TRIM.min_score
    return np.asarray((seen.mean(axis=1) >= TRIM.min_visible_share) & seen[:, ANKLES].any(axis=1))


def partial_frames(placed: F64, visible: Flags, visits: list[slice]) -> Flags:
    """Return (T,) frames before the first and after the last fully visible one of a visit, or with an ankle too low."""
    # Motion is unreliable there, because a part of the person is not visible. Too low is below the floor.
    partial = np.asarray(placed[:, ANKLES, 1].min(axis=1) < 0)
    for span in visits:
        full_frames = np.flatnonzero(visible[span] & ~partial[span])
        if len(full_frames):
            visit = partial[span]
            visit[: full_frames[0]] = True
            visit[full_frames[-1] + 1 :] = True
    return partial
