"""Writer of `poses.json`, the results of a run as text. docs/reference/outputs.md describes the schema beside this
file.

The file is streamed: the header, one line per frame, the tail. Numbers are formatted by one prepared %-format per
person: 4.0 s per hour of one person, `json.dumps` needs 10.6 s (`benchmarks/number_text.py`). Decimals are fixed: px
0.01, score 0.001, metres 0.0001, millimetres 0.1.
"""

import json
from collections.abc import Collection
from contextlib import suppress
from itertools import compress
from pathlib import Path

import numpy as np

from pose.errors import PoseError
from pose.files.run_info import RunInfo
from pose.files.writer import PartFile, WriterContext
from pose.hand_points import POINTS, SIDES, on_body
from pose.skeletons import H36M17, LIMBS
from pose.types import CameraView, FrameResult, Placed

FORMAT_NAME = "pose-run"
FORMAT_VERSION = 2
# Suffix of a person by whether legs and arms were swapped.
_SWAPPED = {
    (False, False): "[]",
    (True, False): '["legs"]',
    (False, True): '["arms"]',
    (True, True): '["legs","arms"]',
}
_LIMBS = [f'"{name}"' for name in LIMBS]
_POINT = "[%.4f,%.4f,%.4f]"
_HAND, _HAND_3D = ",".join(["[%.2f,%.2f,%.3f]"] * POINTS), ",".join([_POINT] * POINTS)
_AHEAD = ',"ahead":%.4f'
_DOUBTFUL = ',"doubtful":true'
_PLACED = f',"world":[{",".join([_POINT] * len(H36M17))}],"contacts":[%.2f,%.2f],"root_sigma":%.1f,"moved":%.1f,'
SCHEMA_PATH = Path(__file__).with_name("poses.schema.json")


class JsonWriter(WriterContext):
    """Writes `poses.json`. Implements `ResultWriter`.

    The file is a valid document at any time; until `close` it is marked as incomplete.
    """

    def __init__(self, path: Path, info: RunInfo, part: Path | None = None, spare: int = 0) -> None:
        """
        Args:
            path: Final path.
            info: Metadata of the run.
            part: Path of the incomplete file; default is a hidden one beside `path`.
            spare: Bytes by which the header may grow later (`write_head`).
        """
        self._frames = 0
        self._people = PeopleJson(len(info.skeleton), info.doubtful)
        head = _head(info)
        self._head = len(head) + spare
        self._part = PartFile(path, part)
        self._end = 0  # end of the last complete piece
        self._append(f'{head.ljust(self._head)},\n"frames": [')

    def write_head(self, info: RunInfo) -> None:
        """Replace the metadata of the run.

        Raises:
            ValueError: If the header would be too long.
        """
        head = _head(info)
        if len(head) > self._head:
            raise ValueError(f"the header has {len(head)} bytes; {self._head} are reserved")
        self._part.write_within(0, head.ljust(self._head).encode())

    def write(self, result: FrameResult) -> None:
        """See `ResultWriter`."""
        camera = "" if result.view is None else view_json(result.view)
        people = ",".join(self._people(result))
        line = f'{{"index":{result.index},"time":{result.time:.6f},{camera}"people":[{people}]}}'
        self._append(("\n" if self._frames == 0 else ",\n") + line)
        self._frames += 1

    def close(self, complete: bool = True) -> None:
        """See `ResultWriter`. If only the tail cannot be written, the file still gets its final name."""
        if self._part.closed:
            return
        try:
            self._part.write_end(self._end, _tail(complete))
        except PoseError:
            self._restore()
            self._part.commit()
            raise
        self._part.commit()

    def abort(self) -> None:
        """See `ResultWriter`."""
        if not self._part.closed:
            self._part.discard()

    def _append(self, text: str) -> None:
        data = text.encode()
        try:
            self._part.write_end(self._end, data + _tail(complete=False))
        except PoseError:
            self._restore()
            raise
        self._end += len(data)

    def _restore(self) -> None:
        """Write the tail as it was before a failed write; there is space for it, as there was before."""
        with suppress(PoseError):
            self._part.write_end(self._end, _tail(complete=False))


def view_json(view: CameraView) -> str:
    """The member `camera` of a frame, with the following comma."""
    rows = (f"[{','.join(f'{value:.6f}' for value in row)}]" for row in view.rotation.tolist())
    sigma = f"{view.sigma_degrees:.3f}" if np.isfinite(view.sigma_degrees) else "null"
    place = "" if view.position is None else f',"position":[{",".join(f"{value:.4f}" for value in view.position)}]'
    return f'"camera":{{"rotation":[{",".join(rows)}],"zoom":{view.zoom:.5f},"sigma_degrees":{sigma}{place}}},'


def _head(info: RunInfo) -> str:
    """The header without its closing brace; ASCII."""
    return json.dumps({"format": FORMAT_NAME, "version": FORMAT_VERSION, **info.to_dict()}, allow_nan=False)[:-1]


def _tail(complete: bool) -> bytes:
    return b'\n],\n"complete": %s}\n' % (b"true" if complete else b"false")


