"""Images of the moments that explain a person's figures: frames of the video, or drawn skeletons without it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.analysis import Analysis, Event
from pose.errors import PoseError
from pose.files import PoseTable
from pose.skeletons import H36M17
from pose.types import U8
from pose.video import open_source
from pose.view import draw
from pose.view.colours import INK, PAPER, SIDE_COLOURS, edge_side, mix

F64 = NDArray[np.float64]

SIZE = (300, 400)  # px, width and height
QUALITY = 82
MARGIN = 0.25  # of the body's size, around it
MOST = 8  # of a person
# Events that are shown, by group, and how many of each name.
SHOWN = {"gait": 1, "repetitions": 1, "jumps": 2, "sit-to-stand": 1, "ergonomics": 1}


@dataclass(frozen=True, slots=True)
class Moment:
    """An event with its image. frame: index in the video. jpeg: the image. filmed: it is from the video."""

    event: Event
    frame: int
    jpeg: bytes
    filmed: bool


def key_events(analysis: Analysis, person: int) -> list[Event]:
    """The events of a person that are shown, in the order of time; at most `MOST`."""
    chosen: list[Event] = []
    counts: dict[tuple[str, str, str], int] = {}
    own = [event for event in analysis.events if event.person == person and event.group in SHOWN]
    worst = [f for f in analysis.figures if f.person == person and f.name.endswith("largest deviation")]
    for event in sorted(own, key=lambda event: (_away(event, own), event.time)):
        if event.group == "repetitions" and not event.name.endswith(" turning point"):
            continue
        key = (event.group, event.name, event.side)
        counts[key] = counts.get(key, 0) + 1
        odd = any(figure.start <= event.time <= figure.end for figure in worst if event.group == figure.group)
        if counts[key] <= SHOWN[event.group] or odd:
            chosen.append(event)
    return sorted(chosen[:MOST], key=lambda event: event.time)


def _away(event: Event, events: list[Event]) -> float:
    """How far an event of a walk is from the middle of the walk, s, so that whole steps come first; else 0."""
    if event.group != "gait":
        return 0.0
    times = [one.time for one in events if one.group == "gait"]
    return abs(event.time - (min(times) + max(times)) / 2)


def moments(table: PoseTable, events: Iterable[Event], video: Path | None) -> list[Moment]:
    """The image of every event.

    Args:
        table: with the people of the events.
        events: in the order of time.
        video: that the result was made of; without it, or where a frame cannot be read, the skeleton alone is drawn.
    """
    found = []
    for event in events:
        rows = np.flatnonzero(table.id == event.person)
        row = int(rows[np.argmin(np.abs(table.time[rows] - event.time))])
        image = None if video is None else _frame(video, float(table.time[row]), table.fps or 30.0)
        frame = int(table.frame_index[row])
        found.append(Moment(event, frame, _drawn(table, row, image), image is not None))
    return found


def _frame(video: Path, time: float, fps: float) -> U8 | None:
    """The frame at a moment; None where it cannot be read."""
    try:
        with open_source(str(video), start=max(time - 0.5 / fps, 0.0), end=time + 1 / fps) as source:
            for frame in source:
                if abs(frame.time - time) < 0.6 / fps:
                    return frame.image
    except PoseError:
        return None
    return None


def _drawn(table: PoseTable, row: int, image: U8 | None) -> bytes:
    """JPEG of the surroundings of a person with the lifted joints on it."""
    points = _projected(table, row)
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


def _projected(table: PoseTable, row: int) -> F64:
    """(17, 2) px of the lifted joints in the image."""
    assert table.camera is not None
    places = (table.joints3d[row] + table.root[row]).astype(np.float64)
    pixels = places @ table.camera.matrix.T
    return np.asarray(pixels[:, :2] / np.maximum(pixels[:, 2:], 1e-6))


def _draw_skeleton(canvas: U8, points: F64) -> None:
    on = draw.Canvas(canvas)
    kept = np.clip(points, -draw.FAR, draw.FAR)
    for width, colours in ((7.0, False), (4.0, True)):
        for a, b in H36M17.edges:
            colour = SIDE_COLOURS[edge_side(H36M17, a, b)] if colours else INK
            draw.strokes(on, kept[None, [a, b]], colour, width)
    for side, rows in _by_side():
        draw.discs(on, kept[rows], 4.0, mix(SIDE_COLOURS[side], INK, 0.3))


def _by_side() -> Iterator[tuple[str, list[int]]]:
    for side in SIDE_COLOURS:
        yield side, [joint for joint in range(len(H36M17)) if H36M17.side(joint) == side]
