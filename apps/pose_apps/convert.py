"""`pose-convert`: export a result to other formats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from pose.body.rigs import RIGS
from pose.errors import PoseError, UsageError
from pose.export import FORMATS
from pose.export.bvh_skeletons import BVH_SKELETONS, PLAIN
from pose.structures.defaults import CAMERA
from pose.utils.options import REQUIRED, Options, argument, option, overwrite_option, quiet_option, same_option
from pose.utils.shown import shown
from pose.world.given import read_heights
from pose_apps.clip import RunConfig
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import command_parser, config_of
from pose_apps.support.status import StatusLine
from pose_apps.support.world import read_up

if TYPE_CHECKING:
    from pose.export import Selection, Written


CHARACTERS = (".glb", ".vrm", ".fbx")  # files of the user's own character


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions(Options):
    """Options of `pose-convert`."""

    poses: str = argument(REQUIRED, "a poses.npz, or its folder", metavar="POSES.npz")
    to: str = option(REQUIRED, f"formats, separated by commas: {', '.join(FORMATS)}", metavar="FORMATS")
    out: str | None = option(None, "folder for the files; default: the folder of the result", metavar="DIR")
    person: str | None = option(None, "export only these ids, separated by commas", metavar="ID")
    fps: float | None = option(None, "resample the motion to this frame rate in frames/s")
    start: float = same_option(RunConfig, "start")
    end: float = same_option(RunConfig, "end")
    space: str | None = same_option(RunConfig, "space")
    pitch: float | None = same_option(RunConfig, "pitch", "pitch of the camera in degrees, positive if it looks up")
    roll: float | None = same_option(RunConfig, "roll", "roll of the camera in degrees, clockwise")
    height: str | None = same_option(RunConfig, "height")
    trim: bool = same_option(RunConfig, "trim")
    rig: str | None = option(
        None,
        f"bone names of the characters in glb, usd and fbx (default: {RIGS[0]}), and in bvh with the bones of the "
        "character (default: the plain skeleton); sticks: the plain skeleton",
        choices=RIGS,
        metavar="NAME",
    )
    foot_lock: bool = option(True, "hold the soles of characters on the floor during contacts (world coordinates)")
    character: str | None = option(
        None, "glb and fbx: your own rigged character (.glb, .vrm, .fbx), which moves as each person", metavar="FILE"
    )
    bones: str | None = option(
        None, "JSON file with names of its bones, if they are not known: docs/guides/characters.md", metavar="FILE.json"
    )
    solve: str | None = option(
        None,
        "opensim: scale this model and solve for angles, and moments of walks, with the package opensim",
        metavar="MODEL.osim",
    )
    z_up: bool = option(False, "write csv, parquet, trc and c3d with z up (x, -z, y) instead of y")
    bvh_skeleton: str = option(
        PLAIN, "names, axes and rest pose of bvh files, for other programs", choices=BVH_SKELETONS, metavar="NAME"
    )
    video: str | None = option(None, "source video, for formats that contain images (rrd, html)", metavar="FILE")
    overwrite: bool = overwrite_option("existing files")
    quiet: bool = quiet_option()

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if self.fps is not None and not 0 < self.fps <= 1000:
            raise UsageError(f"--fps {self.fps:g}: must be above 0, at most 1000")
        if not 0 <= self.start < self.end:
            raise UsageError(
                f"--start {self.start:g} --end {self.end:g}: the start must be 0 or more, the end after it"
            )
        read_heights(self.height)
        for name in ("pitch", "roll"):
            if getattr(self, name) is not None and self.space == CAMERA:
                raise UsageError(f"{name}: has no effect on the camera frame; omit --space {CAMERA}")
        for name in ("character", "bones", "solve", "video"):
            if (given := getattr(self, name)) is not None and not Path(given).is_file():
                raise UsageError(f"--{name} {given}: no such file")
        if self.bones is not None and self.character is None:
            raise UsageError("--bones: names the bones of --character, which is not given")
        if self.character is not None and Path(self.character).suffix.lower() not in CHARACTERS:
            raise UsageError(f"--character {self.character}: expected a file that ends with {', '.join(CHARACTERS)}")
        if self.character is not None and self.rig is not None:
            raise UsageError("--rig: names the bones of our own character; --character has its own")
        if self.z_up and self.space == CAMERA:
            raise UsageError(f"--z-up: the camera frame has no vertical; omit --space {CAMERA}")


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-convert`."""
    about = "Write a poses.npz of pose-run, of the live demo or of pose-lift in other programs' formats."
    options = config_of(ConvertOptions, parse_arguments(command_parser("pose-convert", about, ConvertOptions), argv))
    names = list(dict.fromkeys(name.strip() for name in options.to.split(",") if name.strip()))
    if not names:
        raise UsageError("--to: give at least one format")
    with StatusLine("converting", hidden=options.quiet) as status:
        return _convert(options, names, status.print)


