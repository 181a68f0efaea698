"""Final summary of `pose-run`: people, limitations and result files."""

import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pose.structures.defaults import SEEN_SCORE
from pose.utils.shown import shown

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose.results.cache.run import Found
    from pose.structures.skeletons import Skeleton
    from pose.structures.types import FrameResult
    from pose.video import Source
    from pose.world.camera_motion.decision import Decision
    from pose.world.camera_motion.verdict import CameraMotion
    from pose_apps.support.outputs import Outputs

MAX_LINE_CHARACTERS = 20_000  # names of many files are long
MAX_FILES = 4  # more are counted
MIN_REPORTED_FRACTION = 0.01  # of joints with low scores
NOBODY = "no person was detected; the results are empty"


@dataclass(slots=True)
class Tally:
    """Statistics of a run."""

    frames: int = 0  # number of processed frames
    frames_without_people: int = 0  # number of frames without people
    first_time: float = 0.0  # time of the first frame, s
    last_time: float = 0.0  # time of the last frame, s
    people_in_frames: int = 0  # number of people summed over all frames
    ids: set[int] = field(default_factory=set)  # ids of all people
    max_people: int = 0  # maximum number of people in one frame
    untracked: int = 0  # maximum number of people in one frame who were detected but not tracked
    joints: int = 0  # number of 2D joints of all people in all frames
    low_confidence_joints: int = 0  # number of these 2D joints with a score below 0.3
    score_sum: float = 0.0  # sum of the scores of these 2D joints
    joints_3d: int = 0  # number of 3D joints of all people in all frames
    sigma_sum: float = 0.0  # sum of the uncertainties (sigma) of these 3D joints, mm
    hands: int | None = None  # number of detected hands of all people in all frames; None if hands were not estimated
    faces: int | None = None  # number of detected faces of all people in all frames; None if faces were not estimated
    complete: bool = False  # whether all frames of the input were processed
    doubtful: set[int] = field(default_factory=set)  # ids of tracks that may not be people
    motion: "CameraMotion | None" = None  # motion of the camera; None if unknown
    world: list[str] = field(default_factory=list)  # details about the world coordinates, for --verbose
    decisions: list[str] = field(default_factory=list)  # lines of text about what an option of the user would decide

    def add(self, result: "FrameResult", skeleton: "Skeleton") -> None:
        """Add a frame to the statistics of people and 2D joints. `skeleton` is that of the 2D keypoints."""
        from pose.structures.skeletons import to_h36m17

        people = result.people
        if self.frames == 0:
            self.first_time = result.time
        self.last_time = result.time
        self.frames += 1
        self.frames_without_people += not len(people)
        self.people_in_frames += len(people)
        self.ids.update(people.ids.tolist())
        self.max_people = max(self.max_people, len(people))
        self.untracked = max(self.untracked, people.untracked)
        if len(people):
            _, scores = to_h36m17(people.keypoints, people.scores, skeleton)
            self.joints += scores.size
            self.low_confidence_joints += int((scores < SEEN_SCORE).sum())
            self.score_sum += float(scores.sum())
        if people.hands is not None:
            self.hands = (self.hands or 0) + int((people.hands.scores > 0).any(axis=2).sum())
        if people.faces is not None:
            self.faces = (self.faces or 0) + int((people.faces.scores > 0).sum())

    def add_sigma(self, result: "FrameResult") -> None:
        """Add the uncertainties of a frame's final result, because later steps change sigma."""
        self.joints_3d += result.poses.sigma.size
        self.sigma_sum += float(result.poses.sigma.sum())


FROM_CACHE = {
    "people": "2D: read from the cache (--cache off computes it again)",
    "everything": "2D and 3D: read from the cache (--cache off computes them again)",
}


