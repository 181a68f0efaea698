"""MOT: joint angles and pelvis position over time, with the coordinate names of OpenSim's models.

Body axes are those of OpenSim (x forward, y up, z right). Rotations are in the order z, x, y. docs/studies/exports.md
lists columns and signs. Left and right have the same sign for the same movement.

In this order `pelvis_tilt` and `pelvis_list` are tilt and list only for a person who faces +x, as OpenSim assumes. The
motion is therefore rotated about the vertical until the person faces +x on average. The pelvis' position is the origin
of the model's pelvis, not the midpoint of the hips. Hip rotation is omitted: joint centres hardly determine it.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pose.body.digits import joined, merged, number, to_bytes
from pose.body.motions import AnimatedSkeleton
from pose.body.skeleton import NAMES, ORDER, Body, SkeletonMotion, pelvis_frame
from pose.body.tracks import Track
from pose.export import opensim_setup as setup
from pose.export.format import Notes, PersonFormat, list_filled, timing
from pose.structures.rotations import about, from_matrix, inverse, multiply, rotate, unwrapped_euler
from pose.structures.types import F64
from pose.utils.whole_file import whole_file

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


@dataclass(frozen=True, slots=True)
class Placement:
    """A rotation about y (upward), then a translation."""

    quaternion: F64  # (4,) w, x, y, z
    offset: F64 = field(default_factory=lambda: np.zeros(3))  # (3,) m

    @property
    def degrees(self) -> float:
        """The angle of the rotation about y."""
        return float(2 * np.degrees(np.arctan2(self.quaternion[2], self.quaternion[0])))


def write(track: Track, target: Path) -> Notes:
    """Write the track of one person to the MOT file `target`, and return notes for the export summary."""
    return write_mot(track, target, Placement(facing(track)))


def facing(track: Track) -> F64:
    """Return the rotation about y (w, x, y, z) after which a person faces +x on average; identity if undefined."""
    total = np.zeros(3)
    for span in track.sample():
        _, _, forward = pelvis_frame(track.space.to_file(span.joints)[:, ORDER])
        total += forward.sum(axis=0)
    return about(np.array([0.0, 1, 0]), np.array(np.arctan2(total[2], total[0])))


def write_mot(track: Track, target: Path, place: Placement) -> Notes:
    """Write the motion of one person, rotated and moved by `place`, to a MOT file."""
    assert track.rate is not None, "MOT has one rate"
    bones = AnimatedSkeleton(track)
    origin = pelvis_origin(bones.body)
    with whole_file(target) as hidden, hidden.open("wb") as file:
        name = target.stem.encode("ascii", "replace").decode()
        head = (name, "version=1", f"nRows={len(track)}", f"nColumns={len(COLUMNS)}", "inDegrees=yes", "endheader")
        file.write("\n".join((*head, "\t".join(COLUMNS), "")).encode("ascii"))
        previous: dict[str, F64] = {}
        for span, motion in bones.spans():
            turned = _turned(motion, place, origin)
            cells = number(coordinates(turned, previous), 5, prefix="\t")
            file.write(to_bytes(joined(number(span.times, 6), merged(cells), "\n")))
    faces = f"turned by {place.degrees:.0f} degrees about y, so that the person faces +x; no hip rotation"
    return [f"{timing(track)}; degrees and metres; {faces}", bones.distance_note(), *list_filled(track, target)]


def pelvis_origin(body: Body) -> F64:
    """Return the vector (3,) m from the midpoint of the hips to the origin of the model's pelvis, in rest-pose axes."""
    scale = abs(body.offsets[_AT["left_hip"], 0]) / setup.HALF_HIPS
    return rotate(_BODY, -scale * np.array(setup.HIPS))


def _turned(motion: SkeletonMotion, place: Placement, origin: F64) -> SkeletonMotion:
    """Place a motion, and move its root to the model's pelvis by `origin` (3,) m."""
    quaternions = motion.quaternions.copy()
    quaternions[:, 0] = multiply(place.quaternion, quaternions[:, 0])
    root = rotate(place.quaternion, motion.root) + place.offset + rotate(quaternions[:, 0], origin)
    return SkeletonMotion(root, quaternions)


def coordinates(motion: SkeletonMotion, previous: dict[str, F64] | None = None) -> F64:
    """Return the columns (T, 23) of `COLUMNS` but the time, in degrees and m; `previous` unwraps across parts."""
    previous = {} if previous is None else previous
    quaternions = {name: motion.quaternions[:, place] for name, place in _AT.items()}

    def angles(joint: str, quaternions: F64) -> F64:
        triple = unwrapped_euler(quaternions, "zxy", previous.get(joint))
        previous[joint] = triple[-1]
        return np.degrees(triple)

    def in_body(quaternions: F64) -> F64:
        return multiply(multiply(inverse(_BODY), quaternions), _BODY)

    parts = [angles("pelvis", multiply(quaternions["pelvis"], _BODY)), motion.root]
    for side in _SIDES:
        hip = angles(f"{side}_hip", in_body(quaternions[f"{side}_hip"])) * _mirrored(side)
        parts += [hip[:, :2], _bend(quaternions[f"{side}_knee"])]
    parts.append(angles("spine", in_body(multiply(quaternions["spine"], quaternions["thorax"]))))
    for side in _SIDES:
        arm = multiply(quaternions[f"{side}_shoulder"], _RAISED[side])
        parts += [angles(f"{side}_shoulder", in_body(arm)) * _mirrored(side), _bend(quaternions[f"{side}_elbow"])]
    return np.concatenate(parts, axis=1)


def _mirrored(side: str) -> F64:
    return np.array([1.0, 1, 1]) if side == "right" else np.array([1.0, -1, -1])


def _bend(quaternions: F64) -> F64:
    """Return the angles (T, 1) in degrees of rotations (T, 4): the flexion of a knee or elbow."""
    sine = np.sqrt((quaternions[..., 1:] ** 2).sum(axis=-1))
    result: F64 = np.degrees(2 * np.arctan2(sine, np.abs(quaternions[..., 0])))[:, None]
    return result


FORMAT = PersonFormat(".mot", write)
