"""Lab Streaming Layer: a stream of joints for each person, and one of events.

Streams have the type MoCap with the channel meta-data that the XDF project recommends. Time stamps are the capture
times of the frames, converted from `time.monotonic` to the clock of LSL.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pose.live.links.base import Address, LinkKind
from pose.live.links.frames import LinkFrame, LinkPerson
from pose.structures.skeletons import H36M17

CHANNELS = (("x", "PositionX", "meters"), ("y", "PositionY", "meters"), ("z", "PositionZ", "meters"))
MAX_STREAMS = 16  # people with a stream; that of the person seen longest ago is closed for another
_CLOCK_INTERVAL_S = 10.0  # interval at which the offset between the clocks is measured again


class LslLink:
    """Outlets of one run."""

    trouble = ""

    def __init__(self, address: Address) -> None:
        """Open the outlet of the events."""
        import pylsl

        if not any(path.is_file() for path in _config_files()):
            with suppress(AttributeError, NotImplementedError):  # older versions print their settings to stderr
                pylsl.util.set_config_content("[log]\nlevel = -2\n")
        self._lsl: Any = pylsl
        self._outlets: dict[int, Any] = {}
        self._run = f"pose-{time.time_ns():x}"
        info = pylsl.StreamInfo(
            "pose_events", "Markers", 1, pylsl.IRREGULAR_RATE, pylsl.cf_string, f"{self._run}-events"
        )
        self._events = pylsl.StreamOutlet(info)
        self._offset, self._measured = clock_offset(pylsl.local_clock), time.monotonic()

    def send(self, frame: LinkFrame) -> None:
        """Push a sample for each person, and the events."""
        if time.monotonic() - self._measured > _CLOCK_INTERVAL_S:
            self._offset, self._measured = clock_offset(self._lsl.local_clock), time.monotonic()
        stamp = frame.captured + self._offset
        for event in frame.events:
            words = (event.kind, str(event.person), event.detail, str(event.count) if event.count else "")
            self._events.push_sample([" ".join(word for word in words if word)], stamp)
        for person in frame.people:
            outlet = self._outlets.pop(person.id, None) or self._open(person)
            self._outlets[person.id] = outlet  # the last seen person is the last one
            values = np.concatenate([person.joints, person.scores[:, None]], axis=1)
            outlet.push_sample(values.astype(np.float32).ravel().tolist(), stamp)
        for oldest in list(self._outlets)[:-MAX_STREAMS]:
            del self._outlets[oldest]

    def close(self) -> None:
        """Close the outlets."""
        self._outlets = {}
        self._events = None

    def _open(self, person: LinkPerson) -> Any:
        lsl = self._lsl
        info = lsl.StreamInfo(
            f"pose_person_{person.id}", "MoCap", 4 * len(H36M17), lsl.IRREGULAR_RATE, lsl.cf_float32,
            f"{self._run}-{person.id}",
        )  # fmt: skip
        description = info.desc()
        description.append_child("acquisition").append_child_value("manufacturer", "pose-run")
        channels = description.append_child("channels")
        for joint in H36M17.names:
            for axis, kind, unit in (*CHANNELS, ("score", "Confidence", "normalized")):
                channel = channels.append_child("channel")
                for key, value in (
                    ("label", f"{joint}_{axis}"), ("marker", joint), ("object", f"person-{person.id}"), ("type", kind),
                    ("unit", unit),
                ):  # fmt: skip
                    channel.append_child_value(key, value)
        return lsl.StreamOutlet(info)


def _config_files() -> list[Path]:
    """Return the paths at which liblsl looks for a configuration of the user, which must stay in force."""
    given = os.environ.get("LSLAPICFG")
    name = "lsl_api.cfg"
    return [Path(given or name), Path(name), Path.home() / "lsl_api" / name, Path("/etc/lsl_api", name)]


def clock_offset(local_clock: Any) -> float:
    """Return the time of `local_clock` minus that of `time.monotonic`, s, from the fastest of 20 readings."""
    best, offset = float("inf"), 0.0
    for _ in range(20):
        before = time.monotonic()
        there = float(local_clock())
        after = time.monotonic()
        if after - before < best:
            best, offset = after - before, there - (before + after) / 2
    return offset


KIND = LinkKind(LslLink, "Lab Streaming Layer", "lsl", ("pylsl",))
