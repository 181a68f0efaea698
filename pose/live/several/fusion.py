"""Fusion of the newest frames of several calibrated cameras to one 3D pose of each person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pose.live.several.calibration import Calibration
from pose.live.several.identities import TrackAssignment
from pose.live.several.sightings import Sightings
from pose.multiview.fuse import Fused, fuse_newest
from pose.multiview.observations import observe_people
from pose.multiview.residuals import BONE_RESIDUALS
from pose.multiview.types import CameraBatch, ViewTrack
from pose.structures.types import F64

INSTANTS = 4  # times of the fused window, of which only the last is used
STEP = 1 / 30  # interval of these times, s
MAX_PAUSE_SECONDS = 0.3  # gap for which the correction of the previous frame is used
PAST = 0.3  # duration of the part of a track that is observed, s
NEWEST = 0.15  # maximum age of the last frame of a track, s
BONE_SECONDS = 3.0  # time constant of the adaptation of bone lengths, s
MAX_BONE_RATIO = 1.5  # ratio of a person's and the average bone length
FORGET_SECONDS = 10.0  # after which the bone lengths of an unseen person are forgotten


@dataclass(slots=True)
class _Person:
    """State of the fusion of one person."""

    bones: F64  # (B,) m, bone lengths
    correction: F64  # (N, 3) m, correction of the N points in the last frame (`pose.multiview.fuse.Newest`)
    cameras: frozenset[int]  # indices of the cameras that saw the person in the last frame
    time: float  # time of the last frame, s


@dataclass(frozen=True, slots=True, eq=False)
class CurrentPose:
    """The current pose of one person."""

    # The time axis K of `fused` has length 1; joints are in the camera frame of the first calibrated camera. The axis C
    # contains all sources in order, also those that are not calibrated.

    number: int  # id of the person, common to all cameras
    tracks: Mapping[int, int]  # track id of the person in each camera that sees the person, by index of the source
    fused: Fused  # fused pose at one time, so the time axis K of its arrays has length 1


class Fusion:
    """Fusion of the poses of each person from all cameras. Create a new one for each calibration."""

    def __init__(self, calibration: Calibration, sources: int) -> None:
        """Start without people; `sources` includes sources that are not calibrated."""
        self.calibration = calibration  # calibrated cameras
        first = calibration.cameras[calibration.first]
        self._cameras = [calibration.cameras.get(index, first) for index in range(sources)]
        self._batch = CameraBatch.of(self._cameras)
        self._people: dict[int, _Person] = {}

    def at(self, time: float, sightings: Mapping[int, Sightings], identities: TrackAssignment) -> list[CurrentPose]:
        """Return the fused pose at a common time (s) of each person whom a camera saw in the last 0.15 s."""
        self._people = {n: one for n, one in self._people.items() if time - one.time < FORGET_SECONDS}
        tracks = {
            number: own
            for number in sorted(set(identities.people.values()))
            if (own := self._tracks(time, sightings, identities.tracks_of(number)))
        }
        if not tracks:
            return []
        fused = self._fuse(tracks, time)
        return [
            CurrentPose(number, {camera: track.number for camera, track in own.items()}, one)
            for (number, own), one in zip(tracks.items(), fused, strict=True)
        ]

    def _tracks(
        self, time: float, sightings: Mapping[int, Sightings], keys: list[tuple[int, int]]
    ) -> dict[int, ViewTrack]:
        """Return the newest track of a person in each camera, by camera index."""
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

    def _fuse(self, tracks: Mapping[int, Mapping[int, ViewTrack]], time: float) -> list[Fused]:
        """Fuse people, with tracks by id and camera, at one time (s), and store the state of each."""
        knots = np.linspace(time - STEP * (INSTANTS - 1), time, INSTANTS)
        before = [self._people.get(number) for number in tracks]
        corrections = [
            state.correction
            if state is not None
            and state.cameras == person_tracks.keys()
            and 0 < time - state.time <= MAX_PAUSE_SECONDS
            else None
            for state, person_tracks in zip(before, tracks.values(), strict=True)
        ]
        bones = np.stack([self.calibration.bones if state is None else state.bones for state in before])
        observed = observe_people(list(tracks.values()), self._cameras, knots)
        newest = fuse_newest(observed, self._batch, corrections, bones, self.calibration.scale)
        adapted = self._adapted(bones, np.stack([state.points for state in newest]), before, time)
        for row, (number, person_tracks) in enumerate(tracks.items()):
            kept = adapted[row] if len(person_tracks) > 1 else bones[row]
            self._people[number] = _Person(kept, newest[row].correction, frozenset(person_tracks), time)
        return [state.fused for state in newest]

    def _adapted(self, bones: F64, points: F64, before: Sequence[_Person | None], time: float) -> F64:
        """Return lengths (P, B) m adapted to a frame's points (P, N, 3) m, with a time constant of `BONE_SECONDS`."""
        weight = np.array([0.0 if one is None else min((time - one.time) / BONE_SECONDS, 0.1) for one in before])
        average = self.calibration.bones
        measured = np.clip(BONE_RESIDUALS.measure(points)[0], average / MAX_BONE_RATIO, average * MAX_BONE_RATIO)
        adapted: F64 = bones + weight[:, None] * (measured - bones)
        return adapted
