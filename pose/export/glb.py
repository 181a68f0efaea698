"""GLB (binary glTF 2.0): people as skinned characters or stick figures, and the video's cameras, in one scene.

There is one animation a person, one of all cameras, and one of everything, which comes first: programs play the first.
Units are metres, with y up. In the rest pose, the y axis of every joint points along its bone, because Blender draws
bones along it; the mesh is in the T-pose. Each person has a node whose scale is 0 in frames without the person (glTF
cannot hide nodes), with the joints below it. Source: Khronos Group, glTF 2.0 Specification, 2021.
"""

from pathlib import Path
from typing import IO

import numpy as np

from pose.body.character.look import SHAPE_NOTE, character_look
from pose.body.face_units import face_units
from pose.body.figures import Look, presence, rest_rotations, sticks
from pose.body.rigs import STICKS
from pose.body.tracks import Selection
from pose.export import glb_character
from pose.export.format import MAX_CHARACTERS, MAX_PEOPLE, Notes, SceneFormat, people_with_most_frames
from pose.export.glb_camera import POINTER, GlbCamera, add_camera, glb_camera, viewpoints
from pose.export.glb_faces import FaceMotion, add_targets
from pose.export.gltf import INDICES, UINT8, UINT16, VERTICES, XYZW, Animation, Buffer, with_all, write_glb
from pose.structures.colours import person_colour
from pose.structures.rotations import IDENTITY, inverse, multiply, rotate, same_sign
from pose.structures.types import F64
from pose.utils.json_values import Json


