"""OpenPose JSON: a folder with one file a frame, its 25 body joints, for Pose2Sim, OpenCap-like tools and others."""

import shutil
from pathlib import Path

from pose.export.flat import BODY_25, frames
from pose.export.format import Notes, SceneFormat
from pose.export.tracks import Recording
from pose.system.whole_file import WholeFile, file_errors

_PERSON = (
    '{"person_id":[%d],"pose_keypoints_2d":['
    + ",".join(["%.2f,%.2f,%.3f"] * len(BODY_25))
    + '],"face_keypoints_2d":[],"hand_left_keypoints_2d":[],"hand_right_keypoints_2d":[],"pose_keypoints_3d":[],'
    '"face_keypoints_3d":[],"hand_left_keypoints_3d":[],"hand_right_keypoints_3d":[]}'
)


def write(recording: Recording, people: list[int], target: Path) -> Notes:
    folder = WholeFile(target)
    name = target.name.removesuffix("-openpose")
    try:
        with file_errors(target):
            folder.path.mkdir()
            for part in frames(recording, people, BODY_25):
                rows = part.points.reshape(len(part.ids), 3 * len(BODY_25)).tolist()
                texts = [_PERSON % (person, *row) for person, row in zip(part.ids.tolist(), rows, strict=True)]
                text = f'{{"version":1.3,"people":[{",".join(texts)}]}}'
                (folder.path / f"{name}_{part.frame:012d}_keypoints.json").write_text(text, encoding="ascii")
            if target.is_dir():
                shutil.rmtree(target)
            folder.path.replace(target)
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)
    return ["2D, px; a file for each frame, BODY_25"]


FORMAT = SceneFormat("-openpose", write)
