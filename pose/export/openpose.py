"""OpenPose JSON: a folder with one file per frame and 25 body joints, for Pose2Sim and other readers of this format."""

import os
from glob import escape
from pathlib import Path

from pose.body.digits import joined, number, to_bytes
from pose.body.flat import BODY_25, People2D, keypoints, own_frames, portions
from pose.body.tracks import Selection
from pose.export.format import Notes, SceneFormat, whole_folder

_LEFT, _RIGHT = '],"face_keypoints_2d":[],"hand_left_keypoints_2d":[', '],"hand_right_keypoints_2d":['
_OTHERS = '],"pose_keypoints_3d":[],"face_keypoints_3d":[],"hand_left_keypoints_3d":[],"hand_right_keypoints_3d":[]}\n'


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write the people with the ids `people` to a folder of OpenPose JSON; return notes for the export summary."""
    name = target.name.removesuffix("-openpose")
    with whole_folder(target, [f"{escape(name)}_*_keypoints.json"]) as folder:
        for part in portions(recording, people, BODY_25):
            objects = _people(part)
            for frame, first, last in zip(part.frames, part.frame_starts[:-1], part.frame_starts[1:], strict=True):
                content = b'{"version":1.3,"people":[%b]}' % b",".join(objects[first:last])
                _write_small(f"{folder}/{name}_{frame:012d}_keypoints.json", content)
    return ["2D, px; a file for each frame, BODY_25", *own_frames(recording)]


def _people(part: People2D) -> list[bytes]:
    """Return the JSON object of each row."""
    head = ('{"person_id":[', number(part.ids), '],"pose_keypoints_2d":[')
    left, right = ("", "") if part.hands is None else (keypoints(part.hands[:, side]) for side in range(2))
    return to_bytes(joined(*head, keypoints(part.points), _LEFT, left, _RIGHT, right, _OTHERS)).splitlines()


def _write_small(path: str, content: bytes) -> None:
    """Write a small file; the overhead of `Path.write_bytes` would double the time per file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        while content:
            content = content[os.write(file, content) :]
    finally:
        os.close(file)


FORMAT = SceneFormat("-openpose", write)
