"""GLB (binary glTF 2.0): everybody in one scene, as skinned stick figures with one animation.

Metres, y up. A person has a node of their own, whose scale is 0 while they are not there (glTF cannot hide), and under
it the joints. Programs make bones of joints only where a mesh hangs on them, hence the sticks. Source: Khronos Group,
glTF 2.0 Specification, 2021.
"""

import json
import struct
from pathlib import Path
from typing import IO, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from pose.export.format import Notes, SceneFormat
from pose.export.motions import Bones
from pose.export.rotations import same_sign
from pose.export.skeleton import LEAVES, NAMES, PARENTS, Body
from pose.export.tracks import Recording, Track
from pose.system.json_values import Json
from pose.system.whole_file import whole_file
from pose.view.colours import person_colour

F64 = NDArray[np.float64]

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

    def __init__(self, track: Track, start: float, buffer: _Buffer) -> None:
        self.track, self.bones = track, Bones(track)
        body = self.bones.body
        self.rest = _rest_places(body)
        vertices, joints, triangles = _sticks(body, self.rest)
        matrices = np.tile(np.eye(4), (len(NAMES), 1, 1))
        matrices[:, :3, 3] = -self.rest
        self.times = (track.times[track.known] - start).astype(np.float32)
        self.shown_at, self.shown = _presence(track, start)
        slots = np.zeros((len(joints), 4), np.uint8)
        slots[:, 0] = joints
        weights = np.zeros((len(joints), 4), np.float32)
        weights[:, 0] = 1
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

        self.positions = keep_with_range(vertices, "VEC3", _VERTICES)
        self.joints = keep(slots, "VEC4", _UINT8, _VERTICES)
        self.weights = keep(weights, "VEC4", target=_VERTICES)
        self.indices = keep(triangles, "SCALAR", _UINT16, _INDICES)
        self.matrices = keep(matrices.transpose(0, 2, 1).astype(np.float32), "MAT4")  # column after column
        self.input = keep_with_range(self.times, "SCALAR")
        self.shown_input = keep_with_range(self.shown_at, "SCALAR")
        self.scales = keep(np.repeat(self.shown[:, None], 3, axis=1), "VEC3")
        self.roots = buffer.add(len(self.times), "VEC3")
        self.turns = [buffer.add(len(self.times), "VEC4") for _ in NAMES]


def write(recording: Recording, people: list[int], target: Path) -> Notes:
    start = float(recording.timeline.times[0])
    buffer = _Buffer()
    tracks = [recording.track(person, recording.timeline) for person in people]
    figures = [_Figure(track, start, buffer) for track in tracks if track is not None]
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
    notes = [f"person {figure.track.person}: {figure.bones.distance_note()}" for figure in figures]
    away = sum(len(figure.track.gaps) > 0 for figure in figures)
    hidden_note = [f"{away} of {len(figures)} people are hidden (scale 0) in their gaps"] if away else []
    return ["metres; y up; 0 s is the start of the result", *notes, *hidden_note]


