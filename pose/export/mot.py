"""MOT: the generalised coordinates of a skeleton over time, as OpenSim's models name them.

Body axes as OpenSim has them (x forward, y up, z right), rotations in the order z, x, y. Columns and signs:
docs/studies/exports.md. Left and right have the same sign for the same movement.

In this order `pelvis_tilt` and `pelvis_list` are tilt and list of the body only for a person who faces +x, as OpenSim
assumes. So the motion is turned about the vertical until the person faces +x on average. The pelvis' place is the
origin of the model's pelvis, not the midpoint of the hips. Hip rotation is left out: joint centres hardly show it.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.export import opensim_setup as setup
from pose.export.digits import joined, number, row, text
from pose.export.format import Notes, PersonFormat
from pose.export.motions import Bones
from pose.export.rotations import about, from_matrix, inverse, multiply, rotate, unwrapped_euler
from pose.export.skeleton import NAMES, ORDER, Body, Motion, pelvis_frame
from pose.export.text import list_filled, timing
from pose.export.tracks import Track
from pose.system.whole_file import whole_file

F64 = NDArray[np.float64]

_SIDES = ("right", "left")
COLUMNS = (
    "time", "pelvis_tilt", "pelvis_list", "pelvis_rotation", "pelvis_tx", "pelvis_ty", "pelvis_tz",
    *(f"{name}_{side[0]}" for side in _SIDES
      for name in ("hip_flexion", "hip_adduction", "knee_angle")),
    "lumbar_extension", "lumbar_bending", "lumbar_rotation",
    *(f"{name}_{side[0]}" for side in _SIDES for name in ("arm_flex", "arm_add", "arm_rot", "elbow_flex")),
)  # fmt: skip

# From our rest axes (x left, y up, z forward) to OpenSim's body axes (x forward, y up, z right).
_BODY = from_matrix(np.array([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]]))
# From an arm that hangs to the T-pose.
_RAISED = {
    "left": about(np.array([0.0, 0, 1]), np.array(np.pi / 2)),
    "right": about(np.array([0.0, 0, 1]), np.array(-np.pi / 2)),
}
_AT = {name: place for place, name in enumerate(NAMES)}


def write(track: Track, target: Path) -> Notes:
    return write_mot(track, target, facing(track))


def facing(track: Track) -> F64:
    """(4,) the rotation about y after which a person faces +x on average; none where they face all directions alike."""
    total = np.zeros(3)
    for span in track.sample():
        _, _, forward = pelvis_frame(track.space.to_file(span.places)[:, ORDER])
        total += forward.sum(axis=0)
    return about(np.array([0.0, 1, 0]), np.array(np.arctan2(total[2], total[0])))


def write_mot(track: Track, target: Path, turn: F64) -> Notes:
    """turn: (4,) quaternion, applied to the whole motion."""
    assert track.rate is not None, "MOT has one rate"
    bones = Bones(track)
    origin = pelvis_origin(bones.body)
    with whole_file(target) as hidden, hidden.open("wb") as file:
        name = target.stem.encode("ascii", "replace").decode()
        head = (name, "version=1", f"nRows={len(track)}", f"nColumns={len(COLUMNS)}", "inDegrees=yes", "endheader")
        file.write("\n".join((*head, "\t".join(COLUMNS), "")).encode("ascii"))
        previous: dict[str, F64] = {}
        for span, motion in bones.spans():
            turned = _turned(motion, turn, origin)
            cells = number(coordinates(turned, previous), 5, prefix="\t")
            file.write(text(joined(number(span.times, 6), row(cells), "\n")))
    degrees = 2 * np.degrees(np.arctan2(turn[2], turn[0]))
    faces = f"turned by {degrees:.0f} degrees about y, so that the person faces +x; no hip rotation"
    return [f"{timing(track)}; degrees and metres; {faces}", bones.distance_note(), *list_filled(track, target)]


def pelvis_origin(body: Body) -> F64:
    """(3,) m from the midpoint of the hips to the origin of the model's pelvis, in the axes of the rest pose."""
    scale = abs(body.offsets[_AT["left_hip"], 0]) / setup.HALF_HIPS
    return rotate(_BODY, -scale * np.array(setup.HIPS))


def _turned(motion: Motion, turn: F64, origin: F64) -> Motion:
    """The motion after a rotation (4,), with the root at `origin` (3,) of the pelvis."""
    turns = motion.turns.copy()
    turns[:, 0] = multiply(turn, turns[:, 0])
    return Motion(rotate(turn, motion.root) + rotate(turns[:, 0], origin), turns)


def coordinates(motion: Motion, previous: dict[str, F64] | None = None) -> F64:
    """(T, 27): the columns after the time, degrees and m. previous: the last angles before, and then those of the end:
    with it, angles of motions that follow one another do not jump.
    """
    previous = {} if previous is None else previous
    turns = {name: motion.turns[:, place] for name, place in _AT.items()}

    def angles(joint: str, turn: F64) -> F64:
        triple = unwrapped_euler(turn, "zxy", previous.get(joint))
        previous[joint] = triple[-1]
        return np.degrees(triple)

    def in_body(turn: F64) -> F64:
        return multiply(multiply(inverse(_BODY), turn), _BODY)

    parts = [angles("pelvis", multiply(turns["pelvis"], _BODY)), motion.root]
    for side in _SIDES:
        hip = angles(f"{side}_hip", in_body(turns[f"{side}_hip"])) * _mirrored(side)
        parts += [hip[:, :2], _bend(turns[f"{side}_knee"])]
    parts.append(angles("spine", in_body(multiply(turns["spine"], turns["thorax"]))))
    for side in _SIDES:
        arm = multiply(turns[f"{side}_shoulder"], _RAISED[side])
        parts += [angles(f"{side}_shoulder", in_body(arm)) * _mirrored(side), _bend(turns[f"{side}_elbow"])]
    return np.concatenate(parts, axis=1)


def _mirrored(side: str) -> F64:
    return np.array([1.0, 1, 1]) if side == "right" else np.array([1.0, -1, -1])


def _bend(turn: F64) -> F64:
    """(T, 1) degrees, 0 straight."""
    sine = np.sqrt((turn[..., 1:] ** 2).sum(axis=-1))
    result: F64 = np.degrees(2 * np.arctan2(sine, np.abs(turn[..., 0])))[:, None]
    return result


FORMAT = PersonFormat(".mot", write)