def _convert(options: ConvertOptions, names: list[str], log: Callable[[str], None]) -> int:
    from pose.export import check_formats, export_all, open_selection, targets
    from pose.results import result_file
    from pose.utils.written_files import check_not_input
    from pose_apps.support.exports import check_targets, unwritten
    from pose_apps.support.outputs import made_folder

    check_formats(names, "--to")
    _check_used(options, names)
    poses = result_file(Path(options.poses))
    recording = open_selection(
        poses,
        fps=options.fps,
        start=options.start,
        end=options.end,
        space=options.space,
        video=None if options.video is None else Path(options.video),
        up=read_up(options.pitch, options.roll),
        heights=read_heights(options.height),
        trim=options.trim,
        rig=options.rig,
        z_up=options.z_up,
    )
    recording.foot_lock = options.foot_lock
    recording.character = None if options.character is None else Path(options.character)
    recording.bone_table = None if options.bones is None else Path(options.bones)
    recording.opensim_model = None if options.solve is None else Path(options.solve)
    recording.bvh_skeleton = options.bvh_skeleton
    people = _people(options.person, recording)
    folder = poses.parent if options.out is None else Path(options.out)
    inputs = [given for given in (options.video, options.character) if given is not None]
    check_not_input(targets(recording, names, people, folder, poses.stem), inputs)
    if not options.overwrite:
        check_targets(recording, names, people, folder, poses.stem)
    made: list[Path] = []

    def done(written: "Written") -> None:
        made.append(written.path)
        if not options.quiet:
            log(str(written))

    with made_folder(folder):
        if not options.quiet:
            log(f"space: {recording.space.note}")
        problems = export_all(recording, names, people, folder, poses.stem, done)
    if problems:
        raise PoseError("; ".join(problems))
    if not made:
        raise PoseError(f"{poses}: contains no person; nothing was written")
    if not options.quiet:
        for line in unwritten(names, people, made, poses.stem):
            log(line)
    return 0


def _check_used(options: ConvertOptions, names: list[str]) -> None:
    """Check that every option of single formats applies to one of the formats `names`."""
    defaults = {entry.name: entry.default for entry in fields(ConvertOptions)}
    for option_name in sorted({used for form in FORMATS.values() for used in form.options}):
        formats = [name for name, form in FORMATS.items() if option_name in form.options]
        if getattr(options, option_name) != defaults[option_name] and not set(formats) & set(names):
            given = option_name.replace("_", "-")
            raise UsageError(f"--{given}: applies only to {', '.join(formats)}; --to has {', '.join(names)}")


def _people(wanted: str | None, recording: "Selection") -> list[int]:
    from pose.body.selection import some_ids

    known = recording.people
    if wanted is None:
        return known
    people = []
    for word in filter(None, (word.strip() for word in wanted.split(","))):
        if not (word.isascii() and word.isdigit()) or len(word) > 20 or int(word) not in known:
            raise UsageError(f"--person: {shown(word, 40)!r} is not in the result; it has {some_ids(known)}")
        people.append(int(word))
    if not people:
        raise UsageError(f"--person: name at least one id; the result has {some_ids(known)}")
    return list(dict.fromkeys(people))
