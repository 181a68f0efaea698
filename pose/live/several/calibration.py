"""Calibration of live cameras from the motion of the people, in a separate thread."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.live.several.sightings import Observation, tracks_of
from pose.multiview.bundle import start_body
from pose.multiview.calibrate import Known
from pose.multiview.calibration_files import camera_json
from pose.multiview.clocks import CAPTURE, ClockHint
from pose.multiview.fitting import find_fitting_rig
from pose.multiview.motions import ADULT_LOG_SIGMA, find_motions, fused_times, scale_for_heights
from pose.multiview.observations import observe
from pose.multiview.rig import Accuracy, Rig, rescaled
from pose.multiview.types import ViewCamera, ViewTrack
from pose.structures.types import F64
from pose.utils.json_values import Json

HEIGHT_FPS = 10.0  # rate of the frames from which the height of a person is estimated, frames/s
GIVEN_ACCURACY = Accuracy(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, float("nan"))  # accuracy of the cameras of a calibration file


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Result of a calibration. The common frame of the cameras is the camera frame of the first one."""

    cameras: dict[int, ViewCamera]  # calibrated cameras by index of the source
    bones: F64  # (B,) m, mean bone lengths of the people, in the order of `pose.multiview.residuals.BONES`
    scale: float  # factor from the body size that the lifter estimates to the calibrated size
    accuracy: dict[int, Accuracy]  # accuracy of each camera by index of the source
    described: dict[int, dict[str, Json]]  # JSON description of each camera for result files, as from `camera_json`
    notes: tuple[str, ...] = ()  # warnings about the calibration, one line each

    @property
    def first(self) -> int:
        """Index of the source whose camera frame is the common frame."""
        return min(self.cameras)

    @property
    def listed(self) -> tuple[dict[str, Json], ...]:
        """Descriptions of the calibrated cameras for result files, by source index; bit i of `seen_by` is camera i."""
        return tuple(self.described[index] for index in sorted(self.cameras))


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationInput:
    """Input of a calibration. Dictionaries have the index of the source as key."""

    # `scale` has precedence over `height`, the body height in m of the person seen longest. Poses of `cameras` are used
    # only as stated in `known`.

    rows: dict[int, dict[int, list[Observation]]]  # observations of people from `Sightings.rows`
    cameras: dict[int, ViewCamera]  # cameras with known or assumed intrinsics
    names: dict[int, str]  # names of the sources
    known: Known  # description of the camera parameters that are given
    height: float | None = None  # body height of the person seen longest, m, which determines the scale
    scale: float | None = None  # factor from the body size that the lifter estimates to the true size


def calibrate(given: CalibrationInput) -> Calibration:
    """Calibrate cameras from the people that they observe.

    Raises:
        PoseError: If the cameras cannot be calibrated, for example because people moved too little.
    """
    indices = sorted(given.rows)
    tracks = [track for position, index in enumerate(indices) for track in tracks_of(position, given.rows[index])]
    middle = float(np.mean([track.times.mean() for track in tracks])) if tracks else 0.0
    tracks = [replace(track, times=track.times - middle) for track in tracks]
    cameras, names = [given.cameras[index] for index in indices], [given.names[index] for index in indices]
    hints = [ClockHint(a, b, 0.0, CAPTURE) for b in range(len(indices)) for a in range(b)]
    found = find_fitting_rig(tracks, cameras, names, given.known, hints)
    rig, indices, names = found.rig, [indices[row] for row in found.kept], [names[row] for row in found.kept]
    tracks = [replace(track, camera=found.kept.index(track.camera)) for track in tracks if track.camera in found.kept]
    rig = replace(rig, cameras=[replace(camera, drift=0.0) for camera in rig.cameras])  # one clock stamps all images
    if given.scale is not None:
        rig = rescaled(rig, given.scale / rig.scale)
    elif given.height is not None:
        rig = rescaled(rig, _scale_factor(rig, tracks, given.height))
    else:
        rig = replace(rig, accuracy=_of_assumed_size(rig))
    described = [camera_json(*each) for each in zip(names, rig.cameras, rig.accuracy, rig.clocks, strict=True)]
    return Calibration(
        dict(zip(indices, rig.cameras, strict=True)),
        np.mean(rig.bones, axis=0),
        rig.scale,
        dict(zip(indices, rig.accuracy, strict=True)),
        dict(zip(indices, described, strict=True)),
        tuple(rig.notes),
    )


def given_calibration(
    cameras: Sequence[ViewCamera], names: Sequence[str], rows: dict[int, dict[int, list[Observation]]]
) -> Calibration | None:
    """Make a calibration from the cameras of a file; None if no person was observed for long enough."""
    # Only bone lengths are estimated, from the 3D poses of each camera. `Rigging` estimates clock offsets later.
    bones = [
        _lifted_bones(track, cameras[camera]) for camera, seen in rows.items() for track in tracks_of(camera, seen)
    ]
    if not bones:
        return None
    indices = range(len(cameras))
    described = [camera_json(name, camera, GIVEN_ACCURACY) for name, camera in zip(names, cameras, strict=True)]
    return Calibration(
        dict(zip(indices, cameras, strict=True)),
        np.median(bones, axis=0),
        1.0,
        dict.fromkeys(indices, GIVEN_ACCURACY),
        dict(zip(indices, described, strict=True)),
    )


def _lifted_bones(track: ViewTrack, camera: ViewCamera) -> F64:
    """Return the bone lengths (B,) m of a person from the lifted 3D poses of one track."""
    limbs = observe({0: replace(track, camera=0)}, [replace(camera, offset=0.0)], track.times).limbs[0]
    bones: F64 = start_body(limbs).bones
    return bones


def _of_assumed_size(rig: Rig) -> list[Accuracy]:
    """Return the accuracy of cameras whose distances follow from people of average size."""
    sigma = ADULT_LOG_SIGMA / math.sqrt(len(rig.people))
    apart = [float(np.linalg.norm(camera.position - rig.cameras[0].position)) for camera in rig.cameras]
    return [
        replace(one, position=math.hypot(one.position, sigma * metres))
        for one, metres in zip(rig.accuracy, apart, strict=True)
    ]


def _scale_factor(rig: Rig, tracks: Sequence[ViewTrack], height: float) -> float:
    """Return the factor of all lengths at which the person seen longest has the height (m)."""
    ends = [
        (min(t.times[0] for t in own), max(t.times[-1] for t in own)) for own in _by_camera(tracks, len(rig.cameras))
    ]
    line = fused_times(rig.cameras, ends, HEIGHT_FPS)
    shifted = replace(rig, cameras=[replace(camera, offset=camera.offset - line.begins) for camera in rig.cameras])
    return scale_for_heights(find_motions(shifted, line), {None: height}).factor


def _by_camera(tracks: Sequence[ViewTrack], cameras: int) -> list[list[ViewTrack]]:
    """Return the tracks of each camera."""
    return [[track for track in tracks if track.camera == camera] for camera in range(cameras)]
