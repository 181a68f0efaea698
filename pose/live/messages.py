"""Conversion of live poses to JSON messages, one per person and frame.

The schema is `messages.schema.json` beside this module; docs/reference/live-messages.md describes the keys. `VERSION`
must be increased for incompatible changes.
"""

import time
from pathlib import Path

from pose.body.skeleton import NAMES
from pose.live.result import LiveResult
from pose.live.rigid import RigidBodies
from pose.results import WorldInfo
from pose.results.json import compact_json, people_json

FORMAT = "pose-live"
VERSION = 2
SCHEMA_PATH = Path(__file__).with_name("messages.schema.json")


def messages(live: LiveResult, bodies: RigidBodies | None = None) -> list[str]:
    """Return the JSON messages of a result: a `pose` message for each person, or one `nobody` message.

    With `bodies`, the messages of people with finite poses have the rotations of the bones.

    If the lifter refines poses, each frame has a second, refined result some frames later. The key `final` is true in
    the messages of the last result of a frame.
    """
    result = live.result
    head: dict[str, object] = {
        "format": FORMAT, "version": VERSION, "frame": result.index, "time": round(result.time, 6),
        "final": live.final, "clock": round(clock(live.captured), 6), "latency_ms": round(1000 * live.latency, 1),
        "size": live.size, "ids": result.people.ids.tolist(),
    }  # fmt: skip
    if live.motion:
        head["camera_motion"] = live.motion
    if live.world is not None:
        head["gravity"] = _gravity(live.world)
    people = people_json(result)
    if not people:
        return [compact_json({"type": "nobody", **head})]
    head |= {"keypoints_skeleton": live.skeleton.name, "joints3d_skeleton": "h36m17"}
    numbers = result.people.ids.tolist()
    bones = {} if bodies is None else _bones(live, bodies)
    return [
        compact_json(
            {
                "type": "pose",
                **head,
                **person,
                **_repetitions(live, number),
                **_height(live.world, number),
                **bones.get(row, {}),
            }
        )
        for row, (person, number) in enumerate(zip(people, numbers, strict=True))
    ]


def _bones(live: LiveResult, bodies: RigidBodies) -> dict[int, dict[str, object]]:
    """Return the message keys of the rigid skeletons by index of the person in the frame."""
    rigid = bodies.of(live)
    parts = zip(rigid.rows.tolist(), rigid.motion.root, rigid.offsets, rigid.motion.quaternions, strict=True)
    return {
        row: {
            "bones_space": rigid.space, "bones": list(NAMES), "bone_root": root.round(4).tolist(),
            "bone_offsets": offsets.round(4).tolist(), "bone_rotations": rotations.round(5).tolist(),
        }
        for row, root, offsets, rotations in parts
    }  # fmt: skip


def _repetitions(live: LiveResult, number: int) -> dict[str, object]:
    """Return the message keys of the repetition count of a person; empty without a count."""
    count = live.counts.get(number)
    return {} if count is None else {"repetitions": {"movement": count.movement, "count": count.count}}


def _gravity(info: WorldInfo) -> dict[str, object]:
    """Return the message keys of the direction of gravity and the floor."""
    known = info.to_dict()
    return {key: known[key] for key in ("found_by", "confidence", "rotation", "floor")}


def _height(info: WorldInfo | None, number: int) -> dict[str, object]:
    """Return the message keys of the body height of a person; empty without world coordinates."""
    if info is None:
        return {}
    height, sigma = info.heights.get(number, (None, None))
    if height is None or sigma is None:
        return {"height": None, "height_sigma": None}
    return {"height": round(height, 3), "height_sigma": round(sigma, 3)}


def clock(monotonic: float) -> float:
    """Convert a time of the clock `time.monotonic` to Unix time in s."""
    return time.time() - (time.monotonic() - monotonic)
