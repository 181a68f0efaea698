"""Conversion of people between the moving camera's frame and the static frame of its first view
(`pose.world.camera_motion`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from pose.structures.types import F64
from pose.world.camera_motion.path import CameraPath
from pose.world.scene.model import ray_frames
from pose.world.work import Person


def unzoomed(person: Person, path: CameraPath, turned: bool = False) -> Person:
    """Return a person whose distance, rays and (if `turned`) orientation are corrected for the zoom of the camera."""
    # Lifted distances and rays assume the focal length of the intrinsics. Where `path` has twice this focal length, the
    # person is twice as far away, and on another ray. A pose keeps its orientation relative to the ray.
    zooms = path.zooms[path.rows(person.times)]
    joints, root = refocused(person.joints, person.root, zooms)
    return replace(
        person, joints=joints if turned else person.joints, root=root, rays=person.rays / zooms[:, None, None]
    )


def refocused(joints: F64, root: F64, zooms: F64) -> tuple[F64, F64]:
    """Return joints (T, 17, 3) and root (T, 3) m at focal lengths (T,) relative to those of the lifting."""
    there = root * np.stack([np.ones_like(zooms), np.ones_like(zooms), zooms], axis=1)
    turn = ray_frames(there) @ np.swapaxes(ray_frames(root), -1, -2)
    return np.einsum("tij,tkj->tki", turn, joints), there


def to_static(person: Person, path: CameraPath) -> Person:
    """Transform a person from the camera axes of each frame to the static axes of the path; rays are unchanged."""
    rows = path.rows(person.times)
    rotations, root = path.rotations[rows], np.einsum("tij,tj->ti", path.rotations[rows], person.root)
    if path.positions is not None:
        root = root + path.positions[rows]
    return replace(person, joints=np.einsum("tij,tkj->tki", rotations, person.joints), root=root)


def to_cameras(points: F64, times: F64, path: CameraPath) -> F64:
    """Transform points (T, 17, 3) m from the path's axes to those of the camera in each frame."""
    rows = path.rows(times)
    if path.positions is not None:
        points = points - path.positions[rows][:, None]
    return np.asarray(np.einsum("tji,tkj->tki", path.rotations[rows], points))


class StaticPeople(Mapping[int, Person]):
    """All people of a run, transformed to the axes of the camera path when they are read."""

    def __init__(self, people: Mapping[int, Person], path: CameraPath) -> None:
        self._people, self._path = people, path

    def __getitem__(self, number: int) -> Person:
        return to_static(unzoomed(self._people[number], self._path), self._path)

    def __iter__(self) -> Iterator[int]:
        return iter(self._people)

    def __len__(self) -> int:
        return len(self._people)
