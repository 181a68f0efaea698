"""2D keypoints of other programs: COCO keypoint JSON, AlphaPose/Halpe JSON, and folders of OpenPose or AlphaPose JSON.

No format contains times, and most contain no image size. The caller provides what is missing. Sources of the formats:
COCO's data format page, and the output documentation of OpenPose and AlphaPose.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError, UsageError
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import COCO_NAMES
from pose.structures.types import F32
from pose.utils.filling import MAX_GAP_FRAMES

SUPPORTED_FORMATS = (
    "expected COCO keypoint JSON, AlphaPose JSON, or a folder with one OpenPose or AlphaPose JSON file for each frame"
)
_BODY_18 = (
    "nose", "neck", "right_shoulder", "right_elbow", "right_wrist", "left_shoulder", "left_elbow", "left_wrist",
    "right_hip", "right_knee", "right_ankle", "left_hip", "left_knee", "left_ankle", "right_eye", "left_eye",
    "right_ear", "left_ear",
)  # fmt: skip
_BODY_25 = (*_BODY_18[:8], "middle_hip", *_BODY_18[8:], "toes", "toes", "heel", "toes", "toes", "heel")
# Number of joints in a file -> name of the skeleton, and index in the file of each of its joints.
_COCO_OF_18 = [_BODY_18.index(name) for name in COCO_NAMES]
_COCO_OF_25 = [_BODY_25.index(name) for name in COCO_NAMES]
LAYOUTS: dict[int, tuple[str, list[int]]] = {
    17: ("coco17", list(range(17))),
    18: ("coco17", _COCO_OF_18),
    25: ("coco17", _COCO_OF_25),
    26: ("halpe26", list(range(26))),
    133: ("wholebody133", list(range(133))),
    136: ("halpe26", list(range(26))),  # Halpe's joints with face and hands, which are not used
}


@dataclass(frozen=True, slots=True)
class _Detection:
    """One person in one frame."""

    frame: int  # index of the frame
    person: int | None  # id of the person; None if the file has no ids
    points: NDArray[np.float64]  # (J, 3), x in px, y in px, and score


def read_people(path: Path, fps: float | None, image_size: tuple[int, int] | None) -> dict[int, Sequence2D]:
    """Read the keypoints of all people from a file or folder, as the sequence of each person by id.

    Between a person's first and last frame, frames without the person get score 0. Without ids, the file must contain
    one person, who gets id 1. `fps` (frames/s) is required; `image_size` is needed unless the file contains it.

    Raises:
        UsageError: If the file does not exist, `fps` is None, or the image size is unknown.
        PoseError: If the file is invalid, a person occurs twice in a frame, or gaps exceed `MAX_GAP_FRAMES` frames.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder")
    try:
        detections, size = _folder(path) if path.is_dir() else _file(path)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise PoseError(f"{path}: {SUPPORTED_FORMATS}; {_detail(error)}") from error
    if not detections:
        raise PoseError(f"{path}: contains no keypoints")
    if fps is None:
        raise UsageError(f"{path}: contains no time stamps; give the frame rate of the video with --fps")
    size = image_size or size
    if size is None:
        raise UsageError(f"{path}: contains no image size; give it with --image-size, such as 1920x1080")
    return {person: _sequence(path, part, fps, size) for person, part in _by_person(path, detections).items()}


def _detail(error: Exception) -> str:
    """Describe an error in the file for users, without the wording of the Python exception."""
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    if isinstance(error, RecursionError):
        return "invalid JSON (nested too deeply)"
    if isinstance(error, TypeError | AttributeError):
        return "a list, object or number is missing where the format has one"
    return str(error)


def _file(path: Path) -> tuple[list[_Detection], tuple[int, int] | None]:
    document = _load(path)
    if isinstance(document, dict):
        return _annotations(document)
    if not isinstance(document, list):
        raise ValueError("the file contains a single value, not an object or a list")
    return [_entry(entry, _frame_number(entry["image_id"])) for entry in document], None


def _annotations(document: dict[str, Any]) -> tuple[list[_Detection], tuple[int, int] | None]:
    """Read a COCO annotation file; return people, and the (width, height) px of the images if it has it."""
    # The frame of an image is its `frame_id`, or the number in its file name, or its id. If images share a number,
    # their order in the file counts.
    images = document["images"]
    sizes = {(int(image["width"]), int(image["height"])) for image in images if "width" in image}
    if len(sizes) > 1:
        raise ValueError("its images have different sizes")
    if any(min(size) <= 0 for size in sizes):
        raise ValueError(f"its images have {' x '.join(map(str, *sizes))} px")
    frames = {image["id"]: _image_frame(image) for image in images}
    if len(set(frames.values())) < len(frames):
        frames = {image: index for index, image in enumerate(frames)}
    entries = [entry for entry in document["annotations"] if "keypoints" in entry]
    return [_entry(entry, frames[entry["image_id"]]) for entry in entries], next(iter(sizes), None)


