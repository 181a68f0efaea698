"""GLB with the user's own character, which moves as the people do (`pose-convert --character`).

The file of the user is kept as it is, except for its animations: a copy of its nodes for each person, whose bones move.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from pose.body.character.look import CharacterMotion, character_of
from pose.body.character.rest import Character
from pose.body.character.retarget import Retargeted, Retargeting
from pose.body.figures import presence
from pose.body.tracks import Selection, Track
from pose.export.blender import converted
from pose.export.format import Notes
from pose.export.glb_camera import POINTER, add_camera, glb_camera, viewpoints
from pose.export.glb_faces import FaceMotion, move_faces
from pose.export.gltf import XYZW, Animation, Buffer, with_all, write_glb
from pose.export.gltf_file import RiggedFile, person_copy, read_character
from pose.structures import rotations
from pose.structures.defaults import WORLD
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

MAX_COPIES = 20  # maximum number of people with a copy of the character
_OF_ONE = ("VRM", "VRMC_vrm", "VRMC_springBone")  # extensions that describe one character by its nodes


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write people as copies of `recording.character` to a GLB file; PoseError if its bones are unknown."""
    assert recording.character is not None
    file = _read(recording.character, recording.bone_table)
    start = float(recording.timeline.times[0])
    tracks = [track for person in people if (track := recording.track(person, recording.timeline)) is not None]
    fewer = (
        [f"the first {MAX_COPIES} of {len(tracks)} people; --person chooses others"] if len(tracks) > MAX_COPIES else []
    )
    tracks = tracks[:MAX_COPIES]
    document = {key: value for key, value in file.document.items() if key != "animations"}
    buffer = Buffer(len(file.binary), *(len(document.get(name, [])) for name in ("bufferViews", "accessors")))
    nodes: list[Any] = []
    skins: list[Any] = []
    scene: list[int] = []
    animations, notes = [], []
    for track in tracks:
        prefix = f"person{track.person}_" if len(tracks) > 1 else ""
        first, moved = len(nodes), _Moved(track, file, start)
        own_nodes, own_skins = person_copy(file.document, prefix, first, len(skins))
        nodes, skins = [*nodes, *own_nodes], [*skins, *own_skins]
        animations.append(moved.animation(first, buffer))
        moving = move_faces(FaceMotion(track, start), file.document, first, animations[-1], buffer)
        scene += _wrapped(file, nodes, first, moved.shown, animations[-1], buffer)
        faces = f"; {moving} morph targets of the face" if moving else ""
        notes.append(f"person {track.person}: {moved.note}{faces}")
    animations.append(Animation("camera"))
    cameras = [glb_camera(view) for view in viewpoints(recording, recording.space)]
    for eye in cameras:
        add_camera(eye, start, buffer, document.setdefault("cameras", []), nodes, scene, animations[-1])
    if cameras and any(eye.zooms for eye in cameras):
        document["extensionsUsed"] = [*document.get("extensionsUsed", []), POINTER]
    document |= {"nodes": nodes, "skins": skins, "scene": 0, "scenes": [{"nodes": scene}]}
    document |= {"bufferViews": [*document.get("bufferViews", []), *buffer.views]}
    document |= {"accessors": [*document.get("accessors", []), *buffer.accessors]}
    document["buffers"] = [{"byteLength": buffer.size}, *document.get("buffers", [])[1:]]
    document["animations"] = [one.document() for one in with_all(animations)]
    if not skins:
        del document["skins"]
    if len(tracks) > 1:
        notes += _without_extensions(document)
    write_glb(target, document, buffer, file.binary)
    return [f"{recording.character.name} moves as each person; {file.source}", *fewer, *notes]


def _read(character: Path, table: Path | None) -> RiggedFile:
    """Read a GLB or VRM file, or an FBX file by way of Blender."""
    if character.suffix.lower() != ".fbx":
        return read_character(character, table)
    with TemporaryDirectory() as folder:
        glb = Path(folder) / "character.glb"
        converted(character, glb)
        return read_character(glb, table)


