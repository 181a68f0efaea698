"""COCO keypoint results: a list with one object per person and frame, for COCO's evaluation.

`image_id` is the frame index, and `track_id` is the person's id. The third number of each keypoint is its score; 0
means not detected.
"""

from pathlib import Path

import numpy as np

from pose.body.digits import joined, merged, number, to_bytes, without_first
from pose.body.flat import People2D, keypoints, own_frames, portions
from pose.body.tracks import Selection
from pose.export.format import Notes, SceneFormat
from pose.structures.skeletons import COCO_NAMES
from pose.structures.types import U8
from pose.utils.whole_file import whole_file


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write the 2D keypoints of the people with the ids `people` as COCO JSON; return notes for the export summary."""
    with whole_file(target) as hidden, hidden.open("wb") as file:
        file.write(b"[")
        separator = b"\n"
        for part in portions(recording, people, COCO_NAMES):
            if len(part.ids):
                file.write(separator + _objects(part).removesuffix(b",\n"))
                separator = b",\n"
        file.write(b"\n]\n")
    return ["2D, px; COCO's 17 joints", *own_frames(recording)]


def _objects(part: People2D) -> bytes:
    """Return one JSON object per row, each followed by a comma and a new line."""
    boxes = np.concatenate([part.boxes[:, :2], part.boxes[:, 2:] - part.boxes[:, :2]], axis=1)
    score, box, points = (np.nan_to_num(values) for values in (part.scores, boxes, part.points))
    hands: list[str | U8] = []
    if part.hands is not None:  # names in COCO-WholeBody's results
        for side, name in enumerate(("lefthand_kpts", "righthand_kpts")):
            hands += [f'],"{name}":[', keypoints(part.hands[:, side])]
    return to_bytes(
        joined(
            *('{"image_id":', number(part.rows_frame), ',"category_id":1,"track_id":', number(part.ids)),
            *(',"score":', number(score, 4), ',"bbox":[', without_first(merged(number(box, 2, prefix=",")))),
            *('],"keypoints":[', keypoints(points)),
            *hands,
            "]},\n",
        )
    )


FORMAT = SceneFormat("-coco.json", write)