class _Person:
    """The accessors of one person. Rotations and positions are allocated first and written later."""

    def __init__(self, look: Look, start: float, buffer: Buffer) -> None:
        self.look, track = look, look.track
        self.rest = rest_rotations(look)
        turned_back = np.stack([rotate(self.rest, axis) for axis in np.eye(3)], axis=1)
        matrices = np.tile(np.eye(4), (len(look.names), 1, 1))
        matrices[:, :3, :3] = turned_back
        matrices[:, :3, 3] = -np.einsum("bij,bj->bi", turned_back, look.heads)
        self.times = (track.times[track.known] - start).astype(np.float32)
        self.shown_at, self.shown = presence(track, start)
        self.attributes = {
            "POSITION": buffer.keep_with_range(look.vertices, "VEC3", VERTICES),
            "JOINTS_0": buffer.keep(look.bones, "VEC4", UINT8, VERTICES),
            "WEIGHTS_0": buffer.keep(look.weights, "VEC4", target=VERTICES),
        }
        if look.normals is not None:
            self.attributes["NORMAL"] = buffer.keep(look.normals, "VEC3", target=VERTICES)
        self.indices = buffer.keep(look.triangles, "SCALAR", UINT16, INDICES)
        self.matrices = buffer.keep(matrices.transpose(0, 2, 1).astype(np.float32), "MAT4")  # column-major
        self.input = buffer.keep_with_range(self.times, "SCALAR")
        self.shown_input = buffer.keep_with_range(self.shown_at, "SCALAR")
        self.scales = buffer.keep(np.repeat(self.shown[:, None], 3, axis=1), "VEC3")
        self.roots = buffer.add(len(self.times), "VEC3")
        self.face = None if look.normals is None else FaceMotion(track, start)  # sticks have no face
        self.quaternions = {joint: buffer.add(len(self.times), "VEC4") for joint in look.moving}

    def to_parent(self, joint: int) -> F64:
        """Return the rotation (4,) from the scene's axes to those of the joint's parent in the rest pose."""
        parent = self.look.parents[joint]
        return IDENTITY if parent < 0 else inverse(self.rest[parent])


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write the people with the ids `people` to the GLB file `target`, and return notes for the export summary."""
    if recording.character is not None:
        return glb_character.write(recording, people, target)
    start = float(recording.timeline.times[0])
    buffer = Buffer()
    shown, fewer = people_with_most_frames(recording, people, MAX_PEOPLE if recording.rig == STICKS else MAX_CHARACTERS)
    tracks = [recording.track(person, recording.timeline) for person in shown]
    look_of = sticks if recording.rig == STICKS else character_look(recording.rig)
    figures = [_Person(look_of(track), start, buffer) for track in tracks if track is not None]
    cameras = [glb_camera(view) for view in viewpoints(recording, recording.space)]

    def fill(file: IO[bytes], begin: int) -> None:
        for figure in figures:
            _write_figure(file, begin, figure, buffer)

    write_glb(target, _document(figures, cameras, buffer, recording, start), buffer, fill=fill)
    notes = [f"person {figure.look.track.person}: {figure.look.note()}" for figure in figures]
    notes += [] if recording.rig == STICKS or not notes else [SHAPE_NOTE]
    faces = sum(figure.face is not None and len(figure.face) > 0 for figure in figures)
    notes += [f"faces of {faces} people move 52 morph targets"] if faces else []
    hidden_count = sum(len(figure.look.track.gaps) > 0 for figure in figures)
    hidden_note = (
        [f"{hidden_count} of {len(figures)} people are hidden (scale 0) in their gaps"] if hidden_count else []
    )
    seen = [note for eye in cameras if (note := eye.note())]
    return ["metres; y up; 0 s is the start of the result", *fewer, *notes, *hidden_note, *seen]


def _write_figure(file: IO[bytes], begin: int, figure: _Person, buffer: Buffer) -> None:
    done, previous = 0, None
    for span, motion in figure.look.spans():
        quaternions = same_sign(motion.quaternions[span.known], previous)
        if not len(quaternions):
            continue
        previous = quaternions[-1]
        columns = [(figure.roots, motion.root[span.known])]
        for joint, accessor in figure.quaternions.items():
            local = multiply(figure.to_parent(joint), multiply(quaternions[:, joint], figure.rest[joint]))
            columns.append((accessor, local[:, XYZW]))
        for accessor, values in columns:
            file.seek(begin + buffer.offset(accessor) + 4 * values.shape[1] * done)
            file.write(values.astype("<f4").tobytes())
        done += len(quaternions)


def _document(
    figures: list[_Person], cameras: list[GlbCamera], buffer: Buffer, recording: Selection, start: float
) -> dict[str, object]:
    nodes: list[dict[str, Json]] = []
    scene: list[int] = []
    animations: list[Animation] = []
    skins, meshes, materials = [], [], []
    for number, figure in enumerate(figures):
        person = f"person{figure.look.track.person}"
        top = len(nodes)
        animations.append(Animation(person))
        _add_joints(figure, nodes, animations[-1], "" if len(figures) == 1 else f"{person}_")
        look = figure.look
        nodes.append({"name": f"{person}_body", "mesh": number, "skin": number})
        scene += [top, len(nodes) - 1]
        mesh: dict[str, Json] = {
            "primitives": [{"attributes": dict(figure.attributes), "indices": figure.indices, "material": number}]
        }
        if figure.face is not None and len(figure.face):
            add_targets(buffer, mesh, len(look.vertices))
            columns = range(len(face_units().names))
            figure.face.move(animations[-1], len(nodes) - 1, buffer, columns, [0.0] * len(columns))
        joints = list(range(top + 1, top + 1 + len(look.names)))
        skins.append({"name": person, "inverseBindMatrices": figure.matrices, "skeleton": top + 1, "joints": joints})
        meshes.append(mesh)
        colour = [(value / 255) ** 2.2 for value in person_colour(figure.look.track.person)]
        surface = {"baseColorFactor": [*colour, 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.8}
        materials.append({"name": person, "pbrMetallicRoughness": surface})
    animations.append(Animation("camera"))
    eyes: list[dict[str, Json]] = []
    for eye in cameras:
        add_camera(eye, start, buffer, eyes, nodes, scene, animations[-1])
    asset = {"version": "2.0", "generator": "pose-convert", "extras": {"space": recording.space.note}}
    parts = {
        "nodes": nodes,
        "cameras": eyes,
        "skins": skins,
        "meshes": meshes,
        "materials": materials,
        "accessors": buffer.accessors,
        "bufferViews": buffer.views,
        "animations": [animation.document() for animation in with_all(animations)],
        "buffers": [{"byteLength": buffer.size}] if buffer.size else [],
        "extensionsUsed": [POINTER] if any(eye.zooms for eye in cameras) else [],
    }
    document = {"asset": asset, "scene": 0, "scenes": [{"nodes": scene} if scene else {}]}
    return document | {name: part for name, part in parts.items() if part}


def _add_joints(figure: _Person, nodes: list[dict[str, Json]], animation: Animation, prefix: str) -> None:
    """Add a person's node and joints; the prefix must be unique, because readers find bones by name."""
    look, top = figure.look, len(nodes)
    nodes.append({"name": f"person{look.track.person}", "children": [top + 1]})
    for joint, name in enumerate(look.names):
        parent = look.parents[joint]
        to_parent = figure.to_parent(joint)
        place = look.heads[joint] if joint == 0 else rotate(to_parent, look.heads[joint] - look.heads[parent])
        turn = multiply(to_parent, figure.rest[joint])[XYZW].astype(np.float32).tolist()
        node: dict[str, Json] = {"name": f"{prefix}{name}", "translation": place.tolist(), "rotation": turn}
        if children := [top + 1 + child for child, above in enumerate(look.parents) if above == joint]:
            node["children"] = children
        nodes.append(node)
        if joint in figure.quaternions:
            animation.move(top + 1 + joint, "rotation", figure.input, figure.quaternions[joint])
    animation.move(top + 1, "translation", figure.input, figure.roots)
    animation.move(top, "scale", figure.shown_input, figure.scales, "STEP")


FORMAT = SceneFormat(".glb", write, options=("rig", "foot_lock", "character", "bones"))
