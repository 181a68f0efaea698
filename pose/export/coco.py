"""COCO keypoint results: a list with one object for each person and frame, as COCO's evaluation reads it.

image_id is the frame's index, the third number of a keypoint its score (0: not seen), and track_id the person.
"""

from pathlib import Path

import numpy as np

from pose.export.flat import frames
from pose.export.format import Notes, SceneFormat
from pose.export.tracks import Recording
from pose.skeletons import COCO_NAMES
from pose.system.whole_file import whole_file

_ROW = (
    '{"image_id":%d,"category_id":1,"track_id":%d,"score":%.4f,"bbox":[%.2f,%.2f,%.2f,%.2f],"keypoints":['
    + ",".join(["%.2f,%.2f,%.3f"] * len(COCO_NAMES))
    + "]}"
)


def write(recording: Recording, people: list[int], target: Path) -> Notes:
    separator = "\n"
    with whole_file(target) as hidden, hidden.open("w", encoding="ascii", newline="\n") as file:
        file.write("[")
        for part in frames(recording, people, COCO_NAMES):
            boxes = np.concatenate([part.boxes[:, :2], part.boxes[:, 2:] - part.boxes[:, :2]], axis=1)
            heads = np.concatenate([part.scores[:, None], boxes], axis=1)
            values = np.nan_to_num(
                np.concatenate([heads, part.points.reshape(len(part.ids), 3 * len(COCO_NAMES))], axis=1)
            ).tolist()
            for person, row in zip(part.ids.tolist(), values, strict=True):
                file.write(separator + _ROW % (part.frame, person, *row))
                separator = ",\n"
        file.write("\n]\n")
    return ["2D, px; COCO's 17 joints"]


FORMAT = SceneFormat("-coco.json", write)
