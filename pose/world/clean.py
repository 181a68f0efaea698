"""The order of the steps from lifted tracks to people who stand in the world. `pose.world.rules` has the thresholds.

1. size       bones keep their length, equal left and right; a given height scales pose and root together
2. depth      the distance from the whole body, held together over time, with its uncertainty
3. gaps       short ones are filled and marked
4. smoothing  without delay, stretch by stretch; then the bones get their length again
5. gravity    given, or from feet and bodies; 6. floor  common to all who are on it
7. contacts   feet that stand, with hysteresis
8. feet       the path goes with standing feet, and the legs hold them

Each step is a function of a sequence in a file of its own, and each can be left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pose.refine import assembled, lengths_of
from pose.world import depth as depths
from pose.world.contacts import find_contacts
from pose.world.feet import hold_feet, path_correction, standing
from pose.world.floor import common_floor, own_floor
from pose.world.frame import World
from pose.world.gaps import fill_gaps, stretches
from pose.world.gravity import ANKLES, Standing, find_gravity, given_gravity
from pose.world.height import scale_to, stature
from pose.world.person import Person
from pose.world.rules import RULES, Rules
from pose.world.smooth import zero_phase

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Which steps are taken, and what is known. camera_known: its intrinsics, not just an assumed field of view. up:
    (3,) against gravity in the camera's axes. heights: m, by the person's id; of everybody where the id is None.
    """

    depth: bool = True
    bones: bool = True
    fill: bool = True
    smooth: bool = True
    feet: bool = True
    camera_known: bool = True
    up: F64 | None = None
    heights: Mapping[int | None, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """One person in the world. T frames, those that were filled included.

    times: (T,) s. joints: (T, 17, 3) m relative to the pelvis and root: (T, 3) m, in the camera's axes. placed: (T, 17,
    3) m in the world, y up, the floor at 0. sigma: (T, 17) mm as lifted. root_sigma: (T,) mm, of the distance; NaN
    without the step that finds it.
    contacts: (T, 2) probability that left and right foot stand. stands: (T, 2), whether it was held. filled: (T,).
    moved: (T,) mm, by how much the joints were moved in the mean, the pelvis with them; NaN in filled frames. height:
    m, and height_sigma: m, 0 where it was given. floor: m, how far the person was raised to the common floor.
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


def clean(
    people: Mapping[int, Person], frames: F64 | None = None, steps: Steps | None = None, rules: Rules = RULES
) -> tuple[World, dict[int, Cleaned]]:
    """The world that people (by id) stand in, and each of them in it.

    frames: (F,) s of the video's frames, for gaps; without them nothing is filled.
    """
    steps = steps or Steps()
    works = {number: _prepared(number, person, frames, steps, rules) for number, person in people.items()}
    seen = list(works.values())
    if steps.up is None:
        world = find_gravity([Standing(w.person.joints, w.person.root, w.person.times) for w in seen], rules.gravity)
    else:
        world = given_gravity(steps.up)
    floors = {n: f for n, w in works.items() if (f := _floor(world, w, rules)) is not None}
    if floors:
        weight = [float(len(works[n].person)) for n in floors]
        world = replace(world, floor=common_floor(list(floors.values()), weight), floor_known=True)
    return world, {n: _placed(w, world, floors.get(n), steps, rules) for n, w in works.items()}


@dataclass(slots=True)
class _Work:
    """A person between the steps. lifted: (T, 17, 3) m, where the joints were, in the camera frame."""

    person: Person
    lifted: F64
    filled: Mask
    root_sigma: F64
    height: float
    height_sigma: float


def _prepared(number: int, person: Person, frames: F64 | None, steps: Steps, rules: Rules) -> _Work:
    """Steps 1 to 4: what needs no world."""
    lengths = lengths_of(person.joints, person.sigma)
    if steps.bones:
        person = replace(person, joints=assembled(person.joints, lengths))
    height, sigma = stature(lengths, rules.size), rules.size.error
    wanted = steps.heights.get(number, steps.heights.get(None))
    if wanted is not None:
        factor = scale_to(wanted, height, rules.size)
        person = replace(person, joints=factor * person.joints, root=factor * person.root)
        lengths, height, sigma = lengths * factor, wanted, 0.0
    lifted = person.joints + person.root[:, None]
    spread = np.full(len(person), np.nan)
    if steps.depth:
        seen = depths.sight(person, rules.depth)
        z, left = depths.smooth_depths(seen.depth, seen.variance, person.times, rules.depth)
        person = replace(person, root=seen.place(z))
        spread = np.hypot(np.sqrt(left), np.hypot(sigma, 0.0 if steps.camera_known else rules.depth.lens) * z)
    filled = np.zeros(len(person), bool)
    if steps.fill and frames is not None:
        before = person.times
        person, filled = fill_gaps(person, frames, rules.gaps)
        spread = np.interp(person.times, before, spread)
        lifted = np.insert(lifted, np.searchsorted(before, person.times[filled]), np.nan, axis=0)
    if steps.smooth:
        joints, root = person.joints.copy(), person.root.copy()
        for part in stretches(person.times, rules.gaps):
            joints[part] = zero_phase(joints[part], person.times[part], rules.smooth.hertz)
            root[part] = zero_phase(root[part], person.times[part], rules.smooth.hertz)
        person = replace(person, joints=assembled(joints, lengths) if steps.bones else joints, root=root)
    return _Work(person, lifted, filled, 1000 * spread, height, height * sigma)


def _floor(world: World, work: _Work, rules: Rules) -> float | None:
    person = work.person
    ankles = (person.joints[:, ANKLES] + person.root[:, None]) @ world.rotation.T
    return own_floor(ankles, person.times, rules.floor)


def _placed(work: _Work, world: World, own: float | None, steps: Steps, rules: Rules) -> Cleaned:
    """Steps 6 to 8: one person on the floor."""
    person = work.person
    placed = world.place(person.joints + person.root[:, None])
    raised = 0.0
    if own is not None and abs(own - world.floor) <= rules.floor.apart:
        raised = world.floor - own
        placed[..., 1] += raised
    stands, contacts = np.zeros((len(person), 2), bool), np.zeros((len(person), 2))
    for part in stretches(person.times, rules.gaps):
        times = person.times[part]
        found, contacts[part] = find_contacts(placed[part][:, ANKLES], times, rules.contacts)
        if steps.feet and len(times) > 1:
            stands[part] = standing(placed[part][:, ANKLES], found, times, rules.feet)
            moved = placed[part] + path_correction(placed[part][:, ANKLES], stands[part], times, rules.feet)[:, None]
            placed[part] = hold_feet(moved, stands[part], times, rules.feet)
    camera = world.to_camera(placed)
    root = camera[:, 0].copy()
    joints = camera - root[:, None]
    moved_by = 1000 * np.linalg.norm(camera - work.lifted, axis=-1).mean(axis=1)
    return Cleaned(
        person.times, joints, root, placed, person.sigma, work.root_sigma, contacts, stands, work.filled, moved_by,
        work.height, work.height_sigma, raised,
    )  # fmt: skip
