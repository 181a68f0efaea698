"""Live poses as JSON messages, one per person and frame. docs/reference/live-messages.md describes the keys.

Increase VERSION for incompatible changes.
"""

import json
import time
from functools import lru_cache

from pose.files import WorldInfo
from pose.files.json import PeopleJson
from pose.live.counter import Count
from pose.live.result import LiveResult

FORMAT = "pose-live"
VERSION = 2

_people_json = lru_cache(maxsize=8)(PeopleJson)


def messages(live: LiveResult) -> list[str]:
    """Return a `pose` message per person of the frame, or one `nobody` message.

    With a refining lifter each frame is sent twice, the second time with `final`.
    """
    people = _people_json(len(live.skeleton))(live.result)
    width, height = live.size
    head = (
        f'"format":"{FORMAT}","version":{VERSION},"frame":{live.result.index},"time":{live.result.time:.6f},'
        f'"final":{json.dumps(live.final)},'
        f'"clock":{_clock(live.captured):.6f},"latency_ms":{1000 * live.latency:.1f},'
        f'"size":[{width},{height}],"ids":{json.dumps(live.result.people.ids.tolist(), separators=(",", ":"))}'
    )
    if live.motion:
        head += f',"camera_motion":"{live.motion}"'
    numbers = live.result.people.ids.tolist()
    people = [text[:-1] + _repetitions(live.counts.get(number)) for text, number in zip(people, numbers, strict=True)]
    if live.world is not None:
        head += f',"gravity":{_gravity(live.world)}'
        people = [text[:-1] + _height(live.world, number) for text, number in zip(people, numbers, strict=True)]
    if not people:
        return [f'{{"type":"nobody",{head}}}']
    skeletons = f'"keypoints_skeleton":"{live.skeleton.name}","joints3d_skeleton":"h36m17"'
    return [f'{{"type":"pose",{head},{skeletons},{person[1:]}' for person in people]


def _repetitions(count: Count | None) -> str:
    """The end of the message of a person who repeats a movement."""
    if count is None:
        return "}"
    return f',"repetitions":{{"movement":{json.dumps(count.movement)},"count":{count.count}}}}}'


def _gravity(info: WorldInfo) -> str:
    known = info.to_dict()
    said = {key: known[key] for key in ("found_by", "confidence", "rotation", "floor")}
    return json.dumps(said, separators=(",", ":"))


def _height(info: WorldInfo, person: int) -> str:
    """The end of the message of a person with world coordinates."""
    height, sigma = info.heights.get(person, (None, None))
    if height is None or sigma is None:
        return ',"height":null,"height_sigma":null}'
    return f',"height":{height:.3f},"height_sigma":{sigma:.3f}}}'


def _clock(monotonic: float) -> float:
    """Convert a time of `time.monotonic` to Unix time in s."""
    return time.time() - (time.monotonic() - monotonic)
