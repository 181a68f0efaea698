"""The steps from lifted tracks to people in the world, in order. `pose.world.rules` has the thresholds.

1. size       bone lengths are constant, equal left and right; a given height scales pose and root together; limbs whose
              2D contradicts them are flagged
2. depth      the distance from the whole body, filtered over time, with its uncertainty
3. gaps       short ones are filled and marked
4. smoothing  zero-phase, per segment; then bone lengths are restored
5. gravity    given, or from feet and bodies
6. floor      common to all people on it, estimated together with all scales (`pose.world.ground`)
7. contacts   foot contacts, with hysteresis
8. feet       the path follows standing feet, and the legs keep them in place

Each step is a function of a sequence in its own file, and each is optional.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pose.camera_motion.decision import Spans
from pose.camera_motion.path import CameraPath
from pose.refine import assembled, lengths_of
from pose.world import depth as depths
from pose.world.consistency import check_limbs
from pose.world.contacts import find_contacts, ground_below
from pose.world.feet import hold_feet, path_correction, standing
from pose.world.footing import lower_feet
from pose.world.frame import World
from pose.world.gaps import fill_gaps, stretches
from pose.world.gravity import ANKLES
from pose.world.ground import Ground, find_world
from pose.world.height import scale_to, stature
from pose.world.moving import to_cameras, to_static, unzoomed
from pose.world.person import Person
from pose.world.rules import RULES, Rules
from pose.world.smooth import zero_phase
from pose.world.trim import fully_visible, partial_frames
from pose.world.work import Work, resized

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

_UP = np.array([0.0, 1.0, 0.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Selection of the steps to run, and known properties of camera and people.

    Attributes:
        camera_known: Whether the intrinsics are known; otherwise the field of view is assumed.
        up: (3,) unit vector opposite to gravity, in camera axes.
        heights: Body heights in m by person id; the id None stands for all people.
        path: Path of a moving camera; None if it is static.
        without_world: Begin and end (s, exclusive) of scenes whose camera motion is unknown.
    """

    depth: bool = True
    bones: bool = True
    fill: bool = True
    smooth: bool = True
    feet: bool = True
    camera_known: bool = True
    up: F64 | None = None
    heights: Mapping[int | None, float] = field(default_factory=dict)
    path: CameraPath | None = None
    without_world: Spans = ()

    def has_world(self, time: float) -> bool:
        """Return whether the scene at `time` (s) has a world."""
        return not any(begin <= time < end for begin, end in self.without_world)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """One person in the world, in T frames, including filled ones.

    Attributes:
        times: (T,) s.
        joints: (T, 17, 3) m relative to the pelvis, in camera axes.
        root: (T, 3) m, pelvis, in camera axes.
        placed: (T, 17, 3) m in the world, y up, floor at 0.
        sigma: (T, 17) mm, from the lifter.
        root_sigma: (T,) mm, uncertainty of the distance; NaN if the step that estimates it is off.
        contacts: (T, 2) probability of contact of the left and the right foot.
        stands: (T, 2) whether the foot was held in place.
        filled: (T,) whether the frame was filled.
        moved: (T,) mm, mean displacement of the joints by all steps, pelvis included; NaN in filled frames.
        height: Body height, m.
        height_sigma: Standard deviation of the height, m; 0 if it was given.
        height_interval: Shortest interval that contains the height with a probability of 68 %, m.
        raised: Distance by which the person was raised to the common floor, m.
        partial: (T,) whether the person is not fully visible, or below the floor (`pose.world.trim`).
        inconsistent: (T, 4) limbs whose 2D contradicts the person's bone lengths (`pose.world.consistency`).
        footing: (N, 4) samples of lower-foot velocities with a compensated camera (`pose.world.footing`), else (0, 4).
    """

    times: F64
    joints: F64
    root: F64
    placed: F64
    sigma: F64
    root_sigma: F64
    contacts: F64
    stands: Mask
    filled: Mask
    moved: F64
    height: float
    height_sigma: float
    height_interval: tuple[float, float]
    raised: float
    partial: Mask
    inconsistent: Mask
    footing: F64


def clean(
    people: Mapping[int, Person], frames: F64 | None = None, steps: Steps | None = None, rules: Rules = RULES
) -> tuple[World, dict[int, Cleaned]]:
    """Estimate the world of people, and transform each person to it.

    Args:
        people: People by track id.
        frames: (F,) s, times of the video's frames; without them no gaps are filled.
        steps: Steps to run, and what is known about camera and people.
        rules: Thresholds.

    Returns:
        The world, and the people in it by track id.
    """
    steps = steps or Steps()
    works = {number: prepare(number, person, frames, steps, rules) for number, person in people.items()}
    found = find_world(works, steps.up, rules)
    return found.world, {number: put_on_floor(number, work, found, steps, rules) for number, work in works.items()}