def report(
    tally: Tally, source: "Source", pipeline: "Pipeline", files: list[Path], seconds: float,
    cached: "Found" = "nothing", *, verbose: bool = False,
) -> None:  # fmt: skip
    """Print the summary of a video: what was found, what the user should know or decide, the files, and details."""
    video_seconds = tally.last_time - tally.first_time + 1 / source.info.fps
    people = counted(len(tally.ids), "person", "people") if tally.ids else "no people"
    if tally.doubtful:
        people += f" ({len(tally.doubtful)} doubtful)"
    print_wrapped(
        f"{counted(tally.frames, 'frame')}, {video_seconds:.1f} s of video, {people}; took {seconds:.1f} s "
        f"({tally.frames / seconds:.1f} frames/s, {video_seconds / seconds:.2f} x real time)"
    )
    details = [*_shortcomings(tally), *([FROM_CACHE[cached]] if cached != "nothing" else [])]
    details += [*filter(None, [pipeline.fits.line, *tally.world]), *_camera_lines(tally, source, pipeline)]
    for line in [*_warnings(tally, pipeline), *filter(None, tally.decisions), *(details if verbose else [])]:
        print_wrapped(line)
    print_wrapped(files_line(files, verbose=verbose))


def _camera_lines(tally: Tally, source: "Source", pipeline: "Pipeline") -> Iterator[str]:
    camera = pipeline.camera(source.info.size, source.info.focal_35mm)
    if tally.ids and camera.known and not pipeline.camera(source.info.size).known:
        yield f"camera: focal length {source.info.focal_35mm:g} mm (35 mm equivalent), from the metadata of the file"
    if tally.ids and not camera.known:
        fov = camera.fov_degrees
        yield f"camera: intrinsics unknown, field of view of {fov:.0f} degrees assumed (--intrinsics sets them)"


def files_line(files: list[Path], *, verbose: bool) -> str:
    """Return the line of the files: all of them, or the first and how many more are in their folder."""
    if verbose or len(files) <= MAX_FILES:
        return f"results: {', '.join(map(str, files))}"
    return f"results: {', '.join(map(str, files[:MAX_FILES]))} and {len(files) - MAX_FILES} more (--verbose)"


def report_stills(
    tally: Tally, source: "Source", pipeline: "Pipeline", files: list[Path], seconds: float,
    cached: "Found" = "nothing", *, verbose: bool = False,
) -> None:  # fmt: skip
    """Print the summary of single images, wrapped to the width of the terminal."""
    print_wrapped(
        f"{counted(tally.frames, 'image')}, {counted(tally.people_in_frames, 'person', 'people')}; "
        f"took {seconds:.1f} s; 3D from single images; see sigma for its uncertainty"
    )
    for line in [*_warnings(tally, pipeline), *(_shortcomings(tally, "image") if verbose else [])]:
        print_wrapped(line)
    galleries = [path for path in files if path.suffix == ".jpg"]
    print_wrapped(
        f"results: {', '.join(map(str, galleries or files[:2]))} and more in {files[0].parent}" if files else ""
    )


def _warnings(tally: Tally, pipeline: "Pipeline") -> Iterator[str]:
    """Yield what is missing from the results and could be changed, one line each."""
    if not tally.ids:
        yield NOBODY
    if tally.untracked:
        full = tally.max_people >= pipeline.config.max_people
        reason = (
            f"limit: --max-people {pipeline.config.max_people}"
            if full
            else "too small, occluded or blurred for keypoints"
        )
        yield f"detected but not tracked: up to {counted(tally.untracked, 'person', 'people')} at a time ({reason})"
    if pipeline.fallback_reason:
        yield pipeline.fallback_reason


def _shortcomings(tally: Tally, what: str = "frame") -> Iterator[str]:
    """Yield the limitations of the results, one line each."""
    if tally.ids and tally.frames_without_people:
        yield f"no person in {tally.frames_without_people} of {counted(tally.frames, what)}"
    if tally.low_confidence_joints > MIN_REPORTED_FRACTION * tally.joints:
        fraction = tally.low_confidence_joints / tally.joints
        yield f"{fraction:.0%} of the joints have low 2D confidence; see sigma for their uncertainty"
    if tally.hands is not None and tally.people_in_frames:
        yield f"hands: {tally.hands / (2 * tally.people_in_frames):.0%} of the hands of tracked people detected"
    if tally.faces is not None and tally.people_in_frames:
        yield f"faces: {tally.faces / tally.people_in_frames:.0%} of the faces of tracked people detected"


