"""`poses.json`: the results of a run as text. The schema lies beside this file; docs/outputs.md explains it.

The file is streamed: the head, one line a frame, the tail. Numbers go through one prepared %-format a person, several
times faster than `json.dumps` and with fixed decimals: px 0.01, score 0.001, metres 0.0001, millimetres 0.1.
"""

import json
from pathlib import Path

import numpy as np

from pose.files.run_info import RunInfo
from pose.files.writer import PartFile, WriterContext
from pose.skeletons import H36M17
from pose.system.whole_file import file_errors
from pose.types import FrameResult

FORMAT_NAME = "pose-run"
FORMAT_VERSION = 1
# What ends a person, by whether legs and arms were exchanged.
_EXCHANGED = {
    (False, False): "[]}",
    (True, False): '["legs"]}',
    (False, True): '["arms"]}',
    (True, True): '["legs","arms"]}',
}
SCHEMA_PATH = Path(__file__).with_name("poses.schema.json")


class JsonWriter(WriterContext):
    """Writes `poses.json`. Implements `ResultWriter`."""

    def __init__(self, path: Path, info: RunInfo) -> None:
        self._frames = 0
        self._people = PeopleJson(len(info.skeleton))
        head = json.dumps({"format": FORMAT_NAME, "version": FORMAT_VERSION, **info.to_dict()}, allow_nan=False)
        self._part = PartFile(path)
        self._end = 0  # where the last whole piece ends: an interrupt may come in the middle of a write
        self._append(f'{head[:-1]},\n"frames": [')

    def write(self, result: FrameResult) -> None:
        line = f'{{"index":{result.index},"time":{result.time:.6f},"people":[{",".join(self._people(result))}]}}'
        self._append(("\n" if self._frames == 0 else ",\n") + line)
        self._frames += 1

    def close(self, complete: bool = True) -> None:
        if self._part.file.closed:
            return
        with file_errors(self._part.target):
            self._part.file.seek(self._end)
            self._part.file.truncate()
        self._append(f'\n],\n"complete": {"true" if complete else "false"}}}\n')
        self._part.commit()

    def abort(self) -> None:
        if not self._part.file.closed:
            self._part.discard()

    def _append(self, text: str) -> None:
        data = text.encode()
        with file_errors(self._part.target):
            self._part.file.write(data)
        self._end += len(data)


class PeopleJson:
    """The people of a frame as JSON objects, as `poses.json` holds them."""

    def __init__(self, joints: int) -> None:
        """joints: number of 2D keypoints."""
        self._format = _person_format(joints)

    def __call__(self, result: FrameResult) -> list[str]:
        """One object for each person, in their order."""
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
        limbs = (_EXCHANGED[tuple(row)] for row in poses.exchanged.tolist())
        named = zip(people.ids.tolist(), rows.tolist(), limbs, strict=True)
        return [(self._format % (person, *row)).replace("nan", "null") + limb for person, row, limb in named]


def _person_format(joints: int) -> str:
    keypoint = "[%.2f,%.2f,%.3f]"
    point = "[%.4f,%.4f,%.4f]"
    return (
        '{"id":%d,"box":[%.2f,%.2f,%.2f,%.2f],"score":%.3f,'
        f'"keypoints":[{",".join([keypoint] * joints)}],'
        f'"joints3d":[{",".join([point] * len(H36M17))}],"root":{point},'
        f'"sigma":[{",".join(["%.1f"] * len(H36M17))}],"exchanged":'
    )