class _Moved:
    """The motion of one person on the character."""

    def __init__(self, track: Track, file: RiggedFile, start: float) -> None:
        recording = track.recording
        character = character_of(track)
        motion = CharacterMotion(track, character, track.space)
        self.rig, self.person = file.rig, track.person
        retargeting = Retargeting(character, file.rig, hands=motion.hands)
        lock = recording.foot_lock and track.space.name == WORLD
        self.times = (track.times[track.known] - start).astype(np.float32)
        self.shown = presence(track, start)
        middle = _middle(track)
        parts: list[Retargeted] = []
        for span, posed in motion.spans():
            if span.known.any():
                at = span.start + np.flatnonzero(span.known)
                contacts = track.contacts[at] if lock else None
                parts.append(_retargeted(retargeting, character, posed.root[span.known], posed.quaternions[span.known],
                                         contacts, span.times[span.known], middle))  # fmt: skip
        self.moving = parts[0].moving
        self.quaternions = rotations.same_sign(np.concatenate([part.quaternions for part in parts]))
        self.hips = np.concatenate([part.hips for part in parts])
        raised = f", raised by {1000 * retargeting.rise:.0f} mm to stand on the floor" if retargeting.rise else ""
        hands = "with hands" if motion.hands else "hands were not estimated"
        self.note = f"path scaled by {retargeting.scale:.2f}{raised}; {hands}"

    def animation(self, first: int, buffer: Buffer) -> Animation:
        """Return the animation of the nodes, which begin at index `first` of the file."""
        animation = Animation(f"person{self.person}")
        times = buffer.keep_with_range(self.times, "SCALAR")
        for at, node in enumerate(self.moving):
            values = buffer.keep(self.quaternions[:, at, XYZW].astype(np.float32), "VEC4")
            animation.move(first + node, "rotation", times, values)
        hips = buffer.keep(self.hips.astype(np.float32), "VEC3")
        animation.move(first + self.rig.bones["Hips"], "translation", times, hips)
        return animation


def _retargeted(
    retargeting: Retargeting, character: Character, root: F64, quaternions: F64, contacts: F64 | None, times: F64,
    middle: F64,
) -> Retargeted:  # fmt: skip
    """Retarget poses (T,) of our character, given as its root (T, 3) m and rotations (T, B, 4) to the parents."""
    parents, heads = character.model.parents, character.heads
    whole, places = quaternions.copy(), np.empty((*quaternions.shape[:2], 3))
    places[:, 0] = root
    for bone in range(1, len(parents)):
        above = int(parents[bone])
        whole[:, bone] = rotations.multiply(whole[:, above], quaternions[:, bone])
        places[:, bone] = places[:, above] + rotations.rotate(whole[:, above], heads[bone] - heads[above])
    index = character.model.index
    hips = (places[:, index("LeftUpLeg")] + places[:, index("RightUpLeg")]) / 2
    chest = index("Spine2")
    thorax = places[:, chest] + rotations.rotate(whole[:, chest], character.thorax - heads[chest])
    if contacts is not None and not np.isfinite(contacts).all():
        contacts = None
    return retargeting.apply(hips, whole, thorax, contacts, times, middle)


def _middle(track: Track) -> F64:
    """Return the point (3,) m around which the path is scaled: the mean position, on the floor in world coordinates."""
    places = [track.space.to_file(span.joints)[:, H36M17.index("pelvis")] for span in track.sample()]
    result: F64 = np.concatenate(places).mean(axis=0)
    return result * (1, 0, 1) if track.space.name == WORLD else result


def _wrapped(
    file: RiggedFile, nodes: list[Any], first: int, shown: tuple[np.ndarray, np.ndarray], animation: Animation,
    buffer: Buffer,
) -> list[int]:  # fmt: skip
    """Return the nodes of the scene for one copy; a node above them hides the person (scale 0) in frames without it."""
    scenes = file.document.get("scenes", [])
    roots = [first + node for node in (scenes[file.document.get("scene", 0)].get("nodes", []) if scenes else [])]
    roots = roots or [first + at for at, above in enumerate(file.rig.parents) if above < 0]
    times, visible = shown
    if visible.all():
        return roots
    bare = [node for node in roots if "skin" in nodes[node] and not nodes[node].get("children")]
    top = len(nodes)
    nodes.append({"name": animation.name, "children": [node for node in roots if node not in bare]})
    scales = buffer.keep(np.repeat(visible[:, None], 3, axis=1), "VEC3")
    animation.move(top, "scale", buffer.keep_with_range(times, "SCALAR"), scales, "STEP")
    return [*bare, top]


def _without_extensions(document: dict[str, Any]) -> list[str]:
    """Remove the extensions that describe one character, and return a note if there were any."""
    extensions = document.get("extensions", {})
    found = [name for name in _OF_ONE if name in extensions]
    if not found:
        return []
    document["extensions"] = {name: value for name, value in extensions.items() if name not in _OF_ONE}
    for key in ("extensionsUsed", "extensionsRequired"):
        if key in document:
            document[key] = [name for name in document[key] if name not in _OF_ONE] or None
    for key in [key for key, value in document.items() if not value and key.startswith("extensions")]:
        del document[key]
    return [f"without {', '.join(found)}, which describe one character; --person writes one"]
