"""GLB (binary glTF 2.0): everybody in one scene, as skinned characters or stick figures with one animation.

Metres, y up. A person has a node of their own, whose scale is 0 while they are not there (glTF cannot hide), and under
it the joints. Source: Khronos Group, glTF 2.0 Specification, 2021.
"""

import json
import struct
from pathlib import Path
from typing import IO, NotRequired, TypedDict

import numpy as np

from pose.export.character.look import character_look
from pose.export.figures import Look, sticks
from pose.export.format import Notes, SceneFormat
from pose.export.many import MOST_CHARACTERS, MOST_PEOPLE, seen_most
from pose.export.presence import presence
from pose.export.rigs import STICKS
from pose.export.rotations import same_sign
from pose.export.tracks import Recording
from pose.system.json_values import Json
from pose.system.whole_file import whole_file
from pose.view.colours import person_colour

_FLOAT, _UINT16, _UINT8 = 5126, 5123, 5121
_VERTICES, _INDICES = 34962, 34963
_WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}
_BYTES = {_FLOAT: 4, _UINT16: 2, _UINT8: 1}
_TURN_ORDER = [1, 2, 3, 0]  # glTF's quaternions are x y z w


class _Accessor(TypedDict):
    """A place in the buffer. bufferView: its number. type: of its `count` elements, such as "VEC3"."""

    bufferView: int
    componentType: int
    count: int
    type: str
    min: NotRequired[list[float]]
    max: NotRequired[list[float]]


