"""Conversion of a track to a skinned character, for file formats with meshes."""

from collections.abc import Callable, Iterator

import numpy as np

from pose.body.character.hands import HandRotations, hands_of
from pose.body.character.heads import SMOOTH_S, SeenHeads, head_corrections
from pose.body.character.model import BodyModel, Mesh, body_model
from pose.body.character.posing import joints_of, pose_character
from pose.body.character.rest import Character, make_character, vertex_normals
from pose.body.character.shape import fit_shape, lengths_of_body
from pose.body.character.sole_lock import locked, lowering, rise_of, soles_of
from pose.body.figures import Look
from pose.body.gaze import face_directions
from pose.body.motions import AnimatedSkeleton, distant_joints_text
from pose.body.rigs import bone_names, is_finger
from pose.body.skeleton import SkeletonMotion
from pose.body.soles import focal_lengths, smooth_feet, smoothed
from pose.body.space import CAMERA_SPACE, Space
from pose.body.timeline import TrackSpan
from pose.body.tracks import Track
from pose.structures.defaults import WORLD
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, I64
from pose.world.gravity import ANKLES

_HIPS = [H36M17.index(f"{side}_hip") for side in ("left", "right")]
SHAPE_NOTE = "bodies: gender, age, muscle and weight are those of an average adult, adapted to the bone lengths"


def character_of(track: Track, mesh: Mesh = "full") -> Character:
    """Fit a character, a skinned body mesh in a T-pose, to the bone lengths of a person."""
    model, body = body_model(mesh), AnimatedSkeleton(track).body
    return make_character(model, fit_shape(model, lengths_of_body(body)), body)


def moving_bones(model: BodyModel, *, fingers: bool) -> list[int]:
    """Return the indices of the animated bones: never the toes, the fingers only if `fingers` is True."""
    return [at for at, name in enumerate(model.names) if "Toe" not in name and (fingers or not is_finger(name))]


def character_look(rig: str) -> Callable[[Track], Look]:
    """Return a function that makes the skinned character of a track, with the bone names of `rig` (one of `RIGS`)."""
    names = bone_names(rig)

    def look(track: Track) -> Look:
        character = character_of(track)
        model, motion = character.model, CharacterMotion(track, character, track.space, lock=track.recording.foot_lock)
        return Look(
            track,
            [names[name] for name in model.names],
            model.names,
            model.parents.tolist(),
            character.heads,
            character.vertices.astype(np.float32),
            vertex_normals(character).astype(np.float32),
            model.bones,
            model.weights.astype(np.float32),
            model.faces,
            moving_bones(model, fingers=motion.hands),
            motion.spans,
            motion.note,
        )

    return look


class CharacterMotion:
    """Motion of a character that follows a track; rotations are zeros in frames without the person."""

    def __init__(self, track: Track, character: Character, space: Space, *, lock: bool = False) -> None:
        """Prepare the conversion of a track in `space`; `lock` holds the soles on the floor during contacts."""
        self._track, self._character, self._space = track, character, space
        self._soles = soles_of(character) if lock and space.name == WORLD else None
        self._rise: float | None = None  # m by which the body is raised to stand on the floor
        # Distances between the joints of track and character, m: one array (n, 17) per span that `spans` has yielded.
        self.distances: list[F64] = []
        self.hands = track.recording.table.hand_scores is not None  # whether the recording contains hands

    def spans(self) -> Iterator[tuple[TrackSpan, SkeletonMotion]]:
        """Yield portions of n frames of the track, and the character's bone rotations (n, B, 4)."""
        self.distances = []
        for span in self._track.spans():
            root = np.zeros((len(span.known), 3))
            quaternions = np.zeros((len(span.known), len(self._character.model.names), 4))
            if span.known.any():
                points = self._space.to_file(span.joints[span.known])
                at = span.start + np.flatnonzero(span.known)
                hands = self._hands(at) if self.hands else None
                faces = face_directions(self._track, at, self._space)
                feet = smooth_feet(self._track, at, self._space)
                times = span.times[span.known]
                points = self._on_floor(points, feet, at, times)
                posed = pose_character(self._character, points, hands, faces, feet, self._heads(at), times)
                root[span.known], quaternions[span.known] = posed.root, posed.quaternions
                self.distances.append(np.linalg.norm(joints_of(self._character, posed) - points, axis=-1))
            yield span, SkeletonMotion(root, quaternions)

    def _on_floor(self, points: F64, feet: F64, at: I64, times: F64) -> F64:
        """Return joints (n, 17, 3) that hold the soles on the floor during contacts."""
        contacts = self._track.contacts[at]
        if self._soles is None or not np.isfinite(contacts).all() or not np.abs(feet).sum(axis=(2, 3)).all():
            return points
        if self._rise is None:
            self._rise = rise_of(points, feet, contacts, self._soles)
        held = locked(points + np.array([0.0, self._rise, 0.0]), feet, contacts, times, self._soles)
        heads, index = self._character.heads, self._character.model.index
        thigh, shank = (float(np.linalg.norm(heads[index(b)] - heads[index(a)]))
                        for a, b in (("LeftUpLeg", "LeftLeg"), ("LeftLeg", "LeftFoot")))  # fmt: skip
        drop = lowering(held[:, _HIPS], held[:, ANKLES], contacts, times, (thigh, shank))
        others = np.delete(np.arange(len(H36M17)), ANKLES)
        held[:, others, 1] -= drop[:, None]
        return held

    def _hands(self, at: I64) -> HandRotations:
        hands = self._track.hands(at)
        return hands_of(self._character, self._space.to_file(hands.points))

    def _heads(self, at: I64) -> F64 | None:
        """Compute smoothed corrections (n, 3) rad of the head's rotation; None without camera or head points."""
        table, rows = self._track.recording.table, self._track.rows(at)
        if table.camera is None:
            return None
        keypoints = table.camera.undistort(table.keypoints[rows])
        seen = SeenHeads.of(table.skeleton, keypoints, table.scores[rows], focal_lengths(table, rows))
        if seen is None:
            return None
        joints, root = self._track.recording.poses(rows, in_first_camera=False)
        poses = CAMERA_SPACE.to_file((joints + root[:, None]).astype(np.float64))
        return smoothed(head_corrections(poses, seen), self._track.times[at], SMOOTH_S)

    def _lock_note(self) -> str:
        return "" if not self._rise else f", raised by {1000 * self._rise:.0f} mm so that its soles stand on the floor"

    def note(self) -> str:
        """Return a note on the character's height and distances to the tracked joints, complete after `spans`."""
        distances_mm = 1000 * np.concatenate(self.distances) if self.distances else np.zeros((1, len(H36M17)))
        height_m = self._character.vertices[:, 1].max()
        return (
            f"character of {height_m:.2f} m{self._lock_note()}; "
            f"distance to the joints: median {np.median(distances_mm):.0f} mm, "
            f"95th percentile {np.percentile(distances_mm, 95):.0f} mm{distant_joints_text(distances_mm.mean(axis=0))}"
        )
