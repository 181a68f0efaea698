"""What the page shows of a result: metadata, a timeline of bounded size, and frames in portions."""

import base64
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pose.body.joint_angles import NAMES, joint_angles
from pose.lifting.repair.person import mirrored_orders
from pose.results import Recording, load_poses
from pose.results.cameras import ResultCamera, result_cameras
from pose.structures.colours import drawing_settings
from pose.structures.skeletons import get_skeleton, to_h36m17
from pose.utils.json_values import Json, text

MAX_FRAMES = 600  # maximum number of frames of a portion
BINS = 1500  # maximum number of bins of the timeline
MISSING = -32768
PIXEL_PARTS = 4  # parts of a px in which 2D coordinates are sent
# Bits of a bin of the timeline.
SEEN, INTERPOLATED, DOUBTFUL, LEGS, ARMS, LEFT_CONTACT, RIGHT_CONTACT = (1 << bit for bit in range(7))
MIN_CONTACT = 0.5
_TRUNK = (1, 4, 11, 14)  # hips and shoulders of Human3.6M-17


@lru_cache(maxsize=8)
def opened(path: Path, changed: int) -> Recording:
    """Return a result whose arrays are read from the file when they are needed; `changed` is its time of change, ns."""
    return load_poses(path, mapped=True)


def metadata(table: Recording, clips: Sequence[Path]) -> dict[str, Any]:
    """Return what the page must know before it asks for frames; `clips` are the videos of a project."""
    run, info = table.run, table.world_info
    size = (0, 0) if table.camera is None else table.camera.size
    numbers = {str(clip): number for number, clip in enumerate(clips, 1)}
    cameras = [
        {
            "name": one.name, "size": one.size, "offset": one.offset, "drift": one.drift,
            "number": numbers.get(one.video or "", row),  # of its video; a camera that does not fit is left out
        }
        for row, one in enumerate(result_cameras(run), 1)
    ]  # fmt: skip
    skeleton = get_skeleton("h36m17") if cameras else table.skeleton
    movable = [name for name in skeleton.names if name in table.skeleton.names]
    names = {} if run is None else run.settings.get("names", {})
    return {
        "frames": len(table), "times": _packed(np.asarray(table.timestamps, "<f8")), "size": size, "fps": table.fps,
        "skeleton": {"names": skeleton.names, "edges": skeleton.edges}, "movable": movable, "cameras": cameras,
        "drawing": drawing_settings(), "angles": list(NAMES), "parts": PIXEL_PARTS, "complete": table.complete,
        "world": info is not None, "floor": 0.0 if info is None else -info.world.floor,
        "people": [
            {
                "id": person, "doubtful": person in table.doubtful_ids,
                "name": text(names[str(person)]) if isinstance(names, dict) and str(person) in names else None,
                "height": None if info is None else info.heights.get(person),
                "bins": _packed(_bins(table, person)),
            }
            for person in table.people
        ],
    }  # fmt: skip


def _bins(table: Recording, person: int) -> NDArray[np.uint8]:
    """Return the bits of each bin of the timeline for a person."""
    rows, count = table.rows_of(person), min(BINS, len(table))
    bins = np.zeros(count, np.uint8)
    at = np.searchsorted(table.frames, table.frame_index[rows]) * count // max(len(table), 1)
    flags = {SEEN: np.ones(len(rows), bool), LEGS: table.swapped[rows, 0], ARMS: table.swapped[rows, 1]}
    flags[INTERPOLATED] = ~(table.scores[rows] > 0).any(axis=1)
    if table.placed is not None:
        contacts = table.placed.contacts[rows] >= MIN_CONTACT
        flags |= {LEFT_CONTACT: contacts[:, 0], RIGHT_CONTACT: contacts[:, 1]}
        flags[INTERPOLATED] = table.placed.filled[rows]
    flags[DOUBTFUL] = table.doubtful[rows] | (np.asarray(table.sigma[rows]).mean(axis=1) > 150)
    for bit, mask in flags.items():
        np.bitwise_or.at(bins, at[np.asarray(mask, bool)], np.uint8(bit))
    return bins


