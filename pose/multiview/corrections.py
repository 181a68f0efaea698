"""What a user says about the people and the world of several cameras, from the edits of each camera."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pose.multiview.motions import FusedTimes
from pose.multiview.rig import Rig
from pose.multiview.stored import FusedMotion
from pose.multiview.types import ViewCamera
from pose.results.edits.plan import EditPlan
from pose.structures.types import F64
from pose.utils.json_values import Json
from pose.world.corrections import Corrections, plane_of, up_from_planes
from pose.world.floor import ANKLE_HEIGHT
from pose.world.frame import World
from pose.world.gravity import ANKLES

_WITHIN_S = 0.1  # s around the time of a given floor in which the lower foot stands on it
Plans = Mapping[int, EditPlan]  # by index of the camera in the rig


def without_deleted(rig: Rig, plans: Plans) -> Rig:
    """Return the rig without people that a user deleted in any camera."""
    gone = {(camera, number) for camera, plan in plans.items() for number in plan.deleted}
    kept = [row for row, tracks in enumerate(rig.tracks) if not gone & set(tracks)]
    people, tracks = [rig.people[row] for row in kept], [rig.tracks[row] for row in kept]
    return replace(rig, people=people, tracks=tracks, bones=[rig.bones[row] for row in kept])


def corrections_of(rig: Rig, plans: Plans) -> Corrections:
    """Return what the user says by id 1, 2, ... of the people of a rig, on the time line."""
    given = Corrections()
    for row, plan in plans.items():
        known, camera = plan.corrections.of_tracks(_ids(rig, row)), rig.cameras[row]

        def common(own: float, camera: ViewCamera = camera) -> float:
            return float(camera.common_time(np.array([own]))[0])

        floors = {person: (common(time), height) for person, (time, height) in known.floors.items()}
        contacts = [replace(one, begin=common(one.begin), end=common(one.end)) for one in known.contacts]
        given = Corrections(
            {**given.heights, **known.heights}, {**given.floors, **floors}, (*given.contacts, *contacts),
            kept=given.kept | known.kept,
        )  # fmt: skip
    return given


def settings_of(rig: Rig, plans: Plans) -> dict[str, Json]:
    """Return the edits and the names of people, for the metadata of a result."""
    names: dict[str, Json] = {}
    for row, plan in plans.items():
        ids = _ids(rig, row)
        names |= {str(ids[number]): name for number, name in plan.names.items() if number in ids}
    return {**next(iter(plans.values())).settings({}), "names": names}


def vertical_of(rig: Rig, plans: Plans, world: World) -> F64 | None:
    """Return the vertical (3,) from lines that a user drew and the estimated world; None without lines."""
    planes = []
    for row, plan in plans.items():
        camera = rig.cameras[row]
        planes += [plane_of(camera.unproject(ends)) @ camera.rotation for ends in plan.drawn]
    return up_from_planes(planes, world) if planes else None


def on_given_floor(world: World, motions: Sequence[FusedMotion], line: FusedTimes, given: Corrections) -> World:
    """Return the world with the floor on which people stand at given times; unchanged if none is given."""
    levels = []
    for person, (time, height) in given.floors.items():
        motion = motions[person - 1]
        away = np.abs(line.times[motion.frames] - time)
        rows = away <= max(_WITHIN_S, float(away.min()))
        ankles = world.place(motion.joints[rows][:, ANKLES].astype(np.float64))
        levels.append(float(np.median(ankles[..., 1].min(axis=1))) - ANKLE_HEIGHT - height)
    return replace(world, floor=world.floor + float(np.median(levels)), floor_known=True) if levels else world


def _ids(rig: Rig, camera: int) -> dict[int, int]:
    """Return the ids of people by the number of their track in a camera."""
    return {
        number: person for person, tracks in enumerate(rig.tracks, 1) for index, number in tracks if index == camera
    }
