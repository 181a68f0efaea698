"""Readers that take nothing but what the rules of a format allow. Written from the rules, not from the writers."""

import re
from dataclasses import dataclass, field

import numpy as np

TRC_KEYS = [
    *("DataRate", "CameraRate", "NumFrames", "NumMarkers", "Units"),
    *("OrigDataRate", "OrigDataStartFrame", "OrigNumFrames"),
]


@dataclass
class Table:
    """A TRC or MOT file. values: (T, columns), NaN for an empty cell."""

    head: dict[str, str]
    names: list[str]
    times: np.ndarray
    values: np.ndarray


def read_trc(text: str) -> Table:
    """The seven rules of OpenSim's TRCFileAdapter."""
    assert text.isascii()
    lines = text.split("\n")
    assert re.fullmatch(r"PathFileType\t4\t\(X/Y/Z\)\t[^\t]+\.trc", lines[0])
    assert lines[1].split("\t") == TRC_KEYS
    values = lines[2].split("\t")
    assert len(values) == 8
    head = dict(zip(TRC_KEYS, values, strict=True))
    assert head["Units"] in ("m", "mm")
    assert head["OrigDataStartFrame"] == "1"
    frames, markers = int(head["NumFrames"]), int(head["NumMarkers"])
    cells = lines[3].split("\t")
    assert cells[:2] == ["Frame#", "Time"]
    assert len(cells) == 2 + 3 * markers
    names = cells[2::3]
    assert all(names)
    assert len(set(names)) == markers
    assert not any(cells[3::3])
    assert not any(cells[4::3])
    assert lines[4].split("\t") == ["", "", *(f"{axis}{n + 1}" for n in range(markers) for axis in "XYZ")]
    body = lines[6:] if lines[5] == "" else lines[5:]
    assert body.pop() == "", "the last line ends with a line break"
    assert len(body) == frames, "a blank line would end the data"
    rows, times = [], []
    for number, line in enumerate(body, start=1):
        cells = line.split("\t")
        if not cells[-1]:
            cells.pop()  # OpenSim's reader drops an empty last cell
        assert len(cells) == 2 + 3 * markers
        assert int(cells[0]) == number
        assert "nan" not in line.lower()
        for marker in range(markers):
            xyz = cells[2 + 3 * marker : 5 + 3 * marker]
            assert all(xyz) or not any(xyz), "a marker is missing as a whole"
        times.append(float(cells[1]))
        rows.append([float(cell) if cell else np.nan for cell in cells[2:]])
    seconds = np.array(times)
    np.testing.assert_allclose(np.diff(seconds), 1 / float(head["DataRate"]), atol=2e-3)
    return Table(head, names, seconds, np.array(rows).reshape(frames, markers, 3))


def read_mot(text: str) -> Table:
    lines = text.split("\n")
    assert lines[1] == "version=1"
    head = dict(line.split("=") for line in lines[1:5])
    assert list(head) == ["version", "nRows", "nColumns", "inDegrees"]
    assert head["inDegrees"] == "yes"
    assert lines[5] == "endheader"
    names = lines[6].split("\t")
    assert names[0] == "time"
    assert len(names) == len(set(names)) == int(head["nColumns"])
    body = lines[7:]
    assert body.pop() == ""
    assert len(body) == int(head["nRows"])
    values = np.array([[float(cell) for cell in line.split("\t")] for line in body]).reshape(len(body), len(names))
    assert np.isfinite(values).all()
    assert (np.diff(values[:, 0]) > 0).all()
    return Table(head, names[1:], values[:, 0], values[:, 1:])


@dataclass
class Bvh:
    names: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    offsets: list[tuple[float, ...]] = field(default_factory=list)
    channels: list[list[str]] = field(default_factory=list)
    ends: set[int] = field(default_factory=set)
    frame_time: float = 0.0
    values: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))


def read_bvh(text: str) -> Bvh:
    assert text.isascii()
    found = Bvh()
    lines = text.split("\n")
    assert lines.pop() == ""
    assert lines[0] == "HIERARCHY"
    at, stack, leaf = 1, [], False
    while lines[at] != "MOTION":
        words = lines[at].split()
        if words[0] in ("ROOT", "JOINT"):
            assert (words[0] == "ROOT") == (not found.names)
            assert len(words) == 2, "a name without spaces"
            found.names.append(words[1])
            found.parents.append(stack[-1] if stack else -1)
        elif words == ["End", "Site"]:
            leaf = True
            found.ends.add(stack[-1])
        elif words == ["{"]:
            stack.append(stack[-1] if leaf else len(found.names) - 1)
        elif words == ["}"]:
            stack.pop()
            leaf = False
        elif words[0] == "OFFSET":
            assert len(words) == 4
            offset = tuple(float(word) for word in words[1:])
            if leaf:
                assert any(offset), "an end without length"
            else:
                found.offsets.append(offset)
        else:
            assert words[0] == "CHANNELS"
            assert int(words[1]) == len(words) - 2
            found.channels.append(words[2:])
        at += 1
    assert not stack
    assert found.offsets[0] == (0, 0, 0), "readers disagree what a root's offset means"
    assert len(found.channels[0]) == 6
    assert all(len(channels) == 3 for channels in found.channels[1:])
    assert all("position" not in channel for channels in found.channels[1:] for channel in channels)
    assert len(set(found.names)) == len(found.names)
    assert found.ends == {j for j in range(len(found.names)) if j not in found.parents}, "an End Site on every leaf"
    frames = re.fullmatch(r"Frames: (\d+)", lines[at + 1])
    step = re.fullmatch(r"Frame Time: (\d\.\d{6,})", lines[at + 2])
    rows = lines[at + 3 :]
    assert len(rows) == int(frames[1])
    found.frame_time = float(step[1])
    found.values = np.array([[float(word) for word in row.split()] for row in rows])
    assert found.values.shape[1] == sum(map(len, found.channels))
    assert np.isfinite(found.values).all()
    return found


def bvh_places(found: Bvh) -> np.ndarray:
    """(T, joints, 3) by the definition: place = parent's + parent's turn times offset, turn = Rz Rx Ry."""
    places, turns = [], []
    column = 0
    for joint, (parent, channels) in enumerate(zip(found.parents, found.channels, strict=True)):
        values = found.values[:, column : column + len(channels)]
        column += len(channels)
        local = np.tile(np.eye(3), (len(values), 1, 1))
        for channel, angle in zip(channels, values.T, strict=True):
            if channel.endswith("rotation"):
                local = local @ _about(channel[0], np.radians(angle))
        if parent < 0:
            assert channels[:3] == ["Xposition", "Yposition", "Zposition"]
            places.append(values[:, :3])
            turns.append(local)
        else:
            places.append(places[parent] + turns[parent] @ np.array(found.offsets[joint]))
            turns.append(turns[parent] @ local)
    return np.stack(places, axis=1)


def _about(axis: str, angle: np.ndarray) -> np.ndarray:
    c, s, o, i = np.cos(angle), np.sin(angle), np.zeros_like(angle), np.ones_like(angle)
    rows = {
        "X": [[i, o, o], [o, c, -s], [o, s, c]],
        "Y": [[c, o, s], [o, i, o], [-s, o, c]],
        "Z": [[c, -s, o], [s, c, o], [o, o, i]],
    }[axis]
    return np.moveaxis(np.array(rows), -1, 0)