def portion(table: Recording, first: int, count: int, camera: int = 1) -> dict[str, Any]:
    """Return at most `MAX_FRAMES` frames from `first` on: arrays in base64, one row a frame for each person.

    The 2D of several cameras are the 3D joints in the image of a camera, from 1 on.
    """
    cameras = result_cameras(table.run)
    view = cameras[camera - 1] if 0 < camera <= len(cameras) else None
    first = max(0, min(first, len(table)))
    last = min(first + min(count, MAX_FRAMES), len(table))
    if first == last:
        return {"first": first, "count": 0, "people": []}
    begin, end = np.searchsorted(table.frame_index, [table.frames[first], table.frames[last - 1] + 1]).tolist()
    ids = np.asarray(table.id[begin:end])
    rows = {person: begin + np.flatnonzero(ids == person) for person in np.unique(ids).tolist()}
    found = [_person(table, of_person, first, last, view) for of_person in rows.values()]
    return {"first": first, "count": last - first, "people": found}


def _person(
    table: Recording, rows: NDArray[np.int64], first: int, last: int, view: ResultCamera | None
) -> dict[str, Json]:
    at = np.searchsorted(table.frames, table.frame_index[rows]) - first
    if table.placed is not None:
        joints = np.asarray(table.placed.joints[rows], np.float64)
        contacts = np.asarray(table.placed.contacts[rows], np.float64)
    else:
        camera = np.asarray(table.joints3d[rows] + table.root[rows][:, None], np.float64)
        joints, contacts = camera * (1, -1, -1), np.zeros((len(rows), 2))
    sigma = np.asarray(table.sigma[rows], np.float64)
    points, scores = np.array(table.keypoints[rows]), np.array(table.scores[rows])
    centres, seen = to_h36m17(points, scores, table.skeleton)
    weights = (seen[:, _TRUNK] > 0)[..., None].astype(np.float64)
    boxes = np.asarray(table.box[rows], np.float64).reshape(-1, 2, 2).mean(axis=1)
    found = weights.sum(axis=1)
    trunk = np.asarray((centres[:, _TRUNK] * weights).sum(axis=1), np.float64) / np.maximum(found, 1)
    centre = np.where(found > 0, trunk, boxes)
    centre[~(scores > 0).any(axis=1)] = np.nan
    for row, limb in np.argwhere(np.asarray(table.swapped[rows])):
        order = mirrored_orders(table.skeleton)[limb]
        points[row], scores[row] = points[row, order], scores[row, order]
    stage = np.stack([joints[..., 0], -joints[..., 2], joints[..., 1]], axis=-1)
    angles = joint_angles(joints, sigma, np.array([0.0, 1.0, 0.0])).degrees
    if view is not None:
        points = view.project(np.asarray(table.joints3d[rows] + table.root[rows][:, None], np.float64))
        scores, centre = np.ones(points.shape[:2], np.float32), points[:, list(_TRUNK)].mean(axis=1)
    shown = PIXEL_PARTS * np.where(scores[..., None] > 0, points, np.nan)
    count = last - first
    return {
        "id": int(table.id[rows[0]]),
        "stage": _packed(_spread(1000 * stage.reshape(len(rows), -1), at, count)),
        "sigma": _packed(_spread(sigma, at, count)),
        "points": _packed(_spread(shown.reshape(len(rows), -1), at, count)),
        "centre": _packed(_spread(PIXEL_PARTS * centre, at, count)),
        "angles": _packed(_spread(10 * angles, at, count)),
        "contacts": _packed(_spread(100 * contacts, at, count)),
    }


def _spread(values: NDArray[np.floating], at: NDArray[np.int64], count: int) -> NDArray[np.int16]:
    """Return rows (count, n) of int16 with `values` at `at`; unknown values are `MISSING`."""
    spread = np.full((count, values.shape[1]), MISSING, "<i2")
    rounded = np.clip(np.round(np.nan_to_num(values)), MISSING + 1, -MISSING - 1)
    spread[at] = np.where(np.isfinite(values), rounded, MISSING)
    return spread


def _packed(values: NDArray[np.generic]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
