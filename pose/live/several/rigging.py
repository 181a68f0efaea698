"""Calibration of several live cameras from their first frames, and again after a camera was moved."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from pose.errors import PoseError
from pose.live.several.calibration import Calibration, CalibrationInput, calibrate, given_calibration
from pose.live.several.identities import TrackAssignment
from pose.live.several.sightings import Observation, Sightings, tracks_of
from pose.live.several.waiting import MOTION_SECONDS, PATIENCE_SECONDS, waiting_line
from pose.live.several.worker import ThreadWorker
from pose.multiview.calibrate import Known
from pose.multiview.types import ViewCamera
from pose.multiview.videos import MIN_CAMERAS

RETRY_SECONDS = 5.0  # between a failed calibration and the next attempt
LEFT_OUT_SECONDS = 60.0  # between calibrations if one camera does not fit the others
GRACE_SECONDS = 10.0  # maximum wait for cameras without enough motion, once two cameras have enough
KEPT_SECONDS = 40.0  # duration of the frames used by a calibration
MATCHED_SECONDS = 3.0  # duration of the frames used by an assignment of tracks to people
MATCH_INTERVAL_SECONDS = 0.4  # of these assignments
MOVED_MESSAGE = "a camera was moved: calibrating again, let people move in view of all cameras"


class Rigging:
    """Calibration of live cameras, and assignment of their tracks to people. Both run in separate threads."""

    def __init__(
        self,
        names: Sequence[str],
        camera: Callable[[tuple[int, int]], ViewCamera],
        given: Callable[[list[tuple[int, int]]], list[ViewCamera]] | None = None,
        height: float | None = None,
    ) -> None:
        """Start without observations; `given` reads a calibration file for image sizes, None calibrates from people."""
        self.sightings = [Sightings(index, KEPT_SECONDS) for index in range(len(names))]  # observations of each camera
        self.calibration: Calibration | None = None  # current calibration
        self.identities = TrackAssignment()  # assignment of tracks to people
        self.count = 0  # number of calibrations so far
        self._names, self._camera, self._read, self._height = names, camera, given, height
        self._given_cameras: list[ViewCamera] | None = None  # cameras of the calibration file
        self._clocks_open = given is not None  # whether the clocks of a given calibration are not estimated yet
        self._scale: float | None = 1.0 if given is not None else None
        self._problem = ""
        self._moved_message = ""
        self._waiting = ""  # message about what a calibration waits for
        self._waits_since = math.inf  # time of the first frame or of the last change of the calibration, s
        self._two_since = math.inf  # time since which two cameras have enough motion, s
        self._matched_at = -math.inf
        self._changed = False  # whether the calibration was discarded since the last step
        self._valid = True  # whether no camera was moved since the running calibration began
        self._matches = 0  # number of the calibration that the running assignment uses
        self._wait_until = -math.inf  # time of the next attempt after a failure, s
        self._calibrating: ThreadWorker[tuple[Calibration, TrackAssignment]] = ThreadWorker("calibration")
        self._matching: ThreadWorker[TrackAssignment] = ThreadWorker("identities")

    def step(self, now: float, live: Collection[int]) -> bool:
        """Process new observations of `sightings`, and return whether `calibration` changed since the last call."""
        changed, self._changed, before = self._changed, False, self.count
        if (found := self._calibrating.take()) is not None and self._valid:
            self._take(found, now)
        if isinstance(newer := self._matching.take(), TrackAssignment) and self._matches == self.count:
            self.identities = newer
        if self._read is not None and self._given_cameras is None:
            self._begin_given(now)
        self._match(now)
        if not self._calibrating.busy and now >= self._wait_until:
            self._begin(now, live)
        self._wait(now, live)
        return changed or self.count != before

    def discard_calibration(self, now: float) -> None:
        """Discard the calibration because a camera was moved, and calibrate from frames after `now` (monotonic, s)."""
        self._moved_message, self._problem = MOVED_MESSAGE, ""
        self._two_since, self._valid, self._waits_since = math.inf, False, now
        for camera_sightings in self.sightings:
            camera_sightings.restart(now)
        self.calibration, self._changed = None, True

    def status_text(self) -> str:
        """Describe the state of the calibration in a few words."""
        if self._calibrating.busy:
            state = "calibrating"
        elif self.calibration is None:
            least = min(camera_sightings.motion_seconds for camera_sightings in self.sightings)
            state = f"calibrating: {min(least, MOTION_SECONDS):.0f} of {MOTION_SECONDS:.0f} s of motion in every camera"
        else:
            state = quality_text(self.calibration)
        return state

    @property
    def message(self) -> str:
        """Current problem; empty without one."""
        notes = () if self.calibration is None else self.calibration.notes
        return "; ".join(part for part in (self._moved_message, self._problem, self._waiting, *notes) if part)

    def _take(self, found: tuple[Calibration, TrackAssignment] | PoseError, now: float) -> None:
        """Use a finished calibration, or store why it failed."""
        if isinstance(found, PoseError):
            self._problem = f"not calibrated: {found}"
            self._wait_until = now + RETRY_SECONDS
            return
        self.calibration, self.identities = found
        if any("left out" in note for note in self.calibration.notes):
            self._wait_until = now + LEFT_OUT_SECONDS
        self._problem = self._moved_message = ""
        self.count += 1
        self._matched_at, self._waits_since = -math.inf, now

    def _wait(self, now: float, live: Collection[int]) -> None:
        """Set the message about what the next calibration waits for. It is empty for the first `PATIENCE_SECONDS`."""
        self._waits_since = min(self._waits_since, now)
        self._waiting = ""
        if now - self._waits_since > PATIENCE_SECONDS and not self._problem and not self._calibrating.busy:
            calibrated = () if self.calibration is None else tuple(self.calibration.cameras)
            self._waiting = waiting_line(self.sightings, self._names, live, calibrated)

    def _begin_given(self, now: float) -> None:
        """Use the cameras of a calibration file, once all sources have sent an image and a person was observed."""
        sizes = [camera_sightings.size for camera_sightings in self.sightings]
        known_sizes = [size for size in sizes if size is not None]
        if self._read is None or len(known_sizes) < len(sizes):
            return
        cameras = self._read(known_sizes)
        rows = {
            index: camera_sightings.rows(now - MATCHED_SECONDS) for index, camera_sightings in enumerate(self.sightings)
        }
        calibration = given_calibration(cameras, self._names, rows)
        if calibration is not None:
            self._given_cameras = cameras
            self._take((calibration, matched(calibration, self.identities.next, rows)), now)

    def _begin(self, now: float, live: Collection[int]) -> None:
        """Start a calibration if a camera has none and people moved long enough in two or more cameras."""
        # Other cameras are waited for during `GRACE_SECONDS`.
        done = set() if self.calibration is None else set(self.calibration.cameras)
        missing = set(live) - done
        ready = {index for index in live if self.sightings[index].motion_seconds >= MOTION_SECONDS}
        refines = self._clocks_open and self.calibration is not None
        if len(ready) < MIN_CAMERAS or not (missing & ready or refines):
            self._two_since = math.inf
            return
        self._two_since = min(self._two_since, now)
        if (missing - ready or (refines and set(live) - ready)) and now - self._two_since < GRACE_SECONDS:
            return
        chosen = sorted(ready)
        fixed = refines and not missing
        self._clocks_open = False
        rows = {
            index: self.sightings[index].rows(max(now - KEPT_SECONDS, self.sightings[index].since)) for index in chosen
        }
        given = CalibrationInput(
            rows,
            {index: self._input_camera(index, fixed) for index in chosen},
            dict(enumerate(self._names)),
            Known(poses=fixed, capture_times=True),
            self._height,
            None if fixed else self._scale,
        )
        self._two_since, self._valid = math.inf, True
        following = self.identities.next

        def work() -> tuple[Calibration, TrackAssignment]:
            found = calibrate(given)
            return found, matched(found, following, rows)

        self._calibrating.start(work)

    def _input_camera(self, index: int, fixed: bool) -> ViewCamera:
        """Return the camera to start from; with `fixed` that of the calibration file, including its clock."""
        size = self.sightings[index].size
        assert size is not None, "a camera with motion has images"
        if self._given_cameras is None:
            return self._camera(size)
        given = self._given_cameras[index]
        return given if fixed else replace(given, offset=0.0, drift=0.0)

    def _match(self, now: float) -> None:
        """Start to assign tracks to people, at most once in `MATCH_INTERVAL_SECONDS`."""
        if self.calibration is None or self._matching.busy or now - self._matched_at < MATCH_INTERVAL_SECONDS:
            return
        self._matched_at, self._matches = now, self.count
        cameras, before = self.calibration.cameras, self.identities
        rows = {index: self.sightings[index].rows(now - MATCHED_SECONDS) for index in cameras}

        def match() -> TrackAssignment:
            tracks = [track for index, seen in rows.items() for track in tracks_of(index, seen)]
            return before.updated(tracks, cameras)

        self._matching.start(match)


def matched(
    calibration: Calibration, following: int, rows: Mapping[int, dict[int, list[Observation]]]
) -> TrackAssignment:
    """Assign tracks to people, with ids from `following`, by the last 3 s, at the start of a calibration."""
    newest = max((seen[-1][0] for by_track in rows.values() for seen in by_track.values()), default=0.0)
    recent = {
        index: {
            number: [observation for observation in seen if observation[0] > newest - MATCHED_SECONDS]
            for number, seen in by_track.items()
        }
        for index, by_track in rows.items()
    }
    tracks = [track for index, by_track in recent.items() for track in tracks_of(index, by_track)]
    return TrackAssignment(next=following).updated(tracks, calibration.cameras)


def quality_text(calibration: Calibration) -> str:
    """Describe the number of cameras and, unless from a file, the largest errors of a calibration in one line."""
    measured = [accuracy for accuracy in calibration.accuracy.values() if math.isfinite(accuracy.residual)]
    if not any(accuracy.rotation for accuracy in measured):
        return f"{len(calibration.cameras)} cameras, calibration given"
    turn, position = max(accuracy.rotation for accuracy in measured), max(accuracy.position for accuracy in measured)
    residual = max(accuracy.residual for accuracy in measured)
    return (
        f"{len(calibration.cameras)} cameras, rotation ±{turn:.1f}°, position ±{100 * position:.0f} cm, "
        f"reprojection error {residual:.1f} px"
    )
