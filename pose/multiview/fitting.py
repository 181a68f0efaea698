"""Calibration without the cameras that do not fit the others."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from pose.errors import PoseError
from pose.multiview.calibrate import Known
from pose.multiview.clocks import ClockHint
from pose.multiview.identities import merge_tracks
from pose.multiview.linking import MisfitError
from pose.multiview.rig import MAX_GOOD_RESIDUAL, Rig, find_rig
from pose.multiview.types import ViewCamera, ViewTrack, relative_cameras
from pose.multiview.videos import MIN_CAMERAS

# Maximum error of the other cameras without a calibrated one, relative to its own, to leave it out.
MAX_ERROR_RATIO = 0.4


@dataclass(frozen=True, slots=True)
class Fitting:
    """Calibration of the cameras that fit each other. The world is the frame of the first of them."""

    rig: Rig  # calibration; its notes begin with the cameras that were left out
    kept: list[int]  # indices of the cameras of `rig`, increasing


def find_fitting_rig(
    tracks: Sequence[ViewTrack],
    initial_cameras: Sequence[ViewCamera],
    names: Sequence[str],
    known: Known,
    hints: Sequence[ClockHint] = (),
) -> Fitting:
    """Find a rig as `find_rig` does, without cameras that do not fit; PoseError if less than two fit."""

    def found_with(indices: list[int]) -> Rig:
        place = {index: row for row, index in enumerate(indices)}
        return find_rig(
            [replace(track, camera=place[track.camera]) for track in tracks if track.camera in place],
            relative_cameras([initial_cameras[index] for index in indices]),
            [names[index] for index in indices],
            known,
            [
                replace(hint, first=place[hint.first], second=place[hint.second])
                for hint in hints
                if hint.first in place and hint.second in place
            ],
        )

    kept, notes = list(range(len(initial_cameras))), list[str]()
    while True:
        try:
            rig = found_with(kept)
        except MisfitError as error:
            if len(kept) <= MIN_CAMERAS:
                raise
            notes.append(f"{error}; the camera is left out")
            del kept[error.camera]
            continue
        errors = [one.relative for one in rig.accuracy]
        worst = max(range(len(kept)), key=errors.__getitem__)
        if known.poses and len(kept) > MIN_CAMERAS and errors[worst] > MAX_GOOD_RESIDUAL:
            without = [index for row, index in enumerate(kept) if row != worst]
            better = _fit(found_with, without)
            if better is not None and max(one.relative for one in better.accuracy) < MAX_ERROR_RATIO * errors[worst]:
                wrong = f"{names[kept[worst]]}: the calibration does not fit"
                notes.append(f"{wrong}; it is left out, as the others fit better without it")
                rig, kept = better, without
        return Fitting(replace(rig, notes=[*notes, *rig.notes]), kept)


class Calibrations:
    """Keeps the last calibration, for runs with the same tracks, such as those that only change names or heights."""

    def __init__(self) -> None:
        self._key = b""
        self._found: Fitting | None = None

    def find(
        self,
        tracks: Sequence[ViewTrack],
        initial_cameras: Sequence[ViewCamera],
        names: Sequence[str],
        known: Known,
        hints: Sequence[ClockHint] = (),
    ) -> Fitting:
        """Find a rig as `find_fitting_rig` does; the same input is calibrated once."""
        key = _digest(tracks, initial_cameras, (names, known, hints))
        if self._found is None or key != self._key:
            found = find_fitting_rig(tracks, initial_cameras, names, known, hints)
            self._key, self._found = key, replace(found, rig=replace(found.rig, people=[]))  # frees the tracks
            return found
        kept, rig = self._found.kept, self._found.rig
        own = [replace(track, camera=kept.index(track.camera)) for track in tracks if track.camera in kept]
        rows = {(track.camera, track.number): row for row, track in enumerate(own)}
        people = [merge_tracks(own, [rows[pair] for pair in pairs]) for pairs in rig.tracks]
        return replace(self._found, rig=replace(rig, people=people))


def _digest(tracks: Sequence[ViewTrack], cameras: Sequence[ViewCamera], others: object) -> bytes:
    """Return a hash of what a calibration depends on."""
    total = hashlib.sha256(repr(others).encode())
    parts: list[ViewTrack | ViewCamera] = [*tracks, *cameras]
    for one in parts:
        for entry in fields(one):
            value = getattr(one, entry.name)
            total.update(
                np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
            )
    return total.digest()


def _fit(found_with: Callable[[list[int]], Rig], indices: list[int]) -> Rig | None:
    """Return the rig of some cameras; None if they do not fit each other."""
    try:
        return found_with(indices)
    except PoseError:
        return None
