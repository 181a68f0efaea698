"""Conversion of marker trials to clips: gaps are filled, and joint centres are computed for each marker placement."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pose.errors import PoseError
from pose.structures.types import F64
from pose_datasets.markers import MARKERS, joint_centres, plausibility, rigid_bones
from pose_datasets.mocap import Clip, trial_clips
from pose_datasets.vectors import norm

_PLAUSIBLE_LEG_RANGE_M = (0.35, 1.3)  # distance from ASI to ankle
_MAX_GAP_S = 0.1  # longer gaps are not interpolated
_MAX_PLACEMENT_CHANGE_M = 0.008  # distances of head markers vary by less than 1 mm within one placement

# Rigid groups of markers: missing ones are reconstructed from at least three others.
_RIGID_GROUPS = (
    ("LFHD", "RFHD", "LBHD", "RBHD"),
    ("LASI", "RASI", "LPSI", "RPSI"),
    ("C7", "T10", "CLAV", "STRN", "RBAK"),
)


@dataclass(frozen=True, slots=True)
class MarkerTrial:
    """One recording of the markers of a person."""

    subject: str  # name of the subject, such as "uiprmd-s01"
    name: str  # name of the recording
    markers: F64  # (T, 39, 3) m, y up, in the order of `markers.MARKERS`, NaN where not detected
    fps: float  # frame rate, frames/s


def marker_clips(trials: Sequence[MarkerTrial], log: Callable[[str], None] = lambda line: None) -> list[Clip]:
    """Return the joint centres of recordings, cut at gaps of more than 0.1 s, as clips in their order."""
    placements: list[list[MarkerTrial]] = []
    for trial in trials:
        placement = next((p for p in placements if _same_placement(p[0], trial)), None)
        if placement is None:
            placements.append(placement := [])
        placement.append(trial)
    points: dict[int, F64] = {}
    for placement in placements:
        whole = fill_rigid(np.concatenate([trial.markers for trial in placement]))
        ends = np.cumsum([len(trial.markers) for trial in placement])
        filled = [bridge(p, t.fps) for p, t in zip(np.split(whole, ends[:-1]), placement, strict=True)]
        whole = np.concatenate(filled)
        centres = joint_centres(whole, rigid=False)
        if np.isfinite(centres).any():
            log(f"{placement[0].subject}, {len(placement)} recordings: {plausibility(whole, centres)}")
            centres = rigid_bones(centres)
        points |= {id(trial): p for trial, p in zip(placement, np.split(centres, ends[:-1]), strict=True)}
    return [clip for t in trials for clip in trial_clips(t.subject, t.name, points[id(t)], t.fps)]


def require_person(markers: F64, source: str) -> None:
    """Check that the leg lengths between markers (T, 39, 3) m are plausible for a person."""
    hip, knee, ankle = (markers[:, MARKERS.index(name)] for name in ("LASI", "LKNE", "LANK"))
    legs = norm(hip - knee) + norm(knee - ankle)
    legs = legs[np.isfinite(legs)]
    if len(legs) and not _PLAUSIBLE_LEG_RANGE_M[0] < (leg := float(np.median(legs))) < _PLAUSIBLE_LEG_RANGE_M[1]:
        raise PoseError(f"{source}: the distance of LASI and LANK is {leg:.3g} m; check the unit and the marker names")


def _same_placement(a: MarkerTrial, b: MarkerTrial) -> bool:
    if a.subject != b.subject:
        return False
    changes = []
    for front, back in (("LFHD", "LBHD"), ("RFHD", "RBHD")):
        i, j = MARKERS.index(front), MARKERS.index(back)
        depths = [norm(t.markers[:, i] - t.markers[:, j]) for t in (a, b)]
        seen = [depth[np.isfinite(depth)] for depth in depths]
        if all(len(depth) for depth in seen):
            changes.append(abs(np.median(seen[0]) - np.median(seen[1])))
    return not changes or max(changes) < _MAX_PLACEMENT_CHANGE_M


def fill_rigid(markers: F64) -> F64:
    """Return markers (T, 39, 3) m with missing ones of head, pelvis and trunk reconstructed from their segment."""
    # The shape of a segment is its mean shape in complete frames. Reconstruction needs at least three other markers;
    # without, markers stay NaN.
    markers = markers.copy()
    for names in _RIGID_GROUPS:
        index = [i for i in map(MARKERS.index, names) if np.isfinite(markers[:, i]).any()]
        if len(index) < 4:
            continue
        segment = markers[:, index]
        seen = np.asarray(np.isfinite(segment).all(axis=-1))
        complete = np.asarray(seen.all(axis=1))
        if not complete.any():
            continue
        shape = _mean_shape(segment[complete])
        for pattern in np.unique(seen[~complete & (seen.sum(axis=1) >= 3)], axis=0):
            frames = np.flatnonzero((seen == pattern).all(axis=1))
            turn, place = _fit(shape[pattern], segment[frames][:, pattern])
            placed = shape @ np.swapaxes(turn, -1, -2) + place[:, None]
            for k in np.flatnonzero(~pattern):
                markers[frames, index[k]] = placed[:, k]
    return markers


def _mean_shape(segment: F64) -> F64:
    """Compute the mean shape (n, 3) m of one segment (T, n, 3) m after alignment of the frames."""
    shape = segment[0] - segment[0].mean(axis=0)
    for _ in range(2):
        turn, place = _fit(shape, segment)
        shape = ((segment - place[:, None]) @ turn).mean(axis=0)
    result: F64 = shape
    return result


def _fit(shape: F64, segment: F64) -> tuple[F64, F64]:
    """Fit `shape` (n, 3) to `segment` (T, n, 3) by rotations (T, 3, 3) and translations (T, 3) (Kabsch)."""
    centre, place = shape.mean(axis=0), segment.mean(axis=1)
    u, _, vt = np.linalg.svd(np.swapaxes(segment - place[:, None], -1, -2) @ (shape - centre))
    sign = np.ones((len(u), 1, 3))
    sign[:, 0, 2] = np.linalg.det(u @ vt)
    turn = (u * sign) @ vt
    return turn, place - turn @ centre


def bridge(markers: F64, fps: float) -> F64:
    """Interpolate gaps of markers (T, 39, 3) m of up to 0.1 s, but not at the ends."""
    markers = markers.copy()
    for points in np.swapaxes(markers, 0, 1):
        seen = np.flatnonzero(np.isfinite(points).all(axis=-1))
        for before in np.flatnonzero((np.diff(seen) > 1) & (np.diff(seen) <= _MAX_GAP_S * fps + 1)):
            first, last = seen[before], seen[before + 1]
            share = (np.arange(first + 1, last) - first)[:, None] / (last - first)
            points[first + 1 : last] = (1 - share) * points[first] + share * points[last]
    return markers