def _write_figure(file: IO[bytes], begin: int, figure: _Figure, buffer: _Buffer) -> None:
    for accessor, values in figure.fixed.items():
        file.seek(begin + buffer.offset(accessor))
        file.write(np.ascontiguousarray(values).tobytes())
    done, previous = 0, None
    for span, motion in figure.bones.spans():
        turns = same_sign(motion.turns[span.known], previous)
        if not len(turns):
            continue
        previous = turns[-1]
        columns = [(figure.roots, motion.root[span.known])]
        columns += [(place, turns[:, joint][:, _TURN_ORDER]) for joint, place in enumerate(figure.turns)]
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
        person = f"person{figure.track.person}"
        top = len(nodes)
        nodes.append({"name": person, "children": [top + 1]})
        for joint, name in enumerate(NAMES):
            place = figure.rest[joint] if joint == 0 else figure.bones.body.offsets[joint]
            unique = name if len(figures) == 1 else f"{person}_{name}"  # readers find bones by name
            node: dict[str, Json] = {"name": unique, "translation": place.tolist()}
            if children := [top + 1 + child for child, parent in enumerate(PARENTS) if parent == joint]:
                node["children"] = children
            nodes.append(node)
            animate(top + 1 + joint, "rotation", figure.input, figure.turns[joint])
        animate(top + 1, "translation", figure.input, figure.roots)
        animate(top, "scale", figure.shown_input, figure.scales, "STEP")
        nodes.append({"name": f"{person}_body", "mesh": number, "skin": number})
        scene += [top, len(nodes) - 1]
        joints = list(range(top + 1, top + 1 + len(NAMES)))
        skins.append({"name": person, "inverseBindMatrices": figure.matrices, "skeleton": top + 1, "joints": joints})
        attributes = {"POSITION": figure.positions, "JOINTS_0": figure.joints, "WEIGHTS_0": figure.weights}
        meshes.append({"primitives": [{"attributes": attributes, "indices": figure.indices, "material": number}]})
        colour = [(value / 255) ** 2.2 for value in person_colour(figure.track.person)]
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


def _presence(track: Track, start: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """When the person comes and goes: times (K,) s, and 1 or 0 from each on."""
    recording = track.recording
    steps: list[tuple[float, float]] = [(0.0, 0.0)] if track.times[0] > start else []
    steps.append((float(track.times[0]) - start, 1.0))
    for first, last in track.gaps:
        steps += [(float(track.times[first]) - start, 0.0), (float(track.times[last + 1]) - start, 1.0)]
    later = recording.timeline.times[track.first + len(track) :]
    if len(later):
        steps.append((float(later[0]) - start, 0.0))
    times, shown = np.array(steps, np.float32).T
    return times, shown


def _rest_places(body: Body) -> F64:
    """(17, 3) m of the T-pose, its ankles on the ground."""
    places = np.zeros((len(NAMES), 3))
    for joint, parent in enumerate(PARENTS[1:], start=1):
        places[joint] = places[parent] + body.offsets[joint]
    places[:, 1] -= places[:, 1].min()
    return places


def _sticks(body: Body, rest: F64) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.uint16]]:
    """A slim octahedron for each bone: vertices (V, 3) m, the joint that each follows (V,), triangles (F, 3)."""
    bones = [(parent, rest[parent], rest[joint]) for joint, parent in enumerate(PARENTS) if parent >= 0]
    bones += [(leaf, rest[leaf], rest[leaf] + body.tips[leaf]) for leaf in LEAVES]
    bones = [bone for bone in bones if np.linalg.norm(bone[2] - bone[1]) >= 1e-6]
    if not bones:  # all joints in one point: a skin needs a mesh all the same
        bones = [(0, rest[0], rest[0] + (0, 1e-3, 0))]
    corners = np.array([(1, 0, 2), (2, 0, 3), (3, 0, 4), (4, 0, 1), (1, 2, 5), (2, 3, 5), (3, 4, 5), (4, 1, 5)])
    vertices: list[F64] = []
    joints: list[int] = []
    triangles = []
    for joint, start, end in bones:
        along = end - start
        length = float(np.linalg.norm(along))
        along = along / length
        side = np.cross(along, np.eye(3)[np.abs(along).argmin()])
        side /= np.linalg.norm(side)
        thick = min(0.18 * length, 0.045)
        ring = [start + 0.2 * length * along + thick * turn for turn in (side, np.cross(along, side))]
        middle = start + 0.2 * length * along
        triangles.append(corners + len(joints))
        vertices += [start, ring[0], ring[1], 2 * middle - ring[0], 2 * middle - ring[1], end]
        joints += [joint] * 6
    return np.array(vertices, np.float32), np.array(joints, np.uint8), np.concatenate(triangles).astype(np.uint16)


FORMAT = SceneFormat(".glb", write)
