"""Ground forces of a walk for OpenSim's Inverse Dynamics tool: the forces, their meaning, and the tool's set-up file.

Sources of the formats: OpenSim 4's user guide (Storage Files, External Loads, Inverse Dynamics Tool).
"""

from pathlib import Path

import numpy as np

from pose.body.digits import joined, merged, number, to_bytes
from pose.body.ground_forces import GRAVITY, INTERVAL, GroundForces, ground_forces
from pose.body.segments import motions
from pose.body.timeline import stretches
from pose.body.tracks import Track
from pose.export import opensim_setup as setup
from pose.export.mot import Placement
from pose.structures.rotations import rotate
from pose.structures.spaces import WORLD
from pose.structures.types import F64
from pose.utils.whole_file import whole_file, write_whole

FILES = ("forces.mot", "loads.xml", "id.xml")
COORDINATE_HZ = 6.0  # cut-off of the angles before their second derivatives
_SIDES = (("r", 1), ("l", 0))  # letter of OpenSim, foot of `GroundForces`
_COLUMNS = [f"ground_{kind}{axis}" for letter, _ in _SIDES for kind in (f"force_{letter}_v", f"force_{letter}_p",
            f"torque_{letter}_") for axis in "xyz"]  # fmt: skip


def write_forces(track: Track, folder: Path, place: Placement, first: int, last: int) -> str:
    """Write the forces of the longest straight walk between two frames; return a note, empty without a walk."""
    if track.space.name != WORLD:
        return ""
    times = track.times[first : last + 1]
    found = _forces(track, first, last)
    if found is None:
        return ""
    begin, end = max(stretches(found.known), key=lambda ends: ends[1] - ends[0])
    weight = setup.MASS * GRAVITY
    parts = []
    for _, foot in _SIDES:
        force, point = rotate(place.quaternion, found.forces[:, foot]), rotate(place.quaternion, found.points[:, foot])
        parts += [weight * force, point + place.offset, np.zeros_like(force)]
    table = np.concatenate(parts, axis=1)
    with whole_file(folder / FILES[0]) as hidden, hidden.open("wb") as file:
        head = ("forces", "version=1", f"nRows={len(times)}", f"nColumns={1 + len(_COLUMNS)}", "inDegrees=no",
                "endheader", "\t".join(["time", *_COLUMNS]), "")  # fmt: skip
        file.write("\n".join(head).encode("ascii"))
        file.write(to_bytes(joined(number(times, 6), merged(number(table, 5, prefix="\t")), "\n")))
    write_whole(folder / FILES[1], setup.loads_setup([letter for letter, _ in _SIDES]))
    write_whole(folder / FILES[2], setup.dynamics_setup((float(times[begin]), float(times[end])), COORDINATE_HZ))
    return (
        f"ground forces of a walk, {times[begin]:.2f} to {times[end]:.2f} s, for a body mass of {setup.MASS:g} kg; the "
        f"vertical force of both feet within {INTERVAL:g} body weights with a probability of 90 %"
    )


def _forces(track: Track, first: int, last: int) -> GroundForces | None:
    at = np.arange(first, last + 1)
    span = track.read(at)
    joints: F64 = track.space.to_file(span.joints)
    for motion in motions(span.times, joints, span.sigma):
        found = ground_forces(motion, span.times)
        if found.known.any():
            return found
    return None
