"""MOT: joint angles and pelvis position over time, with the coordinate names of OpenSim's models.

Body axes are those of OpenSim (x forward, y up, z right). Rotations are in the order z, x, y. docs/studies/exports.md
lists columns and signs. Left and right have the same sign for the same movement.

In this order `pelvis_tilt` and `pelvis_list` are tilt and list only for a person who faces +x, as OpenSim assumes. The
motion is therefore rotated about the vertical until the person faces +x on average. The pelvis' position is the origin
of the model's pelvis, not the midpoint of the hips. Hip rotation is omitted: joint centres hardly determine it.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.export import opensim_setup as setup
from pose.export.digits import joined, number, row, text
from pose.export.format import Notes, PersonFormat
from pose.export.motions import AnimatedSkeleton
from pose.export.rotations import about, from_matrix, inverse, multiply, rotate, unwrapped_euler
from pose.export.skeleton import NAMES, ORDER, Body, SkeletonMotion, pelvis_frame
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

# From the axes of the rest pose (x left, y up, z forward) to OpenSim's (x forward, y up, z right).
_BODY = from_matrix(np.array([[0.0, 0, -1], [0, 1, 0], [1, 0, 0]]))
# From a hanging arm to the T-pose.
_RAISED = {
    "left": about(np.array([0.0, 0, 1]), np.array(np.pi / 2)),
    "right": about(np.array([0.0, 0, 1]), np.array(-np.pi / 2)),
}
_AT = {name: place for place, name in enumerate(NAMES)}


def write(track: Track, target: Path) -> Notes:
    """Write the track of one person to `target`; see `pose.export.format.PersonFormat`."""
    return write_mot(track, target, facing(track))


def facing(track: Track) -> F64:
    """Return the rotation about y, a quaternion (4,), after which a person faces +x on average.

    Return the identity if the mean direction is undefined.
    """
    total = np.zeros(3)
    for span in track.sample():
        _, _, forward = pelvis_frame(track.space.to_file(span.places)[:, ORDER])
        total += forward.sum(axis=0)
    return about(np.array([0.0, 1, 0]), np.array(np.arctan2(total[2], total[0])))


def write_mot(track: Track, target: Path, turn: F64) -> Notes:
    """Write the motion of one person to a MOT file.

    Args:
        track: The person.
        target: File to write.
        turn: (4,) quaternion, applied to the whole motion.
    """
    assert track.rate is not None, "MOT has one rate"
    bones = AnimatedSkeleton(track)
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
    """Return the vector (3,) m from the midpoint of the hips to the origin of the model's pelvis, in rest-pose axes."""
    scale = abs(body.offsets[_AT["left_hip"], 0]) / setup.HALF_HIPS
    return rotate(_BODY, -scale * np.array(setup.HIPS))


def _turned(motion: SkeletonMotion, turn: F64, origin: F64) -> SkeletonMotion:
    """Rotate a motion by the quaternion `turn`, and move its root to the origin of the model's pelvis.

    Args:
        motion: Motion in file axes.
        turn: (4,) quaternion.
        origin: (3,) m, from the midpoint of the hips to the new root, in axes of the pelvis.
    """
    turns = motion.turns.copy()
    turns[:, 0] = multiply(turn, turns[:, 0])
    return SkeletonMotion(rotate(turn, motion.root) + rotate(turns[:, 0], origin), turns)


def coordinates(motion: SkeletonMotion, previous: dict[str, F64] | None = None) -> F64:
    """Return the columns (T, 23) of `COLUMNS` that follow the time column, in degrees and m.

    Args:
        motion: Motion of T frames.
        previous: Last angles of the previous portion by joint, for continuity; None for the first portion. The
            dictionary is updated with the last angles of this portion.
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
    """Return the angles (T, 1) in degrees of rotations (T, 4): the flexion of a knee or elbow."""
    sine = np.sqrt((turn[..., 1:] ** 2).sum(axis=-1))
    result: F64 = np.degrees(2 * np.arctan2(sine, np.abs(turn[..., 0])))[:, None]
    return result


FORMAT = PersonFormat(".mot", write)