def _image_frame(image: dict[str, Any]) -> int:
    if "frame_id" in image:
        return int(image["frame_id"])
    return _frame_number(image["file_name"] if re.search(r"\d", str(image.get("file_name", ""))) else image["id"])


def _entry(entry: dict[str, Any], frame: int) -> _Detection:
    person = entry.get("track_id", entry.get("idx"))
    while isinstance(person, list):  # AlphaPose writes [id, ...] after merging
        person = person[0] if person else None
    return _Detection(frame, None if person is None else int(person), _triples(entry["keypoints"]))


def _folder(path: Path) -> tuple[list[_Detection], tuple[int, int] | None]:
    files = sorted(path.glob("*.json"))
    if not files:
        raise ValueError("the folder contains no .json file")
    return [detections for file in files for detections in _frame_file(file)], None


def _frame_file(file: Path) -> Iterator[_Detection]:
    try:
        document = _load(file)
        frame = _frame_number(file.name.removesuffix(".json").removesuffix("_keypoints"))
        people = document["people"] if "people" in document else document["bodies"]
        for person in people:
            person_id = person.get("person_id", [-1])
            number = int(person_id[0] if isinstance(person_id, list) else person_id)
            values = person["pose_keypoints_2d"] if "pose_keypoints_2d" in person else person["joints"]
            yield _Detection(frame, None if number < 0 else number, _triples(values))
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        detail = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ValueError(f"{file.name}: {detail}") from error


def _load(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"invalid JSON ({error})") from error
    except OSError as error:
        raise PoseError(f"{file}: {error.strerror or error}") from error


def _frame_number(name: int | str) -> int:
    """Return the last number in a name, such as 12 for 12, "12.jpg" and "clip_000012"."""
    if isinstance(name, int):
        return name
    numbers = re.findall(r"\d+", re.sub(r"\.[A-Za-z]\w*$", "", str(name)))
    if not numbers:
        raise ValueError(f"{name!r} has no frame number")
    return int(numbers[-1])


def _triples(values: Any) -> NDArray[np.float64]:
    points = np.asarray(values, np.float64)
    if points.ndim != 1 or len(points) % 3 or len(points) // 3 not in LAYOUTS:
        known = ", ".join(map(str, LAYOUTS))
        raise ValueError(f"keypoints should be x, y, score of {known} joints, one after the other; got {points.shape}")
    return points.reshape(-1, 3)


def _by_person(path: Path, detections: list[_Detection]) -> dict[int, list[_Detection]]:
    people: dict[int, list[_Detection]] = {}
    known = all(one.person is not None for one in detections)
    gap_frames = 0
    for one in detections:
        people.setdefault(one.person if known and one.person is not None else 1, []).append(one)
    for person, part in people.items():
        frames = [one.frame for one in part]
        duplicate = (
            next((frame for frame in frames if frames.count(frame) > 1), None)
            if len(set(frames)) < len(frames)
            else None
        )
        if duplicate is not None:
            subject = f"person {person}" if known else "several people without ids"
            raise PoseError(
                f"{path}: {subject} in frame {duplicate}; one person needs one id (track_id, idx or person_id)"
            )
        gap_frames += max(frames) - min(frames) + 1 - len(frames)
        if gap_frames > MAX_GAP_FRAMES:
            raise PoseError(
                f"{path}: {gap_frames} frames are missing; at most {MAX_GAP_FRAMES} are filled. "
                f"Are the image ids of a person, {min(frames)} to {max(frames)}, frame numbers?"
            )
    return dict(sorted(people.items()))


def _sequence(path: Path, detections: list[_Detection], fps: float, size: tuple[int, int]) -> Sequence2D:
    counts = {len(detection.points) for detection in detections}
    if len(counts) > 1:
        raise PoseError(f"{path}: the number of joints changes between frames ({', '.join(map(str, sorted(counts)))})")
    skeleton, rows = LAYOUTS[counts.pop()]
    first = min(detection.frame for detection in detections)
    length = max(detection.frame for detection in detections) - first + 1
    keypoints, scores = np.zeros((length, len(rows), 2), np.float32), np.zeros((length, len(rows)), np.float32)
    for detection in detections:
        points = detection.points[rows]
        keypoints[detection.frame - first], scores[detection.frame - first] = points[:, :2], points[:, 2]
    scores = _as_scores(scores)
    undetected = ~np.isfinite(keypoints).all(axis=2) | (keypoints == 0).all(axis=2) | ~np.isfinite(scores)
    scores[undetected] = 0
    keypoints[scores == 0] = 0
    return Sequence2D(keypoints, scores, (first + np.arange(length)) / fps, Camera.of(size), skeleton)


def _as_scores(values: F32) -> F32:
    """Convert the third number of keypoints to scores: of COCO's flags 0 becomes 0, 1 and 2 become 1."""
    flags = np.isin(values, (0, 1, 2)).all()
    scores: F32 = (values > 0).astype(np.float32) if flags else np.clip(values, 0, 1)
    return scores
