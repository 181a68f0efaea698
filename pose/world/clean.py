"""The order of the steps from lifted tracks to people who stand in the world. `pose.world.rules` has the thresholds.

1. size       bone lengths are constant, equal left and right; a given height scales pose and root together; limbs whose
              2D contradicts them are flagged
2. depth      the distance from the whole body, held together over time, with its uncertainty
3. gaps       short ones are filled and marked
4. smoothing  without delay, stretch by stretch; then the bones get their length again
5. gravity    given, or from feet and bodies
6. floor      common to all who are on it, found together with everybody's scale (`pose.world.ground`)
7. contacts   feet that stand, with hysteresis
8. feet       the path goes with standing feet, and the legs hold them

Each step is a function of a sequence in a file of its own, and each can be left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

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
    """Which steps are taken, and what is known. camera_known: its intrinsics, not just an assumed field of view. up:
    (3,) against gravity in the camera's axes. heights: m, by the person's id; of everybody where the id is None. path:
    of a camera that turns or zooms; None where it stands still.
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


@dataclass(frozen=True, slots=True)
class Cleaned:
    """One person in the world. T frames, those that were filled included.

    times: (T,) s. joints: (T, 17, 3) m relative to the pelvis and root: (T, 3) m, in the camera's axes. placed: (T, 17,
    3) m in the world, y up, the floor at 0. sigma: (T, 17) mm as lifted. root_sigma: (T,) mm, of the distance; NaN
    without the step that finds it.
    contacts: (T, 2) probability that left and right foot stand. stands: (T, 2), whether it was held. filled: (T,).
    moved: (T,) mm, by how much the joints were moved in the mean, the pelvis with them; NaN in filled frames. height:
    m, and height_sigma: m, 0 where it was given. floor: m, how far the person was raised to the common floor.
    partial: (T,), not fully visible or below the floor (`pose.world.trim`). inconsistent: (T, 4), limbs whose 2D
    contradicts the person's bones (`pose.world.consistency`). footing: (N, 4), how feet move before a compensated
    camera (`pose.world.footing`); else (0, 4).
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
    raised: float
    partial: Mask
    inconsistent: Mask
    footing: F64


def clean(
    people: Mapping[int, Person], frames: F64 | None = None, steps: Steps | None = None, rules: Rules = RULES
) -> tuple[World, dict[int, Cleaned]]:
    """The world that people (by id) stand in, and each of them in it.

    frames: (F,) s of the video's frames, for gaps; without them nothing is filled.
    """
    steps = steps or Steps()
    works = {number: prepare(number, person, frames, steps, rules) for number, person in people.items()}
    found = find_world(works, steps.up, rules)
    return found.world, {number: put_on_floor(number, work, found, steps, rules) for number, work in works.items()}


def prepare(number: int, person: Person, frames: F64 | None, steps: Steps, rules: Rules = RULES) -> Work:
    """Steps 1 to 4: what needs no world."""
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
        if steps.path is not None:  # the depth of somebody who stands still changes while the camera turns
            slope, intercept = seen.distances(steps.path.turns[steps.path.rows(person.times)])
        distance, variance = slope * seen.depth + intercept, slope**2 * seen.variance
        distance, left = depths.smooth_depths(distance, variance, person.times, rules.depth)
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
    """Steps 6 to 8: one person at their scale on the common floor, with their feet."""
    work, world, own = resized(work, ground.sizes[number], rules.size), ground.world, ground.floors.get(number)
    placed = world.place(work.joints + work.root[:, None])
    raised = 0.0
    if own is not None and abs(own - world.floor) <= rules.floor.max_step_m:
        raised = world.floor - own
        placed[..., 1] += raised
    stands, contacts = np.zeros((len(placed), 2), bool), np.zeros((len(placed), 2))
    footing = np.zeros((0, 4)) if steps.path is None else lower_feet(placed, work.times, rules.footing)
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
        work.height, work.height_sigma, raised,
        partial_frames(placed, work.visible, stretches(work.times, rules.gaps)), work.inconsistent, footing,
    )  # fmt: skip
