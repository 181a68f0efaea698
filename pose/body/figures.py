"""The appearance of people in a 3D scene: a mesh on moving bones, such as a stick figure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.body.motions import AnimatedSkeleton
from pose.body.skeleton import LEAVES, NAMES, PARENTS, Body, SkeletonMotion
from pose.body.timeline import TrackSpan
from pose.body.tracks import Track
from pose.structures import rotations
from pose.structures.types import F32, F64

_MIDDLE_M = 0.02  # m from the middle of the body up to which a bone is in it


@dataclass(frozen=True, slots=True)
class Look:
    """The skeleton, mesh and motion of a person in a 3D scene: B bones, V vertices and F triangles."""

    track: Track  # track of the person
    names: Sequence[str]  # (B,) names of the bones
    keys: Sequence[str]  # (B,) our own names of the bones, which identify them in every rig
    parents: Sequence[int]  # (B,) indices of the parent bones; -1 for the root
    heads: F64  # (B, 3) m, heads (start points) of the bones in the T-pose
    vertices: NDArray[np.float32]  # (V, 3) m in the T-pose
    normals: NDArray[np.float32] | None  # (V, 3) unit normals of the vertices, or None for flat shading
    bones: NDArray[np.uint8]  # (V, 4) indices of the bones that move each vertex
    weights: NDArray[np.float32]  # (V, 4) skin weights of those bones, with sum 1
    triangles: NDArray[np.uint16]  # (F, 3) vertex indices
    moving: Sequence[int]  # indices of the bones that rotate
    # Function that returns an iterator over the motion in portions, with rotations (n, B, 4).
    spans: Callable[[], Iterator[tuple[TrackSpan, SkeletonMotion]]]
    # Function that returns a note for the summary. It is complete once the iterator of `spans` is exhausted.
    note: Callable[[], str]


def rest_rotations(look: Look) -> F64:
    """Return rotations (B, 4) in the T-pose whose y axes point along the bones, and z axes forward or, in feet, up."""
    axes = np.zeros((len(look.names), 3, 3))
    for bone, parent in enumerate(look.parents):
        children = [child for child, above in enumerate(look.parents) if above == bone]
        middle = [child for child in children if abs(look.heads[child, 0]) < _MIDDLE_M]
        if abs(look.heads[bone, 0]) < _MIDDLE_M and middle:
            children = middle  # the spine, not the legs or the arms
        along = look.heads[children].mean(axis=0) - look.heads[bone] if children else axes[parent, 1]
        along = axes[parent, 1] if np.linalg.norm(along) < 1e-6 else along / np.linalg.norm(along)
        front = np.eye(3)[2 if abs(along[2]) < 0.7 else 1]
        across = np.cross(along, front)
        across /= np.linalg.norm(across)
        axes[bone] = across, along, np.cross(across, along)
    return rotations.from_axes(*axes.transpose(1, 0, 2))


def sticks(track: Track) -> Look:
    """Return the stick figure of a track, for programs that draw bones only if a mesh is attached."""
    bones = AnimatedSkeleton(track)
    heads = _rest_joints(bones.body)
    vertices, joints, triangles = _sticks(bones.body, heads)
    slots = np.zeros((len(joints), 4), np.uint8)
    slots[:, 0] = joints
    weights = np.zeros((len(joints), 4), np.float32)
    weights[:, 0] = 1
    moving = range(len(NAMES))
    return Look(
        track, NAMES, NAMES, PARENTS, heads, vertices, None, slots, weights, triangles, moving, bones.spans,
        bones.distance_note,
    )  # fmt: skip


def _rest_joints(body: Body) -> F64:
    """Return the joints (17, 3) m of the T-pose, with the lowest joint at y = 0."""
    joints = np.zeros((len(NAMES), 3))
    for joint, parent in enumerate(PARENTS[1:], start=1):
        joints[joint] = joints[parent] + body.offsets[joint]
    joints[:, 1] -= joints[:, 1].min()
    return joints


def _sticks(body: Body, rest: F64) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.uint16]]:
    """Return one thin octahedron per bone: vertices (V, 3) m, the joint of each vertex (V,) and triangles (F, 3)."""
    bones = [(parent, rest[parent], rest[joint]) for joint, parent in enumerate(PARENTS) if parent >= 0]
    bones += [(leaf, rest[leaf], rest[leaf] + body.tips[leaf]) for leaf in LEAVES]
    bones = [bone for bone in bones if np.linalg.norm(bone[2] - bone[1]) >= 1e-6]
    if not bones:  # all joints coincide, but the file format requires a mesh
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
        thickness = min(0.18 * length, 0.045)
        ring = [start + 0.2 * length * along + thickness * direction for direction in (side, np.cross(along, side))]
        middle = start + 0.2 * length * along
        triangles.append(corners + len(joints))
        vertices += [start, ring[0], ring[1], 2 * middle - ring[0], 2 * middle - ring[1], end]
        joints += [joint] * 6
    return np.array(vertices, np.float32), np.array(joints, np.uint8), np.concatenate(triangles).astype(np.uint16)


def presence(track: Track, start: float) -> tuple[F32, F32]:
    """Return times (K,) s after `start`, and from each on 1 if the person is present, 0 if absent."""
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
