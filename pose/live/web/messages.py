"""Messages between page and server, version 1 of the protocol. docs/reference/web-protocol.md lists them."""

import json
import math
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from pose.lifting.repair.person import with_lifted_sides
from pose.live import LiveResult, LiveStatus
from pose.live.web.bodies import EncodedShape, PageBodies
from pose.live.web.recording import FinishedRecording, RunningRecording
from pose.structures.colours import drawing_settings, edge_side
from pose.structures.skeletons import Skeleton
from pose.utils.json_values import Json
from pose.view.overlay import thickness
from pose.world.upright import Upright

VERSION = 1
MAX_TEXT_CHARS = 4096  # maximum length of a text message from the page
MAX_IMAGE_BYTES = 1 << 20  # maximum size of an image from the page
MAX_SIDE_PX = 1920  # maximum side of an image from the page
SENT_SIDE_PX = 640  # maximum side to which the page scales its images
MAX_UNANSWERED = 2  # maximum in either direction; the page may send more images with a look-ahead lifter
_STAMP = struct.Struct("<d")
MAX_MESSAGE_BYTES = MAX_IMAGE_BYTES + _STAMP.size  # maximum size of a message from the page


class ProtocolError(Exception):
    """A violation of the protocol by the page. The text is shown to the user."""


def hello(
    mode: str, source: str, skeleton: Skeleton, *, lookahead: int, mirror: bool, replay: bool = False, mesh: Json = None
) -> str:
    """Return the first message of a connection; mode is "camera" (the page's) or "source" (the server's)."""
    return _text(
        "hello",
        version=VERSION,
        mode=mode,
        source=source,
        mirror=mirror,
        replay=replay,
        joints=[
            {"name": name, "side": skeleton.side(joint), **_thick(name)} for joint, name in enumerate(skeleton.names)
        ],
        edges=[_edge(skeleton, a, b) | _thick(skeleton.names[a], skeleton.names[b]) for a, b in skeleton.edges],
        **drawing_settings(),
        mesh=mesh,
        limits={
            "bytes": MAX_IMAGE_BYTES,
            "longest": MAX_SIDE_PX,
            "side": SENT_SIDE_PX,
            "most": max_unanswered_images(lookahead),
        },
    )


def max_unanswered_images(lookahead: int) -> int:
    """Return how many images the page may send before an answer; a lifter with look-ahead answers late."""
    return MAX_UNANSWERED + lookahead


def _edge(skeleton: Skeleton, a: int, b: int) -> dict[str, Json]:
    return {"ends": [a, b], "side": edge_side(skeleton, a, b)}


def _thick(*names: str) -> dict[str, float]:
    return {"thick": max(thickness(name) for name in names)}


def result(live: LiveResult, upright: Upright, scale: float = 1.0, bodies: PageBodies | None = None) -> str:
    """Return the message with the people of one frame; left and right of 2D as used for lifting."""
    people, poses = live.result.people, live.result.poses
    known = np.isfinite(poses.joints).all(axis=(1, 2)) & np.isfinite(poses.root).all(axis=1)
    rows = np.flatnonzero(known)
    placed = upright.place(live.result, rows)
    figures = {} if bodies is None else bodies.of(live, rows.tolist(), placed)
    stages = dict(zip(rows.tolist(), _rounded(placed, 3), strict=True))
    sigmas = dict(zip(rows.tolist(), _rounded(poses.sigma[rows], 0), strict=True))
    boxes = _rounded(_scaled(people.boxes, scale), 1)
    keypoints, scores = with_lifted_sides(live.result, live.skeleton)
    points = _rounded(np.concatenate([_scaled(keypoints, scale), scores[..., None]], axis=2), 2)
    return _text(
        "result",
        number=live.result.index,
        time=round(live.result.time, 4),
        captured=round(live.captured, 4),
        latency=round(live.latency, 4),
        people=[
            {
                "id": person,
                "box": boxes[row],
                "keypoints": points[row],
                "stage": stages.get(row),
                "sigma": sigmas.get(row),
                "ahead": round(ahead, 4),
                **_repetitions(live, person),
                **({"figure": figures[row]} if row in figures else {}),
            }
            for row, (person, ahead) in enumerate(zip(people.ids.tolist(), poses.ahead.tolist(), strict=True))
        ],
    )


