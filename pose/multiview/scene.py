"""Combination of the runs of several cameras into one scene, with what a user says about it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pose.errors import PoseError
from pose.multiview.calibrate import Known
from pose.multiview.calibration_files import camera_json
from pose.multiview.clocks import clock_hints
from pose.multiview.fitting import Calibrations, find_fitting_rig
from pose.multiview.motions import (
    ADULT_LOG_SIGMA,
    FusedTimes,
    doubtful_people,
    find_motions,
    find_world,
    fused_times,
    on_time_line,
    scale_for_heights,
    stature_of,
)
from pose.multiview.results import MultiviewResults
from pose.multiview.rig import Rig, rescaled
from pose.multiview.stored import FusedMotion, scaled_motions
from pose.multiview.types import Lab, ViewCamera, ViewTrack
from pose.results import RunInfo, WorldInfo
from pose.results.edits.plan import EditPlan
from pose.structures.camera import Camera
from pose.structures.types import F64, FrameResult
from pose.utils.json_values import Json
from pose.utils.shown import in_utf8
from pose.video.recorded import Recorded
from pose.video.waveform import Waveform
from pose.world.contacts import ANKLE_HEIGHT
from pose.world.corrections import Corrections, plane_of, up_from_planes
from pose.world.frame import World
from pose.world.gravity import ANKLES

_WITHIN_S = 0.1  # s around the time of a given floor in which the lower foot stands on it
Plans = Mapping[int, EditPlan]  # by index of the camera in the rig


def without_deleted(rig: Rig, plans: Plans) -> Rig:
    """Return the rig without people that a user deleted in any camera."""
    gone = {(camera, number) for camera, plan in plans.items() for number in plan.deleted}
    kept = [row for row, tracks in enumerate(rig.tracks) if not gone & set(tracks)]
    people, tracks = [rig.people[row] for row in kept], [rig.tracks[row] for row in kept]
    return replace(rig, people=people, tracks=tracks, bones=[rig.bones[row] for row in kept])


def corrections_of(rig: Rig, plans: Plans) -> Corrections:
    """Return what the user says by id 1, 2, ... of the people of a rig, on the time line."""
    given = Corrections()
    for row, plan in plans.items():
        known, camera = plan.corrections.of_tracks(_ids(rig, row)), rig.cameras[row]

        def common(own: float, camera: ViewCamera = camera) -> float:
            return float(camera.common_time(np.array([own]))[0])

        floors = {person: (common(time), height) for person, (time, height) in known.floors.items()}
        contacts = [replace(one, begin=common(one.begin), end=common(one.end)) for one in known.contacts]
        given = Corrections(
            {**given.heights, **known.heights}, {**given.floors, **floors}, (*given.contacts, *contacts),
            kept=given.kept | known.kept,
        )  # fmt: skip
    return given


def settings_of(rig: Rig, plans: Plans) -> dict[str, Json]:
    """Return the edits and the names of people, for the metadata of a result."""
    names: dict[str, Json] = {}
    for row, plan in plans.items():
        ids = _ids(rig, row)
        names |= {str(ids[number]): name for number, name in plan.names.items() if number in ids}
    return {**next(iter(plans.values())).settings({}), "names": names}


def vertical_of(rig: Rig, plans: Plans, world: World) -> F64 | None:
    """Return the vertical (3,) from lines that a user drew and the estimated world; None without lines."""
    planes = []
    for row, plan in plans.items():
        camera = rig.cameras[row]
        planes += [plane_of(camera.unproject(ends)) @ camera.rotation for ends in plan.drawn]
    return up_from_planes(planes, world) if planes else None


def on_given_floor(world: World, motions: Sequence[FusedMotion], line: FusedTimes, given: Corrections) -> World:
    """Return the world with the floor on which people stand at given times; unchanged if none is given."""
    levels = []
    for person, (time, height) in given.floors.items():
        motion = motions[person - 1]
        away = np.abs(line.times[motion.frames] - time)
        rows = away <= max(_WITHIN_S, float(away.min()))
        ankles = world.place(motion.joints[rows][:, ANKLES].astype(np.float64))
        levels.append(float(np.median(ankles[..., 1].min(axis=1))) - ANKLE_HEIGHT - height)
    return replace(world, floor=world.floor + float(np.median(levels)), floor_known=True) if levels else world


def _ids(rig: Rig, camera: int) -> dict[int, int]:
    """Return the ids of people by the number of their track in a camera."""
    return {
        number: person for person, tracks in enumerate(rig.tracks, 1) for index, number in tracks if index == camera
    }


NOT_RECORDED = Recorded()


@dataclass(frozen=True, slots=True)
class CameraRun:
    """Observations and metadata of one camera."""

    tracks: list[ViewTrack]  # tracks of the people in this camera
    span: tuple[float, float]  # times (first, last) s of the frames on the camera's own clock
    fps: float  # median frame rate
    camera: Camera  # intrinsics, assumed or given
    wave: Waveform | None = None  # sound of the video; None without sound
    recorded: Recorded = NOT_RECORDED  # recording time from the metadata of the file
    video: str = ""  # path of the video, for results; empty without a file


@dataclass(frozen=True, slots=True)
class Given:
    """Known calibration, clocks and lengths of a set-up."""

    # Cameras of a calibration, in the order of the runs; None if they are unknown.
    cameras: list[ViewCamera] | None = None
    refine: bool = False  # whether the poses of `cameras` are initial values to refine; the intrinsics stay fixed
    offsets: list[float] | None = None  # start times of the cameras, s; None if they are unknown
    # Indices of two cameras, and the distance between them in m; None if unknown.
    distance: tuple[int, int, float] | None = None
    # Body heights in m by id of the person; the key None stands for the person seen longest.
    heights: Mapping[int | None, float] = field(default_factory=dict)
    lab: Lab | None = None  # frame of the calibration, whose vertical and floor are kept; None estimates them
    notes: list[str] = field(default_factory=list)  # messages about the calibration, such as other image sizes


@dataclass(frozen=True, slots=True)
class RigScene:
    """Cameras, people and time line of a scene."""

    rig: Rig  # cameras and people, with clocks on the time line
    line: FusedTimes  # times of the results
    motions: list[FusedMotion]  # motions of all people
    cameras: list[dict[str, Json]]  # cameras as stored in result files
    kept: list[int]  # indices of these cameras among the runs; others do not fit
    scale_sigma: float = 0.0  # standard deviation of the logarithm of the scale; 0 where a length was given
    lab: Lab | None = None  # frame of the calibration
    plans: Plans = field(default_factory=dict)  # edits that a user gave in each camera of the rig
    corrections: Corrections = field(default_factory=Corrections)  # what these edits say, by id of the person


def find_scene(
    runs: Sequence[CameraRun],
    names: Sequence[str],
    given: Given,
    edits: Plans | None = None,
    calibrations: Calibrations | None = None,
) -> RigScene:
    """Find cameras and the motion of all people, at the given scale; PoseError if the cameras cannot be calibrated.

    `edits` are those of a user by index of the camera; `calibrations` are kept for further runs.
    """
    initial_cameras = (
        [ViewCamera.of(first_run.camera) for first_run in runs] if given.cameras is None else list(given.cameras)
    )
    if given.offsets is not None:
        first = given.offsets[0]
        initial_cameras = [
            replace(camera, offset=value - first) for camera, value in zip(initial_cameras, given.offsets, strict=True)
        ]
    calibrated = given.cameras is not None
    known = Known(calibrated and not given.refine, given.offsets is not None, calibrated and given.refine)
    hints = clock_hints([first_run.wave for first_run in runs], [first_run.recorded for first_run in runs])
    find = find_fitting_rig if calibrations is None else calibrations.find
    found = find([track for run in runs for track in run.tracks], initial_cameras, names, known, hints)
    rig, kept = replace(found.rig, notes=[*given.notes, *found.rig.notes]), found.kept
    if given.distance is not None:
        *pair, metres = given.distance
        if not set(pair) <= set(kept):
            raise PoseError(f"distance: one of the two cameras was left out; {found.rig.notes[0]}")
        one, other = (rig.cameras[kept.index(index)].position for index in pair)
        rig = rescaled(rig, metres / max(math.dist(one, other), 1e-6))
    lab = None if given.lab is None else given.lab.seen_by(initial_cameras[kept[0]])
    runs, names = [runs[index] for index in kept], [names[index] for index in kept]
    line = fused_times(rig.cameras, [run.span for run in runs], runs[0].fps)
    rig = on_time_line(rig, line)
    plans = {row: edits[index] for row, index in enumerate(kept) if edits and index in edits}
    rig = without_deleted(rig, plans)
    motions, corrections = find_motions(rig, line), corrections_of(rig, plans)
    scale_sigma = _scale_sigma(given, len(motions))
    heights = dict[int | None, float](corrections.heights) or given.heights  # type: ignore[arg-type]
    if heights and motions:
        scale = scale_for_heights(motions, heights)
        rig, motions = rescaled(rig, scale.factor), scaled_motions(motions, scale.factor)
        scale_sigma = scale_sigma if scale.sigma is None else scale.sigma
        rig = replace(rig, notes=[*rig.notes, *scale.notes])
    cameras = [camera_json(*each) for each in zip(names, rig.cameras, rig.accuracy, rig.clocks, strict=True)]
    for camera, run in zip(cameras, runs, strict=True):
        if run.video:
            camera["video"] = in_utf8(run.video)
    return RigScene(rig, line, motions, cameras, kept, scale_sigma, lab, plans, corrections)


def _scale_sigma(given: Given, people: int) -> float:
    """Return the standard deviation of the logarithm of the scale."""
    # Without a given length, the lifter's bodies give the scale. Lifted bodies are average adults. The error of the
    # scale is therefore the deviation of the people's mean height from the average.
    measured = given.cameras is not None and not given.refine
    if measured or given.distance is not None:
        return 0.0
    return ADULT_LOG_SIGMA / math.sqrt(max(people, 1))


def results_of(
    scene: RigScene, own: Sequence[Iterable[FrameResult]], info: RunInfo, up: F64 | None = None
) -> tuple[MultiviewResults, RunInfo]:
    """Return the results of all frames in one world, and the description of the run with cameras and world."""
    first = scene.rig.cameras[0]
    given = scene.corrections
    doubtful = tuple(person for person in doubtful_people(scene.motions, scene.line.fps) if person not in given.kept)
    trusted = [motion for person, motion in enumerate(scene.motions, 1) if person not in doubtful] or scene.motions
    world = find_world(trusted, scene.line, up, scene.lab)
    if up is None and (drawn := vertical_of(scene.rig, scene.plans, world)) is not None:
        world = find_world(trusted, scene.line, drawn)
    world = on_given_floor(world, scene.motions, scene.line, given)
    if scene.plans:
        info = replace(info, settings={**info.settings, **settings_of(scene.rig, scene.plans)})
    results = MultiviewResults(scene.rig, scene.motions, scene.line, world, own, info, doubtful, given)
    statures = [stature_of(motion) for motion in scene.motions]
    heights = {person: (height, height * scene.scale_sigma) for person, height in enumerate(statures, 1)}
    return results, replace(
        info,
        camera=Camera(first.matrix, True, first.size),
        world=WorldInfo(world, heights, doubtful=doubtful),
        cameras=tuple(scene.cameras),
    )
