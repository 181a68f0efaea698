"""Images of the key events of a person: frames of the video, or drawn skeletons."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from pose.analysis import Analysis, Event
from pose.errors import PoseError
from pose.results import Recording
from pose.results.cameras import result_cameras
from pose.structures.colours import INK, PAPER, SIDE_COLOURS, edge_side, mix
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, U8
from pose.video import open_source
from pose.view import draw

SIZE = (300, 400)  # px, width and height
QUALITY = 82
MARGIN = 0.25  # margin around the body, in body sizes
MAX_EVENT_IMAGES = 8  # maximum images per person
MIN_INTERVAL_S = 0.5  # worst moments of RULA and REBA that are closer have one image
# Events with images, by group, and the maximum of each name.
IMAGES_PER_EVENT = {"gait": 1, "repetitions": 1, "throws": 2, "jumps": 2, "sit-to-stand": 1, "ergonomics": 1}


@dataclass(frozen=True, slots=True)
class Moment:
    """An event with its image."""

    event: Event
    frame: int  # index of the frame in the video
    jpeg: bytes  # the image as JPEG
    filmed: bool  # whether the image is from the video; otherwise it shows the skeleton alone


def key_events(analysis: Analysis, person: int) -> list[Event]:
    """Select at most `MAX_EVENT_IMAGES` events of a person for images, in the order of time."""
    chosen: list[Event] = []
    counts: dict[tuple[str, str, str], int] = {}
    person_events = [event for event in analysis.events if event.person == person and event.group in IMAGES_PER_EVENT]
    deviations = [f for f in analysis.metrics if f.person == person and f.name.endswith("largest deviation")]
    for event in sorted(person_events, key=lambda event: (_distance_from_middle(event, person_events), event.time)):
        if event.group == "repetitions" and not event.name.endswith(" turning point"):
            continue
        key = (event.group, event.name, event.side)
        counts[key] = counts.get(key, 0) + 1
        if event.group == "ergonomics" and any(
            earlier.group == event.group and abs(earlier.time - event.time) < MIN_INTERVAL_S for earlier in chosen
        ):
            continue  # the worst moments of RULA and REBA are often the same
        deviating = any(
            metric.start <= event.time <= metric.end for metric in deviations if event.group == metric.group
        )
        if counts[key] <= IMAGES_PER_EVENT[event.group] or deviating:
            chosen.append(event)
    return sorted(chosen[:MAX_EVENT_IMAGES], key=lambda event: event.time)


def _distance_from_middle(event: Event, events: list[Event]) -> float:
    """Return the distance of a walking event from the middle of the walk, s; 0 for other events."""
    # Events in the middle belong to complete steps and are preferred.
    if event.group != "gait":
        return 0.0
    times = [one.time for one in events if one.group == "gait"]
    return abs(event.time - (min(times) + max(times)) / 2)


def moments(table: Recording, events: Iterable[Event], video: Path | None) -> list[Moment]:
    """Make the image of every event, from `video` or else of the skeleton alone, of the best of several cameras."""
    found, cameras, stream = [], result_cameras(table.run), None if table.run is None else table.run.stream
    for event in events:
        rows = table.rows_of(event.person)
        row = int(rows[np.argmin(np.abs(table.time[rows] - event.time))])
        file, time, points = video, float(table.time[row]), _projected(table, row)
        if cameras:
            best = int(np.argmax([(table.seen_by[row] >> camera & 1).sum() for camera in range(len(cameras))]))
            camera = cameras[best]
            file, time = (video if best == 0 and video else camera.file), camera.own_time(time)
            points = camera.project((table.joints3d[row] + table.root[row]).astype(np.float64))
        image = None if file is None else _frame(file, time, table.fps or 30.0, stream)
        frame = int(table.frame_index[row])
        found.append(Moment(event, frame, _drawn(points, image), image is not None))
    return found


def _frame(video: Path, time: float, fps: float, stream: int | None) -> U8 | None:
    """Return the frame at a time; None if it cannot be read."""
    try:
        with open_source(str(video), start=max(time - 0.5 / fps, 0.0), end=time + 1 / fps, stream=stream) as source:
            for frame in source:
                if abs(frame.time - time) < 0.6 / fps:
                    return frame.image
    except PoseError:
        return None
    return None


def _drawn(points: F64, image: U8 | None) -> bytes:
    """Draw a person's joints (17, 2) px on the image around them, or without an image, and return a JPEG."""
    low, high = points.min(axis=0), points.max(axis=0)
    height = max(float(np.max((high - low) * (SIZE[1] / SIZE[0], 1.0))) * (1 + 2 * MARGIN), 8.0)
    scale = SIZE[1] / height
    corner = (low + high) / 2 - np.array(SIZE) / scale / 2
    matrix = np.array([[scale, 0, -scale * corner[0]], [0, scale, -scale * corner[1]]])
    canvas = np.full((SIZE[1], SIZE[0], 3), PAPER, np.uint8)
    if image is not None:
        canvas = np.asarray(cv2.warpAffine(image, matrix, SIZE, flags=cv2.INTER_AREA, borderValue=PAPER), np.uint8)
    _draw_skeleton(canvas, (points - corner) * scale)
    done, data = cv2.imencode(".jpg", canvas[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    assert done
    return data.tobytes()


def _projected(table: Recording, row: int) -> F64:
    """Project the lifted joints to the image, (17, 2) px."""
    assert table.camera is not None
    places = (table.joints3d[row] + table.root[row]).astype(np.float64)
    places[:, 2] = np.maximum(places[:, 2], 1e-6)
    return table.camera.project(places)


def _draw_skeleton(canvas: U8, points: F64) -> None:
    on = draw.Canvas(canvas)
    kept = np.clip(points, -draw.MAX_COORDINATE_PX, draw.MAX_COORDINATE_PX)
    for width, colours in ((7.0, False), (4.0, True)):
        for a, b in H36M17.edges:
            colour = SIDE_COLOURS[edge_side(H36M17, a, b)] if colours else INK
            draw.strokes(on, kept[None, [a, b]], colour, width)
    for side, rows in _by_side():
        draw.discs(on, kept[rows], 4.0, mix(SIDE_COLOURS[side], INK, 0.3))


def _by_side() -> Iterator[tuple[str, list[int]]]:
    for side in SIDE_COLOURS:
        yield side, [joint for joint in range(len(H36M17)) if H36M17.side(joint) == side]
