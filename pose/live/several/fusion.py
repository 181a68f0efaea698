"""Fusion of the newest frames of several calibrated cameras: one pose of each person at one time."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pose.live.several.calibration import Calibration
from pose.live.several.identities import Identities
from pose.live.several.sightings import Sightings
from pose.multiview.fuse import Fused, fuse_newest
from pose.multiview.observations import observe
from pose.multiview.residuals import BONE_RESIDUALS
from pose.multiview.types import ViewTrack
from pose.types import F64

INSTANTS = 4  # of the window whose last one is wanted
STEP = 1 / 30  # s between them
LONGEST_PAUSE = 0.3  # s after which a person begins anew
PAST = 0.3  # s of a track that the window needs
NEWEST = 0.15  # s; a track that ended earlier no longer counts
BONE_SECONDS = 3.0  # time constant of a person's own bone lengths, s
MOST_RATIO = 1.5  # of a person's bone length to the average one, or the reverse
FORGET = 10.0  # s after which a person's bone lengths are forgotten


@dataclass(slots=True)
class _Person:
    """State of one person.

    Attributes:
        bones: (B,) m, bone lengths.
        correction: (N, 3) m, correction of the last frame (`pose.multiview.fuse.Newest`).
        cameras: Indices of the cameras that saw the person in the last frame.
        time: Time of the last frame, s.
    """

    bones: F64
    correction: F64
    cameras: frozenset[int]
    time: float


@dataclass(frozen=True, slots=True, eq=False)
class CurrentPose:
    """The current pose of one person.

    Attributes:
        number: Id of the person, common to all cameras.
        tracks: Id of the track in each camera that sees the person.
        fused: People at one instant, in the frame of the cameras; axis C follows the indices of the sources.
    """

    number: int
    tracks: Mapping[int, int]
    fused: Fused


class Fusion:
    """Fuses people while a calibration holds."""

    def __init__(self, calibration: Calibration, sources: int) -> None:
        """
        Args:
            calibration: Calibrated cameras.
            sources: Number of sources, calibrated or not.
        """
        self.calibration = calibration
        first = calibration.cameras[calibration.first]
        self._cameras = [calibration.cameras.get(index, first) for index in range(sources)]
        self._people: dict[int, _Person] = {}

    def at(self, time: float, sightings: Mapping[int, Sightings], identities: Identities) -> list[CurrentPose]:
        """Return the fused poses of all people at one time.

        Args:
            time: Time of all poses, s.
            sightings: Observations to fuse, by index of the source.
            identities: The matching of tracks to people.
        """
        self._people = {n: one for n, one in self._people.items() if time - one.time < FORGET}
        found = []
        for number in sorted(set(identities.people.values())):
            tracks = self._tracks(time, sightings, identities.tracks_of(number))
            if tracks:
                numbers = {camera: track.number for camera, track in tracks.items()}
                found.append(CurrentPose(number, numbers, self._fuse(number, tracks, time)))
        return found

    def _tracks(
        self, time: float, sightings: Mapping[int, Sightings], keys: list[tuple[int, int]]
    ) -> dict[int, ViewTrack]:
        """Return the newest track of a person in each camera."""
        tracks: dict[int, ViewTrack] = {}
        for camera, number in keys:
            if camera not in sightings:
                continue
            own = float(self._cameras[camera].own_time(np.array(time)))
            track = sightings[camera].latest(number, own - PAST)
            if track is None or track.times[-1] < own - NEWEST:
                continue
            if camera not in tracks or track.times[-1] > tracks[camera].times[-1]:
                tracks[camera] = track
        return tracks

    def _fuse(self, number: int, tracks: Mapping[int, ViewTrack], time: float) -> Fused:
        one = self._people.get(number)
        knots = np.linspace(time - STEP * (INSTANTS - 1), time, INSTANTS)
        observed = observe(tracks, self._cameras, knots)
        bones = self.calibration.bones if one is None else one.bones
        correction = None
        if one is not None and one.cameras == tracks.keys() and 0 < time - one.time <= LONGEST_PAUSE:
            correction = one.correction
        newest = fuse_newest(observed, self._cameras, correction, bones, self.calibration.scale)
        if one is not None and len(tracks) > 1:
            bones = self._adapted(bones, newest.points, time - one.time)
        self._people[number] = _Person(bones, newest.correction, frozenset(tracks), time)
        return newest.fused

    def _adapted(self, bones: F64, points: F64, seconds: float) -> F64:
        """Return bone lengths (B,) m updated by a frame with points (N, 3) m, `seconds` after the previous frame."""
        share = min(seconds / BONE_SECONDS, 0.1)
        usual = self.calibration.bones
        measured = np.clip(BONE_RESIDUALS.measure(points[None])[0][0], usual / MOST_RATIO, usual * MOST_RATIO)
        adapted: F64 = bones + share * (measured - bones)
        return adapted
