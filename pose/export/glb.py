"""GLB (binary glTF 2.0): people as skinned characters or stick figures, and the video's cameras, in one scene.

There is one animation a person, one of all cameras, and one of everything, which comes first: programs play the first.
Units are metres, with y up. In the rest pose, the y axis of every joint points along its bone, because Blender draws
bones along it; the mesh is in the T-pose. Each person has a node whose scale is 0 in frames without the person (glTF
cannot hide nodes), with the joints below it. Source: Khronos Group, glTF 2.0 Specification, 2021.
"""

import json
import struct
from pathlib import Path
from typing import IO, NotRequired, TypedDict, cast

import numpy as np

from pose.body.character.look import SHAPE_NOTE, character_look
from pose.body.figures import Look, rest_rotations, sticks
from pose.body.presence import presence
from pose.body.rigs import STICKS
from pose.body.tracks import Selection
from pose.export.format import Notes, SceneFormat
from pose.export.glb_camera import POINTER, GlbCamera, glb_camera
from pose.export.many import MAX_CHARACTERS, MAX_PEOPLE, people_with_most_frames
from pose.export.viewpoints import viewpoints
from pose.structures.colours import person_colour
from pose.structures.rotations import IDENTITY, inverse, multiply, rotate, same_sign
from pose.structures.types import F64
from pose.utils.json_values import Json
from pose.utils.whole_file import whole_file

_FLOAT, _UINT16, _UINT8 = 5126, 5123, 5121
_VERTICES, _INDICES = 34962, 34963
_WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}
_BYTES = {_FLOAT: 4, _UINT16: 2, _UINT8: 1}
_XYZW = [1, 2, 3, 0]  # glTF's quaternions are x y z w


class _Accessor(TypedDict):
    """An accessor of glTF: a typed view of the buffer."""

    bufferView: int  # index of the buffer view
    componentType: int
    count: int
    type: str  # type of the `count` elements, such as "VEC3"
    min: NotRequired[list[float]]
    max: NotRequired[list[float]]