def body(person: int, shape: EncodedShape) -> str:
    """Return the message with the shape of a person's body, sent before the first result that uses the shape."""
    return _text("body", person=person, shape=shape.version, rest=shape.rest)


def _repetitions(live: LiveResult, person: int) -> dict[str, Json]:
    """Return the member with the repetition count of a person; empty if there is no count."""
    count = live.counts.get(person)
    return {} if count is None else {"repetitions": {"movement": count.movement, "count": count.count}}


def _scaled(pixels: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Convert pixel coordinates to those of an image scaled by `scale`; (0, 0) is the centre of the first pixel."""
    return pixels if scale == 1 else ((pixels + 0.5) * scale - 0.5).astype(np.float32)


def _rounded(values: NDArray[np.float32], decimals: int) -> list[Json]:
    """Round numbers for JSON; NaN becomes None."""
    numbers = np.round(values.astype(np.float64), decimals)
    finite = np.isfinite(numbers)
    if finite.all():
        listed: list[Json] = numbers.tolist()
        return listed
    known: NDArray[np.object_] = numbers.astype(object)
    known[~finite] = None
    result: list[Json] = known.tolist()
    return result


def with_image(text: str, jpeg: bytes) -> bytes:
    """Return a binary message: the number of bytes of the text (uint32, little-endian), the text in UTF-8, the JPEG."""
    head = text.encode()
    return struct.pack("<I", len(head)) + head + jpeg


def status(state: LiveStatus, recording: RunningRecording | None = None) -> str:
    """Return the message with the state of the loop and of this browser's recording. Unknown values are null."""
    values = asdict(state)
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
    running: Json = None
    if recording is not None:
        running = {"name": recording.name, "frames": recording.frames, "seconds": round(recording.seconds, 3)}
    return _text("status", **finite, recording=running)


def pong(sent: float, now: float) -> str:
    """Return the answer to a ping with its time `sent` on the page's clock; `now` is monotonic, s."""
    return _text("pong", time=sent, server=now)


def recording_started(name: str) -> str:
    """Return the message that a recording has started in the folder `name`, the prefix of its files."""
    return _text("recording", name=name)


def recorded(recording: FinishedRecording) -> str:
    """Return the message that this browser's recording is finished."""
    return _text("recorded", **_described(recording))


def not_recorded(problem: str) -> str:
    """Return the message that a recording could not be started."""
    return _text("recorded", name="", frames=0, seconds=0.0, files=[], problem=problem, expires_in=0.0)


def recordings(listed: Sequence[FinishedRecording]) -> str:
    """Return the message that lists all recordings that this browser can download."""
    return _text("recordings", recordings=[_described(kept) for kept in listed])


def _described(recording: FinishedRecording) -> dict[str, Json]:
    return {
        "name": recording.folder.name,
        "frames": recording.frames,
        "seconds": round(recording.seconds, 3),
        "problem": recording.problem,
        "expires_in": round(max(0.0, recording.expires - time.monotonic()), 1),
        "files": [
            {"name": name, "url": f"/recordings/{recording.key}/{name}", "bytes": path.stat().st_size}
            for name, path in recording.files.items()
            if path.is_file()
        ],
    }


def _text(kind: str, **values: Json) -> str:
    return json.dumps({"type": kind, **values}, separators=(",", ":"), allow_nan=False)


def parse_text(text: str) -> dict[str, Json]:
    """Parse a text message of the page: a JSON object with a `type`."""
    if len(text) > MAX_TEXT_CHARS:
        raise ProtocolError(f"longer than {MAX_TEXT_CHARS} characters")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("not JSON") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("expected an object with a type")
    return message


def number_in(message: Mapping[str, Json], key: str) -> float:
    """Return the number with the name `key` in a message."""
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise ProtocolError(f"{message['type']}: {key!r} must be a number below 1e15")
    return float(value)


def parse_image_message(data: bytes) -> tuple[float, bytes]:
    """Split an image message into the capture time, in s on the page's clock, and the JPEG."""
    if len(data) <= _STAMP.size:
        raise ProtocolError("image without content")
    (seconds,) = _STAMP.unpack_from(data)
    if not abs(seconds) < 1e12:
        raise ProtocolError("image without a valid time")
    return seconds, data[_STAMP.size :]