class _Buffer:
    """The BIN chunk in the making: places are given out first, then filled in any order."""

    def __init__(self) -> None:
        self.size = 0
        self.views: list[dict[str, int]] = []
        self.accessors: list[_Accessor] = []

    def add(self, count: int, kind: str, component: int = _FLOAT, target: int | None = None) -> int:
        """Room for `count` elements; the accessor's number."""
        length = count * _WIDTHS[kind] * _BYTES[component]
        view = {"buffer": 0, "byteOffset": self.size, "byteLength": length}
        self.views.append(view if target is None else view | {"target": target})
        self.accessors.append(
            {"bufferView": len(self.views) - 1, "componentType": component, "count": count, "type": kind}
        )
        self.size += -(-length // 4) * 4
        return len(self.accessors) - 1

    def offset(self, accessor: int) -> int:
        return self.views[self.accessors[accessor]["bufferView"]]["byteOffset"]


class _Figure:
    """One person: the arrays that are known before the motion, and where the others will be."""

    def __init__(self, look: Look, start: float, buffer: _Buffer) -> None:
        self.look, track = look, look.track
        matrices = np.tile(np.eye(4), (len(look.names), 1, 1))
        matrices[:, :3, 3] = -look.heads
        self.times = (track.times[track.known] - start).astype(np.float32)
        self.shown_at, self.shown = presence(track, start)
        self.fixed: dict[int, np.ndarray] = {}

        def keep(values: np.ndarray, kind: str, component: int = _FLOAT, target: int | None = None) -> int:
            place = buffer.add(values.size // _WIDTHS[kind], kind, component, target)
            self.fixed[place] = values
            return place

        def keep_with_range(values: np.ndarray, kind: str, target: int | None = None) -> int:
            place = keep(values, kind, target=target)
            rows = values.reshape(-1, _WIDTHS[kind])
            accessor = buffer.accessors[place]
            accessor["min"], accessor["max"] = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
            return place

        self.attributes = {
            "POSITION": keep_with_range(look.vertices, "VEC3", _VERTICES),
            "JOINTS_0": keep(look.bones, "VEC4", _UINT8, _VERTICES),
            "WEIGHTS_0": keep(look.weights, "VEC4", target=_VERTICES),
        }
        if look.normals is not None:
            self.attributes["NORMAL"] = keep(look.normals, "VEC3", target=_VERTICES)
        self.indices = keep(look.triangles, "SCALAR", _UINT16, _INDICES)
        self.matrices = keep(matrices.transpose(0, 2, 1).astype(np.float32), "MAT4")  # column after column
        self.input = keep_with_range(self.times, "SCALAR")
        self.shown_input = keep_with_range(self.shown_at, "SCALAR")
        self.scales = keep(np.repeat(self.shown[:, None], 3, axis=1), "VEC3")
        self.roots = buffer.add(len(self.times), "VEC3")
        self.turns = {joint: buffer.add(len(self.times), "VEC4") for joint in look.moving}


def write(recording: Recording, people: list[int], target: Path) -> Notes:
    start = float(recording.timeline.times[0])
    buffer = _Buffer()
    shown, fewer = seen_most(recording, people, MOST_PEOPLE if recording.rig == STICKS else MOST_CHARACTERS)
    tracks = [recording.track(person, recording.timeline) for person in shown]
    look_of = sticks if recording.rig == STICKS else character_look(recording.rig)
    figures = [_Figure(look_of(track), start, buffer) for track in tracks if track is not None]
    text = json.dumps(_document(figures, buffer, recording), separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    with whole_file(target) as hidden, hidden.open("wb") as file:
        total = 12 + 8 + len(text) + 8 + buffer.size
        file.write(struct.pack("<4sII", b"glTF", 2, total))
        file.write(struct.pack("<I4s", len(text), b"JSON") + text)
        file.write(struct.pack("<I4s", buffer.size, b"BIN\0"))
        begin = file.tell()
        file.truncate(begin + buffer.size)  # zeros, also between the arrays
        for figure in figures:
            _write_figure(file, begin, figure, buffer)
    notes = [f"person {figure.look.track.person}: {figure.look.note()}" for figure in figures]
    away = sum(len(figure.look.track.gaps) > 0 for figure in figures)
    hidden_note = [f"{away} of {len(figures)} people are hidden (scale 0) in their gaps"] if away else []
    return ["metres; y up; 0 s is the start of the result", *fewer, *notes, *hidden_note]


def _write_figure(file: IO[bytes], begin: int, figure: _Figure, buffer: _Buffer) -> None:
    for accessor, values in figure.fixed.items():
        file.seek(begin + buffer.offset(accessor))
        file.write(np.ascontiguousarray(values).tobytes())
    done, previous = 0, None
    for span, motion in figure.look.spans():
        turns = same_sign(motion.turns[span.known], previous)
        if not len(turns):
            continue
        previous = turns[-1]
        columns = [(figure.roots, motion.root[span.known])]
        columns += [(place, turns[:, joint][:, _TURN_ORDER]) for joint, place in figure.turns.items()]
        for accessor, values in columns:
            file.seek(begin + buffer.offset(accessor) + 4 * values.shape[1] * done)
            file.write(values.astype("<f4").tobytes())
        done += len(turns)


def _document(figures: list[_Figure], buffer: _Buffer, recording: Recording) -> dict[str, object]:
    nodes: list[dict[str, Json]] = []
    scene: list[int] = []
    channels: list[dict[str, Json]] = []
    samplers: list[dict[str, Json]] = []
    skins, meshes, materials = [], [], []

    def animate(node: int, path: str, times: int, values: int, interpolation: str = "LINEAR") -> None:
        channels.append({"sampler": len(samplers), "target": {"node": node, "path": path}})
        samplers.append({"input": times, "output": values, "interpolation": interpolation})

    for number, figure in enumerate(figures):
        person = f"person{figure.look.track.person}"
        top = len(nodes)
        nodes.append({"name": person, "children": [top + 1]})
        look = figure.look
        for joint, name in enumerate(look.names):
            parent = look.parents[joint]
            place = look.heads[joint] if joint == 0 else look.heads[joint] - look.heads[parent]
            unique = name if len(figures) == 1 else f"{person}_{name}"  # readers find bones by name
            node: dict[str, Json] = {"name": unique, "translation": place.tolist()}
            if children := [top + 1 + child for child, above in enumerate(look.parents) if above == joint]:
                node["children"] = children
            nodes.append(node)
            if joint in figure.turns:
                animate(top + 1 + joint, "rotation", figure.input, figure.turns[joint])
        animate(top + 1, "translation", figure.input, figure.roots)
        animate(top, "scale", figure.shown_input, figure.scales, "STEP")
        nodes.append({"name": f"{person}_body", "mesh": number, "skin": number})
        scene += [top, len(nodes) - 1]
        joints = list(range(top + 1, top + 1 + len(look.names)))
        skins.append({"name": person, "inverseBindMatrices": figure.matrices, "skeleton": top + 1, "joints": joints})
        meshes.append(
            {"primitives": [{"attributes": figure.attributes, "indices": figure.indices, "material": number}]}
        )
        colour = [(value / 255) ** 2.2 for value in person_colour(figure.look.track.person)]
        surface = {"baseColorFactor": [*colour, 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.8}
        materials.append({"name": person, "pbrMetallicRoughness": surface})
    asset = {"version": "2.0", "generator": "pose-convert", "extras": {"space": recording.space.note}}
    parts = {
        "nodes": nodes,
        "skins": skins,
        "meshes": meshes,
        "materials": materials,
        "accessors": buffer.accessors,
        "bufferViews": buffer.views,
        "animations": [{"name": "motion", "channels": channels, "samplers": samplers}] if figures else [],
        "buffers": [{"byteLength": buffer.size}] if figures else [],
    }
    document = {"asset": asset, "scene": 0, "scenes": [{"nodes": scene} if scene else {}]}
    return document | {name: part for name, part in parts.items() if part}


FORMAT = SceneFormat(".glb", write)