class _Buffer:
    """The binary chunk (BIN) of the file. Space is allocated first, then filled in any order."""

    def __init__(self) -> None:
        self.size = 0
        self.views: list[dict[str, int]] = []
        self.accessors: list[_Accessor] = []
        self.fixed: dict[int, np.ndarray] = {}

    def add(self, count: int, kind: str, component: int = _FLOAT, target: int | None = None) -> int:
        """Allocate space for `count` elements and return the index of their accessor."""
        length = count * _WIDTHS[kind] * _BYTES[component]
        view = {"buffer": 0, "byteOffset": self.size, "byteLength": length}
        self.views.append(view if target is None else view | {"target": target})
        self.accessors.append(
            {"bufferView": len(self.views) - 1, "componentType": component, "count": count, "type": kind}
        )
        self.size += -(-length // 4) * 4
        return len(self.accessors) - 1

    def keep(self, values: np.ndarray, kind: str, component: int = _FLOAT, target: int | None = None) -> int:
        """Allocate space for values that are already known, store them, and return the index of their accessor."""
        accessor = self.add(values.size // _WIDTHS[kind], kind, component, target)
        self.fixed[accessor] = values
        return accessor

    def keep_with_range(self, values: np.ndarray, kind: str, target: int | None = None) -> int:
        """Store floats as `keep` does, and add their minimum and maximum to the accessor."""
        index = self.keep(values, kind, target=target)
        rows = values.reshape(-1, _WIDTHS[kind])
        accessor = self.accessors[index]
        accessor["min"], accessor["max"] = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
        return index

    def offset(self, accessor: int) -> int:
        return self.views[self.accessors[accessor]["bufferView"]]["byteOffset"]


class _Person:
    """The accessors of one person. Rotations and positions are allocated first and written later."""

    def __init__(self, look: Look, start: float, buffer: _Buffer) -> None:
        self.look, track = look, look.track
        self.rest = rest_rotations(look)
        turned_back = np.stack([rotate(self.rest, axis) for axis in np.eye(3)], axis=1)
        matrices = np.tile(np.eye(4), (len(look.names), 1, 1))
        matrices[:, :3, :3] = turned_back
        matrices[:, :3, 3] = -np.einsum("bij,bj->bi", turned_back, look.heads)
        self.times = (track.times[track.known] - start).astype(np.float32)
        self.shown_at, self.shown = presence(track, start)
        self.attributes = {
            "POSITION": buffer.keep_with_range(look.vertices, "VEC3", _VERTICES),
            "JOINTS_0": buffer.keep(look.bones, "VEC4", _UINT8, _VERTICES),
            "WEIGHTS_0": buffer.keep(look.weights, "VEC4", target=_VERTICES),
        }
        if look.normals is not None:
            self.attributes["NORMAL"] = buffer.keep(look.normals, "VEC3", target=_VERTICES)
        self.indices = buffer.keep(look.triangles, "SCALAR", _UINT16, _INDICES)
        self.matrices = buffer.keep(matrices.transpose(0, 2, 1).astype(np.float32), "MAT4")  # column-major
        self.input = buffer.keep_with_range(self.times, "SCALAR")
        self.shown_input = buffer.keep_with_range(self.shown_at, "SCALAR")
        self.scales = buffer.keep(np.repeat(self.shown[:, None], 3, axis=1), "VEC3")
        self.roots = buffer.add(len(self.times), "VEC3")
        self.quaternions = {joint: buffer.add(len(self.times), "VEC4") for joint in look.moving}

    def to_parent(self, joint: int) -> F64:
        """Return the rotation (4,) from the scene's axes to those of the joint's parent in the rest pose."""
        parent = self.look.parents[joint]
        return IDENTITY if parent < 0 else inverse(self.rest[parent])


class _Camera:
    """A camera and its accessors. An accessor is None if its quantity does not change."""

    def __init__(self, camera: GlbCamera, start: float, buffer: _Buffer) -> None:
        self.camera = camera
        self.input = self.quaternions = self.fields_of_view = self.positions = None
        if not camera.moves:
            return
        self.input = buffer.keep_with_range((camera.view.times - start).astype(np.float32), "SCALAR")
        self.quaternions = buffer.keep(camera.quaternions[:, _XYZW].astype(np.float32), "VEC4")
        if np.ptp(camera.positions, axis=0).any():
            self.positions = buffer.keep(camera.positions.astype(np.float32), "VEC3")
        if camera.zooms:
            self.fields_of_view = buffer.keep(camera.fields_of_view.astype(np.float32), "SCALAR")


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write the people with the ids `people` to the GLB file `target`, and return notes for the export summary."""
    start = float(recording.timeline.times[0])
    buffer = _Buffer()
    shown, fewer = people_with_most_frames(recording, people, MAX_PEOPLE if recording.rig == STICKS else MAX_CHARACTERS)
    tracks = [recording.track(person, recording.timeline) for person in shown]
    look_of = sticks if recording.rig == STICKS else character_look(recording.rig)
    figures = [_Person(look_of(track), start, buffer) for track in tracks if track is not None]
    cameras = [_Camera(glb_camera(view), start, buffer) for view in viewpoints(recording, recording.space)]
    text = json.dumps(_document(figures, cameras, buffer, recording), separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    with whole_file(target) as hidden, hidden.open("wb") as file:
        total = 12 + 8 + len(text) + 8 + buffer.size
        file.write(struct.pack("<4sII", b"glTF", 2, total))
        file.write(struct.pack("<I4s", len(text), b"JSON") + text)
        file.write(struct.pack("<I4s", buffer.size, b"BIN\0"))
        begin = file.tell()
        file.truncate(begin + buffer.size)  # fills the chunk with zeros, which pad the arrays
        for accessor, values in buffer.fixed.items():
            file.seek(begin + buffer.offset(accessor))
            file.write(np.ascontiguousarray(values).tobytes())
        for figure in figures:
            _write_figure(file, begin, figure, buffer)
    notes = [f"person {figure.look.track.person}: {figure.look.note()}" for figure in figures]
    notes += [] if recording.rig == STICKS or not notes else [SHAPE_NOTE]
    hidden_count = sum(len(figure.look.track.gaps) > 0 for figure in figures)
    hidden_note = (
        [f"{hidden_count} of {len(figures)} people are hidden (scale 0) in their gaps"] if hidden_count else []
    )
    seen = [note for eye in cameras if (note := eye.camera.note())]
    return ["metres; y up; 0 s is the start of the result", *fewer, *notes, *hidden_note, *seen]


def _write_figure(file: IO[bytes], begin: int, figure: _Person, buffer: _Buffer) -> None:
    done, previous = 0, None
    for span, motion in figure.look.spans():
        quaternions = same_sign(motion.quaternions[span.known], previous)
        if not len(quaternions):
            continue
        previous = quaternions[-1]
        columns = [(figure.roots, motion.root[span.known])]
        for joint, accessor in figure.quaternions.items():
            local = multiply(figure.to_parent(joint), multiply(quaternions[:, joint], figure.rest[joint]))
            columns.append((accessor, local[:, _XYZW]))
        for accessor, values in columns:
            file.seek(begin + buffer.offset(accessor) + 4 * values.shape[1] * done)
            file.write(values.astype("<f4").tobytes())
        done += len(quaternions)


class _Animation:
    """An animation, to which channels are added."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.channels: list[dict[str, Json]] = []
        self.samplers: list[dict[str, Json]] = []

    def add(self, target: dict[str, Json], times: int, values: int, interpolation: str = "LINEAR") -> None:
        self.channels.append({"sampler": len(self.samplers), "target": target})
        self.samplers.append({"input": times, "output": values, "interpolation": interpolation})

    def document(self) -> dict[str, Json]:
        return {"name": self.name, "channels": self.channels, "samplers": self.samplers}

    def move(self, node: int, path: str, times: int, values: int, interpolation: str = "LINEAR") -> None:
        self.add({"node": node, "path": path}, times, values, interpolation)


def _with_all(animations: list[_Animation]) -> list[_Animation]:
    """Return the animations that move something, after one of all: programs play the first of several."""
    moving = [animation for animation in animations if animation.channels]
    if len(moving) < 2:
        return moving
    everything = _Animation("all")
    for animation in moving:
        shift = len(everything.samplers)
        everything.channels += [{**one, "sampler": cast(int, one["sampler"]) + shift} for one in animation.channels]
        everything.samplers += animation.samplers
    return [everything, *moving]


def _document(
    figures: list[_Person], cameras: list[_Camera], buffer: _Buffer, recording: Selection
) -> dict[str, object]:
    nodes: list[dict[str, Json]] = []
    scene: list[int] = []
    animations: list[_Animation] = []
    skins, meshes, materials = [], [], []
    for number, figure in enumerate(figures):
        person = f"person{figure.look.track.person}"
        top = len(nodes)
        animations.append(_Animation(person))
        _add_joints(figure, nodes, animations[-1], "" if len(figures) == 1 else f"{person}_")
        look = figure.look
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
    animations.append(_Animation("camera"))
    for number, eye in enumerate(cameras):
        scene.append(len(nodes))
        _add_camera(eye, number, nodes, animations[-1])
    asset = {"version": "2.0", "generator": "pose-convert", "extras": {"space": recording.space.note}}
    parts = {
        "nodes": nodes,
        "cameras": [eye.camera.document() for eye in cameras],
        "skins": skins,
        "meshes": meshes,
        "materials": materials,
        "accessors": buffer.accessors,
        "bufferViews": buffer.views,
        "animations": [animation.document() for animation in _with_all(animations)],
        "buffers": [{"byteLength": buffer.size}] if buffer.size else [],
        "extensionsUsed": [POINTER] if any(eye.fields_of_view is not None for eye in cameras) else [],
    }
    document = {"asset": asset, "scene": 0, "scenes": [{"nodes": scene} if scene else {}]}
    return document | {name: part for name, part in parts.items() if part}


def _add_joints(figure: _Person, nodes: list[dict[str, Json]], animation: _Animation, prefix: str) -> None:
    """Add a person's node and joints; the prefix must be unique, because readers find bones by name."""
    look, top = figure.look, len(nodes)
    nodes.append({"name": f"person{look.track.person}", "children": [top + 1]})
    for joint, name in enumerate(look.names):
        parent = look.parents[joint]
        to_parent = figure.to_parent(joint)
        place = look.heads[joint] if joint == 0 else rotate(to_parent, look.heads[joint] - look.heads[parent])
        turn = multiply(to_parent, figure.rest[joint])[_XYZW].astype(np.float32).tolist()
        node: dict[str, Json] = {"name": f"{prefix}{name}", "translation": place.tolist(), "rotation": turn}
        if children := [top + 1 + child for child, above in enumerate(look.parents) if above == joint]:
            node["children"] = children
        nodes.append(node)
        if joint in figure.quaternions:
            animation.move(top + 1 + joint, "rotation", figure.input, figure.quaternions[joint])
    animation.move(top + 1, "translation", figure.input, figure.roots)
    animation.move(top, "scale", figure.shown_input, figure.scales, "STEP")


def _add_camera(eye: _Camera, number: int, nodes: list[dict[str, Json]], animation: _Animation) -> None:
    """Add the node of a camera, with its position in the first frame."""
    camera, node = eye.camera, len(nodes)
    position, quaternion = camera.positions[0].tolist(), camera.quaternions[0, _XYZW].tolist()
    nodes.append({"name": camera.view.name, "camera": number, "translation": position, "rotation": quaternion})
    if eye.input is None or eye.quaternions is None:
        return
    animation.move(node, "rotation", eye.input, eye.quaternions)
    if eye.positions is not None:
        animation.move(node, "translation", eye.input, eye.positions)
    if eye.fields_of_view is not None:
        pointer = {"pointer": f"/cameras/{number}/perspective/yfov"}
        animation.add({"path": "pointer", "extensions": {POINTER: pointer}}, eye.input, eye.fields_of_view)


FORMAT = SceneFormat(".glb", write, options=("rig", "foot_lock"))