def prepare(number: int, person: Person, frames: F64 | None, steps: Steps, rules: Rules = RULES) -> Work:
    """Run steps 1 to 4 for one person; they need no world."""
    if steps.path is not None:
        person = unzoomed(person, steps.path)
    lengths = lengths_of(person.joints, person.sigma)
    if steps.bones:
        person = replace(person, joints=assembled(person.joints, lengths))
    height = stature(lengths, rules.size)
    wanted = steps.heights.get(number, steps.heights.get(None))
    if wanted is not None:
        factor = scale_to(wanted, height, rules.size)
        person = replace(person, joints=factor * person.joints, root=factor * person.root)
        lengths, height = lengths * factor, wanted
    inconsistent, added = check_limbs(person, rules.consistency)
    person = replace(person, sigma=np.hypot(person.sigma, added))
    lifted = person.joints + person.root[:, None]
    spread = np.full(len(person), np.nan)
    if steps.depth:
        seen = depths.sight(person, rules.depth)
        slope, intercept = np.ones(1), np.zeros(1)
        if steps.path is not None:  # the depth of a static person changes while the camera rotates
            rows = steps.path.rows(person.times)
            camera = None if steps.path.places is None else steps.path.places[rows]
            slope, intercept = seen.distances(steps.path.turns[rows], camera)
        distance, variance = slope * seen.depth + intercept, slope**2 * seen.variance
        carried = steps.path is not None and steps.path.places is not None
        reach = float(np.median(seen.depth)) if carried else None
        distance, left = depths.smooth_depths(distance, variance, person.times, rules.depth, reach)
        z, left = (distance - intercept) / slope, left / slope**2
        person = replace(person, root=seen.place(z))
        spread = np.hypot(np.sqrt(left), (0.0 if steps.camera_known else rules.depth.unknown_lens_share) * z)
    if steps.path is not None:
        person = to_static(person, steps.path)
    filled = np.zeros(len(person), bool)
    if steps.fill and frames is not None:
        before = person.times
        person, filled = fill_gaps(person, frames, rules.gaps)
        spread = np.interp(person.times, before, spread)
        places = np.searchsorted(before, person.times[filled])
        lifted = np.insert(lifted, places, np.nan, axis=0)
        inconsistent = np.insert(inconsistent, places, False, axis=0)
    if steps.smooth:
        joints, root = person.joints.copy(), person.root.copy()
        for part in stretches(person.times, rules.gaps):
            joints[part] = zero_phase(joints[part], person.times[part], rules.smooth.cutoff_hz)
            root[part] = zero_phase(root[part], person.times[part], rules.smooth.cutoff_hz)
        person = replace(person, joints=assembled(joints, lengths) if steps.bones else joints, root=root)
    return Work(
        person.times, person.joints, person.root, person.sigma, lifted,
        person.scores[:, ANKLES] > rules.floor.seen_score, fully_visible(person.scores, rules.trim), filled,
        inconsistent, 1000 * spread, lengths.astype(np.float64), height, given=wanted is not None,
    )  # fmt: skip


def put_on_floor(number: int, work: Work, ground: Ground, steps: Steps, rules: Rules = RULES) -> Cleaned:
    """Run steps 6 to 8 for one person: final scale, common floor, and foot contacts."""
    work, world, own = resized(work, ground.sizes[number], rules.size), ground.world, ground.floors.get(number)
    if steps.path is not None and steps.path.places is not None:  # the camera's path has its own scale
        own_scale = 1.0 if work.given else ground.sizes[number].scale
        places = steps.path.places[steps.path.rows(work.times)]
        work = replace(work, root=work.root + (1 - own_scale / ground.travel) * places)
    placed = world.place(work.joints + work.root[:, None])
    raised = 0.0
    if own is not None and abs(own - world.floor) <= rules.floor.max_step_m:
        raised = world.floor - own
        placed[..., 1] += raised
    stands, contacts = np.zeros((len(placed), 2), bool), np.zeros((len(placed), 2))
    footing = np.zeros((0, 4)) if steps.path is None else lower_feet(placed, work.times, work.feet_seen, rules.footing)
    for part in stretches(work.times, rules.gaps):
        times = work.times[part]
        ankles = placed[part][:, ANKLES] - ground_below(placed[part], times, rules.contacts)[:, None, None] * _UP
        found, contacts[part] = find_contacts(ankles, times, rules.contacts)
        if steps.feet and len(times) > 1:
            stands[part] = standing(placed[part][:, ANKLES], found, times, rules.feet)
            placed[part] += path_correction(placed[part][:, ANKLES], stands[part], times, rules.feet)[:, None]
            placed[part] = hold_feet(placed[part], stands[part], times, rules.feet)
    joints = world.to_camera(placed)
    if steps.path is not None:
        joints = to_cameras(joints, work.times, steps.path)
    off = joints - work.lifted
    moved_by = 1000 * np.sqrt(np.einsum("tjc,tjc->tj", off, off)).mean(axis=1)
    root = joints[:, 0].copy()
    joints -= root[:, None]
    return Cleaned(
        work.times, joints, root, placed, work.sigma, work.root_sigma, contacts, stands, work.filled, moved_by,
        work.height, work.height_sigma, work.height_interval, raised,
        partial_frames(placed, work.visible, stretches(work.times, rules.gaps)), work.inconsistent, footing,
    )  # fmt: skip
