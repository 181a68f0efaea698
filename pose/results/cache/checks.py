"""Validation of cache entries before use. The checks raise ValueError or TypeError for invalid content."""

from typing import TypedDict

import numpy as np

from pose.results.cache.store import Entry
from pose.results.records import PeopleRecords, PosesRecords
from pose.structures.types import Array
from pose.utils.json_types import check_type

MAX_ABS = 1e7  # largest valid absolute value, in px, m or mm


class PeopleMetadata(TypedDict):
    """Metadata of a cache entry of people in 2D; `cut_short` says that the end of the video is missing."""

    frames: int
    name: str  # name of the source
    problems: list[str]  # warnings about the source
    cut_short: str | None  # message that the end of the video is missing; None if it is complete


class PosesMetadata(TypedDict):
    """Metadata of a cache entry of 3D poses."""

    frames: int


def check_people(entry: Entry, joints: int) -> None:
    """Validate a cache entry of people in 2D, from its current file position to its end."""
    check_type(entry.metadata, PeopleMetadata)
    records, last = PeopleRecords(joints), -np.inf
    for frame in range(entry.metadata["frames"]):
        people = records.read(entry.file)
        if people.index != frame or not last < people.time < np.inf:
            raise ValueError("frames are not in order")
        if len(np.unique(people.ids)) < len(people) or (people.ids < 0).any():
            raise ValueError("invalid person ids")
        _check_numbers(people.boxes, people.keypoints, people.scores, people.box_scores)
        if people.hands is not None:
            _check_numbers(people.hands.points, people.hands.scores, people.hands.shapes)
        if people.faces is not None:
            _check_numbers(people.faces.points, people.faces.scores)
        last = people.time
    _check_end(entry)


def check_poses(entry: Entry, people: Entry, joints: int) -> None:
    """Validate a cache entry of 3D poses, from its current file position to its end."""
    check_type(entry.metadata, PosesMetadata)
    if entry.metadata["frames"] != people.metadata["frames"]:
        raise ValueError("frames are missing")
    records, of_people = PosesRecords(), PeopleRecords(joints)
    for _ in range(entry.metadata["frames"]):
        poses = records.read(entry.file)
        if len(poses) != len(of_people.read(people.file)):
            raise ValueError("poses do not match the people")
        _check_numbers(poses.joints, poses.root, poses.sigma)
    _check_end(entry)


def _check_numbers(*arrays: Array) -> None:
    if any((np.abs(array[np.isfinite(array)]) > MAX_ABS).any() for array in arrays):
        raise ValueError("numbers are out of range")


def _check_end(entry: Entry) -> None:
    if entry.file.tell() != entry.end:
        raise ValueError("unexpected data after the last frame")
