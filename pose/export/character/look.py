"""A track as a skinned character, for the formats that hold a mesh."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from pose.export.character.hands import HandTurns, hands_of
from pose.export.character.model import body_model
from pose.export.character.posing import joints_of, pose_character
from pose.export.character.rest import Character, make_character
from pose.export.character.shape import fit_shape, lengths_of_body
from pose.export.figures import Look
from pose.export.gaze import face_directions
from pose.export.motions import Bones, far_joints
from pose.export.rigs import bone_names
from pose.export.skeleton import Motion
from pose.export.timeline import Span
from pose.export.tracks import Track
from pose.skeletons import H36M17
from pose.types import I64

F64 = NDArray[np.float64]

_FINGERS = ("Index", "Middle", "Ring", "Pinky", "Thumb")


def character_of(track: Track) -> Character:
    """The character with a person's bones."""
    model, body = body_model(), Bones(track).body
    return make_character(model, fit_shape(model, lengths_of_body(body)), body)


def character_look(rig: str) -> Callable[[Track], Look]:
    """What makes the `Look` of a person, with the bone names of `rig`."""
    names = bone_names(rig)

    def look(track: Track) -> Look:
        character = character_of(track)
        model, motion = character.model, _Motion(track, character)
        still = ("Toe",) if motion.hands else ("Toe", *_FINGERS)
        moving = [bone for bone, name in enumerate(model.names) if not any(word in name for word in still)]
        return Look(
            track,
            [names[name] for name in model.names],
            model.parents.tolist(),
            character.heads,
            character.vertices.astype(np.float32),
            _normals(character).astype(np.float32),
            model.bones,
            model.weights.astype(np.float32),
            model.faces,
            moving,
            motion.spans,
            motion.note,
        )

    return look


class _Motion:
    """The known frames of a track as turns of a character; the others are left as zeros, since they are not drawn."""

    def __init__(self, track: Track, character: Character) -> None:
        self._track, self._character = track, character
        self._away: list[F64] = []
        self.hands = track.recording.table.hand_scores is not None

    def spans(self) -> Iterator[tuple[Span, Motion]]:
        self._away = []
        for span in self._track.spans():
            root = np.zeros((len(span.known), 3))
            turns = np.zeros((len(span.known), len(self._character.model.names), 4))
            if span.known.any():
                points = self._track.space.to_file(span.places[span.known])
                at = span.start + np.flatnonzero(span.known)
                hands = self._hands(at) if self.hands else None
                posed = pose_character(self._character, points, hands, face_directions(self._track, at))
                root[span.known], turns[span.known] = posed.root, posed.turns
                self._away.append(np.linalg.norm(joints_of(self._character, posed) - points, axis=-1))
            yield span, Motion(root, turns)

    def _hands(self, at: I64) -> HandTurns:
        hands = self._track.hands(at)
        return hands_of(self._character, self._track.space.to_file(hands.places))

    def note(self) -> str:
        away = 1000 * np.concatenate(self._away) if self._away else np.zeros((1, len(H36M17)))
        tall = self._character.vertices[:, 1].max()
        return (
            f"character of {tall:.2f} m, {np.median(away):.0f} mm from the joints in the median, "
            f"{np.percentile(away, 95):.0f} mm at 95 %{far_joints(away.mean(axis=0))}; "
            "gender, age, muscle and weight are those of an average adult unless the bones say otherwise"
        )


def _normals(character: Character) -> F64:
    """(V, 3) of length 1, weighted by the areas of the triangles around."""
    corners = character.vertices[character.model.faces.astype(np.int64)]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    total = np.zeros_like(character.vertices)
    for corner in range(3):
        np.add.at(total, character.model.faces[:, corner], across)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return np.where(length > 0, total / np.maximum(length, 1e-12), (0.0, 1.0, 0.0))