def mend_json(path: Path) -> int:
    """Complete a document whose writer was killed, possibly during a write.

    Raises OSError. Without any frame the file stays as it is.

    Returns:
        Its number of frames.
    """
    place = end = frames = 0
    with path.open("r+b") as file:
        for line in file:
            if line.startswith(b'{"index":') and line.endswith(b"\n"):
                end, frames = place + len(line.rstrip(b",\n")), frames + 1
            place += len(line)
        if end:
            file.seek(end)
            file.write(_tail(complete=False))
            file.truncate()
    return frames


def read_head(path: Path) -> RunInfo:
    """Read the metadata of a complete or incomplete document.

    Raises OSError, KeyError, TypeError or ValueError.
    """
    with path.open("rb") as file:
        return RunInfo.from_json(json.loads(file.readline().rstrip(b",\n") + b"}"))


class PeopleJson:
    """Formats the people of a frame as JSON objects of `poses.json`."""

    def __init__(self, joints: int, doubtful: Collection[int] = ()) -> None:
        """
        Args:
            joints: Number of 2D keypoints.
            doubtful: Ids of doubtful tracks of a result without a world.
        """
        self._format = _person_format(joints)
        self._doubtful = frozenset(doubtful)

    def __call__(self, result: FrameResult) -> list[str]:
        """Return one object for each person, in their order."""
        people, poses = result.people, result.poses
        n = len(people)
        if n == 0:
            return []
        keypoints = np.concatenate([people.keypoints, people.scores[..., None]], axis=2)
        rows = np.concatenate(
            [
                people.boxes,
                people.box_scores[:, None],
                keypoints.reshape(n, -1),
                poses.joints.reshape(n, -1),
                poses.root,
                poses.sigma,
            ],
            axis=1,
        )
        rows[~np.isfinite(rows)] = np.nan
        limbs = (_SWAPPED[tuple(row)] for row in poses.swapped.tolist())
        predicted = ((_AHEAD % ahead) if ahead else "" for ahead in poses.ahead.tolist())
        cameras = (f',"seen_by":{bits}'.replace(" ", "") if any(bits) else "" for bits in poses.seen_by.tolist())
        named = zip(people.ids.tolist(), rows.tolist(), limbs, predicted, cameras, strict=True)
        texts = [
            (self._format % (person, *row)).replace("nan", "null") + limb + far + seen_by
            for person, row, limb, far, seen_by in named
        ]
        hands = hands_json(result)
        texts = [text + hand for text, hand in zip(texts, hands, strict=True)]
        ends = self._unplaced(result) if result.placed is None else _placed(result.placed)
        return [text + end for text, end in zip(texts, ends, strict=True)]

    def _unplaced(self, result: FrameResult) -> list[str]:
        """The end of people without world coordinates."""
        return [f"{_DOUBTFUL}}}" if person in self._doubtful else "}" for person in result.people.ids.tolist()]


def hands_json(result: FrameResult) -> list[str]:
    """The member `hands` of each person with a leading comma; empty for people without visible hands."""
    people, poses = result.people, result.poses
    if people.hands is None:
        return [""] * len(people)
    points = np.concatenate([people.hands.points, people.hands.scores[..., None]], axis=-1)
    joints = on_body(people.hands, poses.joints, poses.swapped)
    seen, lifted, texts = people.hands.seen, np.asarray(np.isfinite(joints).all(axis=(2, 3))), []
    for row in range(len(people)):
        sides = []
        for at, side in enumerate(SIDES):
            parts = []
            if seen[row, at]:
                parts.append(f'"keypoints":[{_HAND % tuple(points[row, at].ravel().tolist())}]')
            if lifted[row, at]:
                parts.append(f'"joints3d":[{_HAND_3D % tuple(joints[row, at].ravel().tolist())}]')
            if parts:
                sides.append(f'"{side}":{{{",".join(parts)}}}')
        texts.append(f',"hands":{{{",".join(sides)}}}' if sides else "")
    return texts


def _placed(placed: Placed) -> list[str]:
    """The end of people with world coordinates."""
    n = len(placed.filled)
    values = [placed.joints.reshape(n, -1), placed.contacts, placed.root_sigma[:, None], placed.moved[:, None]]
    rows = np.concatenate(values, axis=1)
    rows[~np.isfinite(rows)] = np.nan
    filled = ("true" if one else "false" for one in placed.filled.tolist())
    flags = (
        (_DOUBTFUL if doubtful else "")
        + (',"partial":true' if partial else "")
        + (f',"inconsistent":[{",".join(compress(_LIMBS, limbs))}]' if any(limbs) else "")
        for doubtful, partial, limbs in zip(
            placed.doubtful.tolist(), placed.partial.tolist(), placed.inconsistent.tolist(), strict=True
        )
    )
    return [
        (_PLACED % tuple(row)).replace("nan", "null") + f'"filled":{one}{flag}}}'
        for row, one, flag in zip(rows.tolist(), filled, flags, strict=True)
    ]


def _person_format(joints: int) -> str:
    keypoint = "[%.2f,%.2f,%.3f]"
    return (
        '{"id":%d,"box":[%.2f,%.2f,%.2f,%.2f],"score":%.3f,'
        f'"keypoints":[{",".join([keypoint] * joints)}],'
        f'"joints3d":[{",".join([_POINT] * len(H36M17))}],"root":{_POINT},'
        f'"sigma":[{",".join(["%.1f"] * len(H36M17))}],"swapped":'
    )
