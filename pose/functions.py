"""Functions of the public API: `pose.several`, `pose.lift`, `pose.analyse` and `pose.convert`."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pose import analysis
from pose.config import PipelineConfig, WorldConfig, for_each_camera
from pose.errors import PoseError, PoseWarning, UsageError
from pose.export import Written, check_formats, export_all, targets
from pose.export.result import Result, load
from pose.lifting.names import DEFAULT_LIFTER
from pose.lifting.sides import SideChanges, with_sides
from pose.multiview.videos import MAX_CAMERAS, MIN_CAMERAS
from pose.results import ModelInfo, RunInfo
from pose.results.edits import Edit, given_edits
from pose.results.edits.plan import EditPlan, StoredFrames
from pose.results.recorded import RecordedRun, record
from pose.structures.camera import check_intrinsics
from pose.structures.defaults import STEM
from pose.structures.incoming import check_units, checked_keypoints
from pose.structures.result_store import ResultStore
from pose.structures.sequences import Sequence2D, Sequence3D, straightened
from pose.structures.skeletons import get_skeleton
from pose.structures.types import F32, F64, FrameResult, People, Poses3D
from pose.utils.options import default_of
from pose.utils.shown import shown
from pose.utils.whole_file import checked_path, file_errors, make_folder
from pose.world.clean import Steps
from pose.world.given import check_id, checked

if TYPE_CHECKING:
    from pose.lifting.fit.windows import FitLog
    from pose.lifting.predict import Lifter
    from pose.pipeline import Pipeline


def lift(
    keypoints: Path | str | Sequence2D | Mapping[int, Sequence2D],
    *,
    lifter: str = DEFAULT_LIFTER,
    lookahead: int = default_of(PipelineConfig, "lookahead"),
    repair: bool = default_of(PipelineConfig, "repair"),
    constant_bones: bool = default_of(PipelineConfig, "constant_bones"),
    fit: bool = default_of(PipelineConfig, "fit"),
    world: bool = False,
    heights: Mapping[int | None, float] | None = None,
    pitch: float | None = None,
    roll: float | None = None,
    smooth: bool = default_of(WorldConfig, "smooth"),
    foot_lock: bool = default_of(WorldConfig, "foot_lock"),
    cutoff: float | None = default_of(WorldConfig, "cutoff"),
    fps: float | None = None,
    image_size: tuple[int, int] | None = None,
    device: str = default_of(PipelineConfig, "device"),
    edits: Path | str | Sequence[Edit] | None = None,
) -> Result:
    """Lift 2D keypoints to 3D, as `pose-lift` does.

    Args:
        keypoints: A `.npz` file, a JSON file, a folder of JSON files (docs/reference/outputs.md), the sequence of one
            person, or a mapping from ids to sequences. All sequences must be from one camera.
        lifter: 'offline', 'sliding', 'stream', or the path of a checkpoint.
        lookahead: Number of later frames that a streaming lifter uses for each frame.
        repair: Whether to undo left-right swaps and drop outliers before lifting.
        constant_bones: Whether to keep bone lengths constant over time for each person; offline lifters only.
        fit: Whether to fit the motion to the 2D keypoints, more closely where they are more accurate; offline lifters
            with constant bones only.
        world: Whether to transform all people to common world coordinates. The arguments `heights`, `pitch`, `roll`,
            `smooth`, `foot_lock` and `cutoff` apply only then.
        heights: Body heights in m by id; the key None stands for all people.
        pitch: Elevation of the camera's optical axis above the horizon in degrees. Pitch and roll are estimated
            if neither is given; if only one is given, the other is 0.
        roll: Clockwise rotation of the camera about its optical axis in degrees.
        smooth: Whether to smooth the motion.
        foot_lock: Whether to keep feet in place while they touch the floor.
        cutoff: Cut-off frequency of the smoothing in Hz; None determines it by residual analysis.
        fps: Frames per second; required for JSON files, which do not contain it.
        image_size: (width, height) px, for JSON files that do not contain it.
        device: Device of the network: 'auto', 'cpu' or 'cuda'.
        edits: Corrections, or the path of their file (docs/reference/edits.md).

    Returns:
        All people in all frames.

    Raises:
        UsageError: For a missing file or an invalid argument.
        PoseError: For a file without keypoints.
        ValueError: For keypoints that are not in px.

    Keypoints with score 0 count as undetected and may be NaN.
    """
    from pose.lifting.load import load_lifter
    from pose.utils.device import resolve_device

    up = checked(heights, pitch, roll)
    WorldConfig(smooth=smooth, cutoff=cutoff)  # checks them
    corrections = given_edits(edits)
    name, people = read_people(keypoints, fps, image_size)
    people, plan = edit_people(people, corrections)
    for problem in () if plan is None else plan.problems:
        warnings.warn(problem, PoseWarning, stacklevel=2)
    options = LiftOptions(lifter, lookahead, repair, constant_bones, fit, world)
    given = Steps(fill=False, smooth=smooth, feet=foot_lock, up=up, heights=heights or {}, cutoff_hz=cutoff)
    network = load_lifter(lifter, resolve_device(device))
    with record_keypoints(name, people, network, options, given if world else None, plan=plan) as recorded:
        return Result.of(recorded)


@dataclass(frozen=True, slots=True)
class LiftOptions:
    """Options of a run of keypoints; see `lift`."""

    lifter: str
    lookahead: int
    repair: bool
    constant_bones: bool
    fit: bool
    world: bool


def record_keypoints(
    name: str,
    people: Mapping[int, Sequence2D],
    lifter: "Lifter",
    options: LiftOptions,
    steps: Steps | None,
    log: "FitLog | None" = None,
    plan: EditPlan | None = None,
) -> RecordedRun:
    """Lift the 2D keypoints of people, and transform the people to the world; the caller closes the run.

    Args:
        name: Name of the source, for the metadata.
        people: Sequences of one camera by id.
        steps: Settings of the transformation to the world; None keeps camera coordinates.
        log: Statistics of the fits to the 2D keypoints.
        plan: Plan of the edits that `edit_people` applied to the people.

    Raises:
        UsageError: If `lookahead` is above 0 and the lifter does not stream.
    """
    if not people:
        raise UsageError("edits: delete all people")
    sequences, lifted = lift_sequences(
        lifter, list(people.values()), options.lookahead, repair=options.repair,
        constant_bones=options.constant_bones, fit=options.fit, log=log,
        sides=None if plan is None else [SideChanges(plan.sides, person) for person in people],
    )  # fmt: skip
    times = np.unique(np.concatenate([one.times for one in sequences]))
    info = RunInfo(
        source=name,
        fps=(len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 30.0,
        camera=sequences[0].camera,
        skeleton=get_skeleton(sequences[0].skeleton),
        models=() if lifter.sha256 is None else (ModelInfo("lifter", lifter.name, lifter.sha256),),
        settings=asdict(options) | ({} if plan is None else plan.settings({})),
    )
    if steps is not None:
        known = all(one.camera.known for one in sequences)
        steps = replace(steps, bones=options.constant_bones, camera_known=known)
        steps = steps if plan is None else plan.steps(steps)
    return record(_frames(list(people), sequences, lifted, times), info, steps, join=False)


def lift_sequences(
    lifter: "Lifter",
    sequences: list[Sequence2D],
    lookahead: int = 0,
    *,
    repair: bool,
    constant_bones: bool,
    fit: bool = False,
    log: "FitLog | None" = None,
    sides: list[SideChanges] | None = None,
) -> tuple[list[Sequence2D], list[Sequence3D]]:
    """Lift sequences of one camera; return the 2D, repaired if requested, and the 3D of each.

    `sides` are those that a user gives for each sequence.

    Raises:
        UsageError: If `lookahead` is above 0 and the lifter does not stream.
    """
    if lookahead and not lifter.streaming:
        raise UsageError(f"lookahead: the lifter {lifter.name!r} processes the whole file; choose a streaming one")
    sequences = [straightened(sequence) for sequence in sequences]
    raw = sequences
    if repair:
        from pose.lifting.repair.person import repair as repaired

        sequences = [repaired(sequence) for sequence in sequences]
    if sides is not None:
        sequences = [with_sides(*each) for each in zip(raw, sequences, sides, strict=True)]
    lifted = lifter.lift_many(sequences, lookahead)
    if constant_bones and not lifter.streaming:
        from pose.structures.refine import refine

        lifted = [refine(one, sequence) for one, sequence in zip(lifted, sequences, strict=True)]
        if fit:
            from pose.lifting.fit.windows import fit_motion

            lifted = [fit_motion(one, sequence, log) for one, sequence in zip(lifted, sequences, strict=True)]
    return sequences, lifted


def edit_people(
    people: Mapping[int, Sequence2D], edits: Sequence[Edit]
) -> tuple[dict[int, Sequence2D], EditPlan | None]:
    """Return people as edits leave them in 2D, by id, and the plan of the edits; None without edits."""
    if not edits:
        return dict(people), None
    sequences, first = list(people.values()), next(iter(people.values()))
    skeleton, rows = get_skeleton(first.skeleton), dict[int, list[tuple[F32, F32, float]]]()
    blank = [_unlifted(one) for one in sequences]
    times = np.unique(np.concatenate([one.times for one in sequences]))
    with closing(ResultStore(None, skeleton)) as stored:
        for result in _frames(list(people), sequences, blank, times):
            stored.write(result)
        plan = EditPlan(edits, StoredFrames(stored), skeleton, first.camera)
        for frame in map(plan.apply, stored.people()):
            for person, keypoints, scores in zip(frame.ids.tolist(), frame.keypoints, frame.scores, strict=True):
                rows.setdefault(person, []).append((keypoints, scores, frame.time))
    edited = {}
    for person, values in sorted(rows.items()):
        keypoints_, scores_, times_ = (np.array(one) for one in zip(*values, strict=True))
        edited[person] = Sequence2D(keypoints_, scores_, times_, first.camera, first.skeleton)
    return edited, plan


def _unlifted(sequence: Sequence2D) -> Sequence3D:
    joints, root, sigma = (np.zeros((len(sequence), *shape), np.float32) for shape in ((17, 3), (3,), (17,)))
    return Sequence3D(joints, root, sigma, sequence.times)


def read_people(
    keypoints: Path | str | Sequence2D | Mapping[int, Sequence2D], fps: float | None, size: tuple[int, int] | None
) -> tuple[str, dict[int, Sequence2D]]:
    """Return the name of the source, and the validated sequences of its people by id."""
    if isinstance(keypoints, str | Path):
        path = Path(keypoints)
        if path.is_dir() or path.suffix.lower() == ".json":
            from pose.results import keypoints_json

            return path.name, keypoints_json.read_people(path, fps, size)
        from pose.results.keypoints import read_keypoints

        return path.name, {1: read_keypoints(path)}
    if not isinstance(keypoints, Sequence2D | Mapping):
        kind = type(keypoints).__name__
        raise UsageError(f"keypoints: expected a path, a Sequence2D, or Sequence2D by id, got {kind}")
    people = {1: keypoints} if isinstance(keypoints, Sequence2D) else dict(keypoints)
    if not people:
        raise UsageError("keypoints: contain no person")
    for number, one in people.items():
        check_id(number)
        if not isinstance(one, Sequence2D):
            raise UsageError(f"keypoints: expected a Sequence2D for person {number}, got {type(one).__name__}")
        people[number] = _checked(number, one)
    first = next(iter(people.values()))
    for number, one in people.items():
        if one.camera.size != first.camera.size or one.skeleton != first.skeleton:
            raise UsageError(f"keypoints: person {number} has another image size or skeleton than the others")
        check_units(one.keypoints, one.scores, one.times, one.camera.size)
    return "keypoints", people


def _checked(number: int, sequence: Sequence2D) -> Sequence2D:
    try:
        check_intrinsics(sequence.camera.matrix)
        return checked_keypoints(sequence)
    except ValueError as error:
        raise UsageError(f"person {number}: {error}") from error


def _frames(ids: list[int], sequences: list[Sequence2D], lifted: list[Sequence3D], times: F64) -> Iterator[FrameResult]:
    """Yield one result for each of the times (F,) s, with the people who have a frame at that time."""
    rows = [np.searchsorted(one.times, times) for one in sequences]
    for index, time in enumerate(times.tolist()):
        at = [
            (i, int(rows[i][index]))
            for i, one in enumerate(sequences)
            if rows[i][index] < len(one) and one.times[rows[i][index]] == time
        ]
        joints = len(get_skeleton(sequences[0].skeleton))
        keypoints = _stacked([sequences[i].keypoints[row] for i, row in at], (joints, 2))
        scores = _stacked([sequences[i].scores[row] for i, row in at], (joints,))
        people = People(
            index,
            time,
            np.array([ids[i] for i, _ in at], np.int64),
            _boxes(keypoints, scores),
            scores.mean(axis=1),
            keypoints,
            scores,
        )
        poses = Poses3D(
            _stacked([lifted[i].joints[row] for i, row in at], (17, 3)),
            _stacked([lifted[i].root[row] for i, row in at], (3,)),
            _stacked([lifted[i].sigma[row] for i, row in at], (17,)),
        )
        yield FrameResult(people, poses)


def _stacked(rows: list[F32], shape: tuple[int, ...]) -> F32:
    return np.array(rows, np.float32).reshape(len(rows), *shape)


def _boxes(keypoints: F32, scores: F32) -> F32:
    """Return boxes (P, 4) px around the detected keypoints; 0 for people without any."""
    detected = (scores > 0)[..., None]
    low, high = np.where(detected, keypoints, np.inf).min(axis=1), np.where(detected, keypoints, -np.inf).max(axis=1)
    boxes = np.concatenate([low, high], axis=1)
    return np.where(np.isfinite(boxes), boxes, 0).astype(np.float32)


def several(
    videos: Sequence[str | Path],
    *,
    pipeline: "Pipeline | None" = None,
    cameras: str | Path | None = None,
    offsets: Sequence[float] | None = None,
    height: float | Mapping[int | None, float] | None = None,
    edits: "Path | str | Sequence[Edit] | None" = None,
) -> Result:
    """Process videos of several fixed cameras that film the same moment, as `pose-run left.mp4 right.mp4` does.

    Args:
        videos: 2 to 8 paths, one for each camera.
        pipeline: Pipeline that processes each video; default `Pipeline()`. Videos are processed in parallel threads,
            as many as cores and memory allow. With a GPU or a custom detector they are processed one after another.
        cameras: Calibration file; None calibrates the cameras from the motion of the people.
        offsets: Start time of each video in s on a common clock; None estimates them.
        height: Body height in m of the person seen longest, or heights by id, which set the scale; None uses the
            lifter's scale.
        edits: Corrections, or the path of their file (docs/reference/edits.md).

    Returns:
        All people in common world coordinates, each with one id in all cameras. `Result.cameras` has the cameras.

    Raises:
        PoseError: If a video cannot be read, a camera moves, two videos show the same images, or the cameras cannot be
            calibrated.
        UsageError: If there are fewer than 2 or more than 8 videos, if the number of `offsets` differs from that of the
            videos, or if both `cameras` and `height` are given.
    """
    from pose.multiview.run import RecordedCameras, camera_workers, known_setup
    from pose.pipeline import Pipeline

    listed = isinstance(videos, Sequence) and not isinstance(videos, str)
    if not listed or not all(isinstance(video, str | Path) for video in videos):
        raise UsageError("videos: expected a list of paths, one for each camera")
    paths = [str(video) for video in videos]
    if not MIN_CAMERAS <= len(paths) <= MAX_CAMERAS:
        raise UsageError(f"videos: got {len(paths)}; allowed: {MIN_CAMERAS} to {MAX_CAMERAS}")
    heights: Mapping[int | None, float] | None
    heights = height if height is None or isinstance(height, Mapping) else {None: height}
    setup = known_setup(paths, cameras, offsets=offsets, heights=heights)
    workers = camera_workers(len(paths), "auto" if pipeline is None else pipeline.config.device)
    pipeline = pipeline or Pipeline(for_each_camera(PipelineConfig(), len(paths)))
    with RecordedCameras(paths, pipeline, setup, workers=workers, edits=given_edits(edits)) as recorded:
        for problem in [*(each for camera in recorded.track() for each in camera.problems), *recorded.problems]:
            warnings.warn(problem, PoseWarning, stacklevel=2)
        recorded.fuse()
        return Result.of(recorded)


def analyse(
    result: Result | Path | str, groups: Sequence[str] = analysis.GROUPS, inputs: analysis.Inputs = analysis.NEUTRAL
) -> analysis.Analysis:
    """Analyse gait, repetitions, jumps, sit-to-stand and ergonomics of all people, as `pose-analyse` does.

    Args:
        result: A result with a world, or the path of its file.
        groups: Groups of metrics to compute, from `pose.analysis.GROUPS`; default all.
        inputs: Inputs of RULA and REBA that a camera cannot observe, such as loads.

    Returns:
        Metrics with 95 % intervals, events, curves, and the groups that were not computed, with reasons.

    Raises:
        UsageError: If the result has no world, or a group is unknown.
    """
    one = result if isinstance(result, Result) else load(result)
    return analysis.analyse(one.table, groups, inputs)


def convert(
    result: Result | Path | str,
    formats: str | Sequence[str],
    out: Path | str,
    *,
    space: str | None = None,
    people: Sequence[int] | None = None,
    heights: Mapping[int | None, float] | None = None,
    stem: str = STEM,
    overwrite: bool = False,
) -> list[Path]:
    """Export a result to other formats, as `pose-convert` does.

    Args:
        result: A result, or the path of its file.
        formats: One format or several, such as 'bvh'; docs/guides/exports.md lists them.
        out: Folder for the files; created if missing.
        space: 'world' or 'camera'; default: the world if the result has one, else the camera.
        people: Track ids; default all people.
        heights: Body heights in m by track id; the id None stands for all people. People and their distances from
            the camera are scaled by the same factor.
        stem: Start of the file names.
        overwrite: Whether to replace existing files. Files that this package did not write, or that have changed since,
            are renamed to `NAME.kept`, with a warning.

    Returns:
        Paths of the written files.

    Raises:
        UsageError: If a format or id is unknown, or a file exists.
        PoseError: If a library that a format needs is not installed, or a file cannot be written.
    """
    if not isinstance(formats, Sequence) or not all(isinstance(name, str) for name in formats):
        raise UsageError(f"formats: expected names of formats, got {shown(repr(formats), 60)}")
    names = [formats] if isinstance(formats, str) else list(formats)
    check_formats(names, "formats")
    if stem in ("", ".", "..") or Path(stem).name != stem:
        raise UsageError(f"stem: {shown(stem, 60)!r} is not the start of a file name; give the folder with out")
    one = result if isinstance(result, Result) else load(result)
    recording, folder = one.selection(space, heights), checked_path(out, "out")
    chosen = recording.people if people is None else list(people)
    if missing := set(chosen) - set(recording.people):
        raise UsageError(f"people: unknown id {min(missing)}")
    for target in targets(recording, names, chosen, folder, stem):
        if os.path.lexists(target) and not overwrite:
            raise UsageError(f"{target} exists; give overwrite=True to replace it")
    with file_errors(folder):
        make_folder(folder)
    made: list[Written] = []
    if problems := export_all(recording, names, chosen, folder, stem, made.append, _warn):
        raise PoseError("; ".join(problems))
    return [written.path for written in made]


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=2)