def counted(count: int, one: str, several: str | None = None) -> str:
    """Return a count with its noun in singular or plural, such as `1 frame` or `2 frames`."""
    return f"{count} {one if count == 1 else several or f'{one}s'}"


def print_wrapped(line: str) -> None:
    """Print a line of text, wrapped between words to the width of the terminal."""
    line = shown(line, MAX_LINE_CHARACTERS)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    print(textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) if width > 0 else line)


def interruption(tally: Tally, source: "Source", results: "Outputs", wanted: "Outputs") -> KeyboardInterrupt:
    """Return the exception to raise after Ctrl-C, with a message about the files that were kept."""
    if tally.frames == 0:
        return KeyboardInterrupt("no frame finished; no results written")
    known = source.info.frame_count
    text = f"{tally.frames} of {known} frames" if known and known >= tally.frames else counted(tally.frames, "frame")
    missing = ", ".join([*({"overlay"} & wanted.files.keys()), *wanted.exports])
    how = "marked incomplete" if not tally.complete else f"without {missing}" if missing else "complete"
    where = "" if results is wanted else f" in {results.folder}; the earlier result is unchanged"
    return KeyboardInterrupt(f"{text} kept, {how}{where}")


_FOCAL_SIGMA = 0.06  # minimum relative change of the focal length that is reported
_UNSEEN = (
    0.3  # m/s; slower translation in front of a wall is often mistaken for rotation (docs/studies/moving-camera.md)
)
_DRIFTS = 0.15  # m/s; minimum speed of standing feet that is reported


def motion_line(decision: "Decision") -> str:
    """Describe the camera motion with measured values, in one line; empty if it was not measured."""
    from pose.world.camera_motion.verdict import FIXED, ROTATING, STATIC, TRANSLATING, UNKNOWN, ZOOMING

    motion, scenes = decision.motion, decision.motion.scenes
    known_scenes = sum(scene.world for scene in scenes)
    rest = (
        f"; unknown in {len(scenes) - known_scenes} of {len(scenes)} scenes" if 0 < known_scenes < len(scenes) else ""
    )
    if motion.kind == FIXED:
        return ""
    if motion.kind == UNKNOWN:
        return f"camera motion: unknown, measured in {motion.known:.0%} of the frames with people"
    if motion.kind == STATIC:
        return f"camera motion: none{rest}"
    text = f"camera motion: {motion.kind}, pan {motion.pan:.1f}, tilt {motion.tilt:.1f}, roll {motion.roll:.1f} degrees"
    text += f", shake {motion.shake:.2f} degrees rms"
    text += f", zoom {motion.zoom:.2f} x" if motion.zoom > 1.01 else ""
    if decision.path is not None:
        text += f"; rotation and zoom compensated (+- {max(motion.sigma_degrees, 0.1):.1f} degrees)"
        if motion.translation_known:
            text += f"; translation compensated, {motion.distance:.1f} m (+- {motion.distance_sigma:.1f})"
        elif motion.kind == TRANSLATING:
            text += "; translation not compensated"
        elif motion.drift > _DRIFTS:
            text += f"; standing feet drift by {motion.drift:.2f} m/s, so the camera may move this slowly"
        elif motion.kind in (ROTATING, ZOOMING):
            text += f"; a translation slower than {_UNSEEN:g} m/s may remain unnoticed"
        if decision.focal != 1.0:
            text += f"; focal length {decision.focal:.2f} x the assumed one, from the images"
        elif motion.focal_sigma < _FOCAL_SIGMA and abs(motion.focal_ratio - 1) > _FOCAL_SIGMA:
            text += (
                f"; its rotation fits a focal length of {motion.focal_ratio:.2f} x the one used (--intrinsics sets it)"
            )
    return text + rest
