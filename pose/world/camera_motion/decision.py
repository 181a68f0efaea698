"""Decision about a run's camera: compensate its motion, treat it as static, or give no world."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.structures.odometry import Odometry
from pose.structures.types import F64, Flags
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.path import MAX_BRIDGED_S, CameraPath
from pose.world.camera_motion.verdict import (
    FIXED,
    STATIC,
    TRANSLATING,
    UNKNOWN,
    CameraMotion,
    SceneMotion,
    classify,
    summarise,
)

AUTO, FREE = "auto", "free"  # values of `PipelineConfig.camera`: unknown motion, and a carried camera
Spans = tuple[tuple[float, float], ...]

_MAX_NAMED = 4  # scenes in a message
_UNKNOWN_CAMERA = "the camera's motion is unknown", "--camera fixed if it is static"
_MOVED_CAMERA = "the camera moved from its place", "--camera rotating ignores that"


@dataclass(frozen=True, slots=True)
class Decision:
    """Handling of the camera motion of a run."""

    motion: CameraMotion  # the camera's motion
    path: CameraPath | None = None  # path to compensate; None for a static camera, or with a `problem`
    problem: str = ""  # reason why the run gets no world coordinates; empty if it gets them
    check_feet: bool = False  # whether standing feet must confirm the path (`pose.world.footing`)
    # Path estimated from the background, whether it is compensated or not; None if it is unknown.
    measured: CameraPath | None = None
    translation: str = ""  # reason why translation could not be estimated; empty if it was estimated, or not attempted
    notices: tuple[str, ...] = ()  # reasons why some scenes get no world coordinates, one text for each reason

    @property
    def focal(self) -> float:
        """Ratio of the focal length in the first frame to that of the intrinsics; 1 without a path."""
        return 1.0 if self.path is None else float(self.path.zooms[0])

    @property
    def without_world(self) -> Spans:
        """Start (inclusive) and end (exclusive), in s, of each scene that gets no world coordinates."""
        last = None if self.measured is None else float(self.measured.times[-1])
        bad = [one for one in self.motion.scenes if not one.world]
        return tuple((one.begin, math.inf if one.end == last else one.end) for one in bad)


def decide(log: MotionLog, camera: str = AUTO, assumed_focal: bool = False) -> Decision:
    """Decide how to handle the camera motion of a run with at least one frame."""
    if camera == FIXED or not log.measured:
        return Decision(CameraMotion(FIXED))
    path, motion = log.solve(assumed_focal)
    decision = Decision(motion, path if motion.moves else None, check_feet=camera == AUTO, measured=path)
    refused = (UNKNOWN, TRANSLATING) if camera == AUTO else (UNKNOWN,)
    reasons = {UNKNOWN: _UNKNOWN_CAMERA, TRANSLATING: _MOVED_CAMERA}
    if motion.scenes:
        kinds = {scene.number: scene.motion.kind for scene in motion.scenes if scene.motion.kind in refused}
        return without_scenes(decision, {number: reasons[kind] for number, kind in kinds.items()})
    if motion.kind in refused:
        what, remedy = reasons[motion.kind]
        problem = f"{what}: no world is written ({remedy})"
        return Decision(motion, problem=problem, measured=None if motion.kind == UNKNOWN else path)
    return decision


def without_scenes(decision: Decision, reasons: Mapping[int, tuple[str, str]]) -> Decision:
    """Return a decision without a world for scenes, by number, for (reason, advice); a problem if none is left."""
    if not reasons:
        return decision
    scenes = tuple(
        replace(scene, world=scene.world and scene.number not in reasons) for scene in decision.motion.scenes
    )
    motion, is_whole_clip = summarise(scenes), not any(scene.world for scene in scenes)
    texts = []
    for what, remedy in dict.fromkeys(reasons.values()):
        named = _named([scene for scene in scenes if reasons.get(scene.number) == (what, remedy)])
        texts.append(f"{what} in {named}: no world is written{'' if is_whole_clip else ' there'} ({remedy})")
    if is_whole_clip:
        problem = "; ".join([*decision.notices, *texts])
        measured = None if motion.kind == UNKNOWN else decision.measured
        return Decision(motion, problem=problem, measured=measured)
    path = decision.measured if decision.path is None else decision.path
    return replace(
        decision,
        motion=motion,
        path=path if motion.moves else None,
        notices=(*decision.notices, *texts),
    )


def _named(scenes: Sequence[SceneMotion]) -> str:
    """Return a text that names scenes with their times, such as `scene 2 (3.0 to 6.5 s)`."""
    names = [f"{scene.number + 1} ({scene.begin:.1f} to {scene.end:.1f} s)" for scene in scenes[:_MAX_NAMED]]
    more = f" and {len(scenes) - _MAX_NAMED} more" if len(scenes) > _MAX_NAMED else ""
    return f"{'scene' if len(scenes) == 1 else 'scenes'} {', '.join(names)}{more}"


_SIGMA_RAD = np.radians(0.3)  # of a rotation since the first frame
_DISTANCE_SIGMA = 0.01  # of the length of a path, relative
_STATIC_M = 0.02  # a camera that stays within this distance, and does not turn, is static
_MAX_TILT_DEGREES = 15.0


def device_path(odometry: Odometry, times: F64) -> tuple[CameraPath, F64 | None]:
    """Return the path in m at times (F,) s, unknown far from the odometry, and the direction (3,) against gravity."""
    turns, places = odometry.at(times)
    first = turns[0].T
    away = np.maximum(odometry.times[0] - times, times - odometry.times[-1])
    path = CameraPath(
        times, first @ turns, np.ones(len(times)), np.where(away > MAX_BRIDGED_S, np.nan, _SIGMA_RAD),
        np.zeros(len(times), np.int64), (places - places[0]) @ first.T, metric=True,
    )  # fmt: skip
    return path, None if odometry.up is None else first @ odometry.up


def decide_by_device(path: CameraPath, peopled: Flags) -> Decision:
    """Return the decision to compensate the path of a device, with (F,) whether frames contain people."""
    assert path.positions is not None
    motion = classify(path, [], peopled)
    moves = motion.kind != STATIC or np.ptp(path.positions, axis=0).max() > _STATIC_M
    distance = float(np.linalg.norm(np.diff(path.positions, axis=0), axis=1).sum())
    kind, sigma = TRANSLATING if moves else STATIC, _DISTANCE_SIGMA * distance
    motion = replace(motion, kind=kind, distance=distance, distance_sigma=sigma, scenes=())
    return Decision(motion, path, measured=path)


def contradicts(up: F64, normals: Iterable[F64]) -> bool:
    """Return whether the floor in depth images, whose normals (3,) are in the path's axes, is not level."""
    found = np.array(list(normals)).reshape(-1, 3)
    if not len(found):
        return False
    middle = np.median(found, axis=0)
    return float(np.degrees(np.arccos(np.clip(middle @ up / np.linalg.norm(middle), -1, 1)))) > _MAX_TILT_DEGREES
