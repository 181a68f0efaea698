"""The table of a result: which arrays `poses.npz` contains, in which order, and how they follow from a frame.

The data classes of a frame declare the columns of its people (`pose.structures.columns`). Here are the columns of whole
frames,
and those that are computed from others.
"""

import math
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from pose.results.run_info import RunInfo
from pose.structures.columns import Array, Column, columns_of
from pose.structures.face_points import ANGLES, MEASURES, Faces, head_angles, measures
from pose.structures.hand_points import POINTS, Hands, sigma_of, sized_to_body
from pose.structures.types import FrameResult, People, Placed, Poses3D

# In the order of their arrays in the file.
PARTS = ("", "world", "views", "positions", "hands", "faces", "cameras", "sensors")

# Columns with one row per frame. `views` and `positions` are those of `pose.structures.types.CameraView`.
FRAME_COLUMNS = (
    Column("timestamps", dtype="<f8", unit="s"),
    Column("frames", dtype="<i8"),
    Column("camera_rotation", (3, 3), part="views", required=False),
    Column("camera_zoom", part="views", required=False),
    Column("camera_sigma", unit="degrees", part="views", required=False),
    Column("camera_position", (3,), unit="m", part="positions", required=False),
    Column("camera_position_sigma", unit="m", part="positions", required=False),
)
_KEYS = (Column("frame_index", dtype="<i8"), Column("time", dtype="<f8", unit="s"))
_HANDS_3D = (
    Column(
        "hand_joints3d", (2, POINTS, 3), unit="m", space="camera", limits=(-10, 10), part="hands", fill=math.nan
    ),
    Column("hand_sigma", (2, POINTS), unit="mm", part="hands", fill=math.nan, required=False),
)  # fmt: skip
_FACE_MEASURES = (
    Column("face_angles", (len(ANGLES),), unit="degrees", part="faces", fill=math.nan, required=False),
    Column("face_measures", (len(MEASURES),), part="faces", fill=math.nan, required=False),
)
# Columns with one row per person and frame.
ROW_COLUMNS = tuple(
    one
    for columns in (
        _KEYS, columns_of(People), columns_of(Poses3D), columns_of(Placed), columns_of(Hands), _HANDS_3D,
        columns_of(Faces), _FACE_MEASURES,
    )
    for one in columns
    if one.name
)  # fmt: skip
FRAME_NAMES = frozenset(one.name for one in FRAME_COLUMNS)
NAMES = FRAME_NAMES | {one.name for one in ROW_COLUMNS}


def parts_of(info: RunInfo) -> set[str]:
    """Return the parts of a run's results, of `PARTS`."""
    parts = {""}
    if info.world is not None:
        parts.add("world")
    if info.motion is not None and info.motion.compensated:
        parts.add("views")
        if info.motion.motion.translation_known or (info.world is not None and info.world.scenes):
            parts.add("positions")
    return parts | {
        name
        for name, present in (
            ("hands", info.has_hands),
            ("faces", info.has_faces),
            ("cameras", bool(info.cameras)),
            ("sensors", info.world is not None and bool(info.settings.get("sensors"))),
        )
        if present
    }


def columns_in(info: RunInfo) -> Iterator[Column]:
    """Yield the columns of a run's results, in the order of the file."""
    parts = parts_of(info)
    for part in (name for name in PARTS if name in parts):
        yield from (one for one in (*FRAME_COLUMNS, *ROW_COLUMNS) if one.part == part)


def frame_arrays(result: FrameResult) -> dict[str, Array]:
    """Return the columns of one frame, by name; (1, ...)."""
    arrays: dict[str, Array] = {"timestamps": np.array([result.time]), "frames": np.array([result.index])}
    if (view := result.view) is not None:
        arrays |= {
            "camera_rotation": view.rotation[None],
            "camera_zoom": np.array([view.zoom]),
            "camera_sigma": np.array([view.sigma_degrees]),
        }
        if view.position is not None:
            arrays |= {
                "camera_position": view.position[None],
                "camera_position_sigma": np.array([view.position_sigma]),
            }
    return arrays


def row_arrays(result: FrameResult, names: Collection[str], doubtful: Collection[int]) -> Mapping[str, Array]:
    """Return the named columns of the P people of a frame, (P, ...), and doubtful tracks without a world."""
    people, count = result.people, len(result.people)
    arrays = {"frame_index": np.full(count, result.index), "time": np.full(count, result.time)}
    arrays |= people.arrays() | result.poses.arrays()
    if "hand_scores" in names:
        arrays |= hand_arrays(result)
    if "face_scores" in names:
        arrays |= face_arrays(result)
    if result.placed is None:
        return arrays | {"doubtful": np.isin(people.ids, list(doubtful))}
    return arrays | result.placed.arrays()


def hand_arrays(result: FrameResult) -> dict[str, Array]:
    """Return the columns of the hands of a frame's people. If hands were not estimated, none is detected."""
    people, poses = result.people, result.poses
    hands = people.hands if people.hands is not None else Hands.unknown(len(people))
    joints = sized_to_body(hands, poses.joints, poses.swapped)
    return hands.arrays() | {"hand_joints3d": joints, "hand_sigma": sigma_of(hands, joints, poses.swapped)}


def face_arrays(result: FrameResult) -> dict[str, Array]:
    """Return the columns of the faces of a frame's people. If faces were not estimated, none is detected."""
    people = result.people
    faces = people.faces if people.faces is not None else Faces.unknown(len(people))
    detected = faces.detected[:, None]
    return faces.arrays() | {
        "face_angles": np.where(detected, head_angles(faces.points), np.nan).astype(np.float32),
        "face_measures": np.where(detected, measures(faces.points), np.nan).astype(np.float32),
    }
