"""A folder of files for OpenSim: markers, joint angles, ground forces of a walk, and setup files of OpenSim's tools.

OpenSim expects a person who faces +x, within some metres of the origin: its models clamp the pelvis' position. Markers
and angles are therefore rotated about the vertical, and centred on the path of the pelvis.

Sources of the formats: OpenSim 4's user guide (Storage Files, External Loads, Inverse Dynamics Tool).
"""

import math
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from pose.body.digits import joined, merged, number, to_bytes
from pose.body.ground_forces import GRAVITY, INTERVAL, GroundForces, ground_forces
from pose.body.segments import motions
from pose.body.selection import SAMPLE
from pose.body.skeleton import ORDER, pelvis_frame
from pose.body.soles import FOOT_NAMES, marker_names, marker_spans
from pose.body.timeline import TrackSpan, stretches, thinned
from pose.body.tracks import Track
from pose.errors import PoseError
from pose.export import opensim_setup as setup
from pose.export.format import Notes, PersonFormat, missing, timing, whole_folder
from pose.export.mot import Placement, facing, write_mot
from pose.export.trc import write_trc
from pose.structures.defaults import WORLD
from pose.structures.rotations import rotate
from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.utils.whole_file import whole_file, write_whole
from pose.world.gravity import ANKLES

FILES = ("markers.trc", "motion.mot", "motion.mot.filled.csv", "markers.xml", "scale.xml", "ik.xml", "README.txt")
# Percentile of the trunk lengths that scales the torso; above the median, because bending shortens the trunk.
_UPRIGHT_PERCENTILE = 75
README = f"""Markers, joint angles and set-up files for OpenSim 4.

1. Copy the model here as {setup.MODEL}: https://simtk.org/projects/full_body, or Models/Rajagopal of
   https://github.com/opensim-org/opensim-models, or Rajagopal2015.osim of the Python package nimblephysics. Models with
   the same bodies run, too (Model_Pose2Sim_simple.osim of the Python package pose2sim), with larger marker errors.
2. Run (`pose-convert --solve MODEL` has done 1 and 2 if ik.mot is here):
       opensim-cmd run-tool scale.xml      (makes scaled.osim)
       opensim-cmd run-tool ik.xml         (makes ik.mot and ik_marker_errors.sto)
       opensim-cmd run-tool id.xml         (straight walks: makes id.sto, N m for a mass of {setup.MASS:g} kg)

markers.trc   joint centres, heels and toes, m; turned by {{degrees:.1f}} degrees about y, so that the person faces +x
              on average, then moved by {{x:.3f}} {{y:.3f}} {{z:.3f}} m, so that the path of the pelvis has its
              middle at x = z = 0 while the tools run. `lumbar` is no observed point: it tilts the pelvis as the
              trunk leans.
motion.mot    joint angles that the joints show without OpenSim, in the same frame; for comparison
markers.xml   the model's markers
forces.mot    straight walks: forces on both feet, estimated from the times of the steps, not measured. Vertical force
              of both feet: 90 % within {INTERVAL:g} body weights; docs/studies/analysis.md has the errors
moments.csv   with --solve: joint moments of id.sto, N m per kg of body mass

The models clamp the position of the pelvis, Rajagopal's to 5 m along x and 3 m along z. This person moves up to
{{reach_x:.1f}} m along x and {{reach_z:.1f}} m along z: where that is more, widen the range of pelvis_tx and pelvis_tz.

Scale and IK use the longest stretch without a gap, {{start:.3f}} to {{end:.3f}} s: change time_range for others.
Forces and model are for {setup.MASS:g} kg; moments per kg hold for any mass. Hip rotation of ik.mot is unreliable: only
the plane of the bent knee shows it. motion.mot leaves it out. A model that motion.mot poses has its hips where the
markers are; its shoulders lie some centimetres away, because the angles of the back are measured without the model.
"""


def write(track: Track, target: Path) -> Notes:
    """Write the track of one person to the folder `target` for OpenSim; return notes for the export summary."""
    assert track.rate is not None, "TRC and MOT have one rate"
    first, last = max(stretches(track.known), key=lambda ends: ends[1] - ends[0])
    place = _centred(track, first, last)
    package = _Package(track, place)
    model, solved = track.recording.opensim_model, []
    with whole_folder(target, (*FILES, *FORCE_FILES, *(() if model is None else SOLVED_FILES))) as folder:
        write_trc(track, folder / "markers.trc", package.names, package.spans())
        notes = write_mot(track, folder / "motion.mot", place)
        span = float(track.times[first]), float(track.times[last])
        write_whole(folder / "markers.xml", setup.marker_set(package.thorax().tolist(), package.feet))
        write_whole(folder / "scale.xml", setup.scale_setup(f"person{track.person}", package.trunk, span))
        write_whole(folder / "ik.xml", setup.ik_setup(span, package.feet))
        x, y, z = place.offset
        words = {"degrees": place.degrees, "x": x, "y": y, "z": z, "start": span[0], "end": span[1]}
        text = README.format(**words, reach_x=package.reach[0], reach_z=package.reach[2])
        write_whole(folder / "README.txt", text)
        walk = write_forces(track, folder, place, first, last)
        solved += [*filter(None, [walk]), *([] if model is None else solve_package(folder, model))]
    moved = f"turned by {place.degrees:.0f} degrees about y, so that the person faces +x; centred on the path"
    return [f"{timing(track)}; metres and degrees; {moved}; for {setup.MODEL}", *solved, *missing(track), *notes[1:]]


def _centred(track: Track, first: int, last: int) -> Placement:
    """Return the placement after which the person faces +x, and is in the model's range between two frames."""
    turn = facing(track)
    joints = track.space.to_file(track.read(first + thinned(np.arange(last + 1 - first), SAMPLE)).joints)
    path = rotate(turn, joints[:, 0])
    low, high = path.min(axis=0), path.max(axis=0)
    offset = -(low + high) / 2
    if track.space.name == WORLD and low[1] > -1 and high[1] < setup.MAX_PELVIS_M:
        offset[1] = 0  # the floor stays at y = 0
    else:
        offset[1] = -float(joints[:, ANKLES, 1].min())  # people on stairs, or the camera frame
    return Placement(turn, offset)


class _Package:
    """The markers of a person, placed for the model."""

    def __init__(self, track: Track, place: Placement) -> None:
        self._track, self._place = track, place
        names = marker_names(track)
        shown = np.zeros(len(FOOT_NAMES), bool)
        if len(names) > len(H36M17):
            for _, points in marker_spans(track, FOOT_NAMES):
                shown |= np.isfinite(points[..., 0]).any(axis=0)
        self.feet = tuple(name for name, at_all in zip(FOOT_NAMES, shown, strict=True) if at_all)
        self.names = (*setup.limb_markers(), setup.LUMBAR, setup.THORAX, *self.feet)
        self.trunk = _trunk(track)
        self.reach = np.zeros(3)  # largest distance of the pelvis from the origin along each axis, m

    def spans(self) -> Iterator[tuple[TrackSpan, F64]]:
        """Yield all frames in portions, with the markers (n, M, 3) m; NaN where one is missing."""
        limbs, read = setup.limb_markers(), (*H36M17.names, *self.feet)
        columns = [read.index(name) for name in limbs]
        for span, points in marker_spans(self._track, read):
            placed = rotate(self._place.quaternion, points) + self._place.offset
            back = placed[:, 0] + self._lumbar(placed[:, : len(H36M17)])
            thorax = placed[:, H36M17.index("thorax")]
            if span.known.any():
                self.reach = np.maximum(self.reach, np.abs(placed[span.known, 0]).max(axis=0))
            parts = [placed[:, columns], back[:, None], thorax[:, None], placed[:, len(H36M17) :]]
            yield span, np.concatenate(parts, axis=1)

    def _lumbar(self, joints: F64) -> F64:
        """Return the vectors (n, 3) m from the midpoint of the hips to the back joint of a pelvis that leans as the
        trunk."""
        # In the model's neutral posture the shoulders are not exactly above the hips.
        back = (np.array(setup.BACK) - np.array(setup.HIPS)) * self.trunk.pelvis
        forward, up = (back + np.array(setup.SHOULDERS) * self.trunk.length)[:2]
        lean = math.atan2(-forward, up)
        x = back[0] * math.cos(lean) + back[1] * math.sin(lean)
        y = back[1] * math.cos(lean) - back[0] * math.sin(lean)
        _, upward, ahead = pelvis_frame(joints[:, ORDER])
        return np.asarray(x * ahead + y * upward)

    def thorax(self) -> F64:
        """Return the position of the thorax in the torso of the unscaled model, m."""
        ends = [H36M17.index(name) for name in ("left_shoulder", "right_shoulder", "thorax")]
        offsets = []
        for span in self._track.sample():
            joints = self._track.space.to_file(span.joints)
            _, upward, ahead = pelvis_frame(joints[:, ORDER])
            offset = joints[:, ends[2]] - joints[:, ends[:2]].mean(axis=1)
            offsets.append(np.stack([(offset * ahead).sum(axis=1), (offset * upward).sum(axis=1)], axis=1))
        forward, up = np.median(np.concatenate(offsets), axis=0) / max(self.trunk.length, 1e-6)
        thorax: F64 = np.array(setup.SHOULDERS) + np.array([forward, up, 0.0])
        return thorax


def _trunk(track: Track) -> setup.Trunk:
    """Return the torso's scale factors, so that shoulders and their height above the hips are the person's."""
    names = [f"{side}_{joint}" for joint in ("hip", "shoulder") for side in setup.SIDES]
    ends = [H36M17.index(name) for name in names]
    lengths, widths = [], []
    for span in track.sample():
        hips, shoulders = span.joints[:, ends[:2]], span.joints[:, ends[2:]]
        lengths.append(np.linalg.norm(shoulders.mean(axis=1) - hips.mean(axis=1), axis=1))
        widths.append([np.linalg.norm(np.diff(pair, axis=1)[:, 0], axis=1) for pair in (hips, shoulders)])
    length = float(np.percentile(np.concatenate(lengths), _UPRIGHT_PERCENTILE))
    hips_apart, shoulders_apart = np.median(np.concatenate(widths, axis=1), axis=1) / 2
    pelvis = float(hips_apart / setup.HALF_HIPS)
    back = (np.array(setup.BACK) - np.array(setup.HIPS)) * pelvis
    torso = _reach(back, np.array(setup.SHOULDERS), length)
    return setup.Trunk(torso, float(shoulders_apart / setup.HALF_SHOULDERS), pelvis)


def _reach(start: F64, along: F64, length: float) -> float:
    """Return the largest s with |start + s along| = length, or the s of the nearest point if there is none."""
    a, b, c = float(along @ along), float(start @ along), float(start @ start) - length**2
    return (-b + math.sqrt(max(b * b - a * c, 0.0))) / a


FORMAT = PersonFormat("-opensim", write, options=("solve",))


FORCE_FILES = ("forces.mot", "loads.xml", "id.xml")
COORDINATE_HZ = 6.0  # cut-off of the angles before their second derivatives
_SIDES = (("r", 1), ("l", 0))  # letter of OpenSim, foot of `GroundForces`
_COLUMNS = [f"ground_{kind}{axis}" for letter, _ in _SIDES for kind in (f"force_{letter}_v", f"force_{letter}_p",
            f"torque_{letter}_") for axis in "xyz"]  # fmt: skip


def write_forces(track: Track, folder: Path, place: Placement, first: int, last: int) -> str:
    """Write the forces of the longest straight walk between two frames; return a note, empty without a walk."""
    if track.space.name != WORLD:
        return ""
    times = track.times[first : last + 1]
    found = _forces(track, first, last)
    if found is None:
        return ""
    begin, end = max(stretches(found.known), key=lambda ends: ends[1] - ends[0])
    weight = setup.MASS * GRAVITY
    parts = []
    for _, foot in _SIDES:
        force, point = rotate(place.quaternion, found.forces[:, foot]), rotate(place.quaternion, found.points[:, foot])
        parts += [weight * force, point + place.offset, np.zeros_like(force)]
    table = np.concatenate(parts, axis=1)
    with whole_file(folder / FORCE_FILES[0]) as hidden, hidden.open("wb") as file:
        head = ("forces", "version=1", f"nRows={len(times)}", f"nColumns={1 + len(_COLUMNS)}", "inDegrees=no",
                "endheader", "\t".join(["time", *_COLUMNS]), "")  # fmt: skip
        file.write("\n".join(head).encode("ascii"))
        file.write(to_bytes(joined(number(times, 6), merged(number(table, 5, prefix="\t")), "\n")))
    write_whole(folder / FORCE_FILES[1], setup.loads_setup([letter for letter, _ in _SIDES]))
    write_whole(folder / FORCE_FILES[2], setup.dynamics_setup((float(times[begin]), float(times[end])), COORDINATE_HZ))
    return (
        f"ground forces of a walk, {times[begin]:.2f} to {times[end]:.2f} s, for a body mass of {setup.MASS:g} kg; the "
        f"vertical force of both feet within {INTERVAL:g} body weights with a probability of 90 %"
    )


def _forces(track: Track, first: int, last: int) -> GroundForces | None:
    at = np.arange(first, last + 1)
    span = track.read(at)
    joints: F64 = track.space.to_file(span.joints)
    for motion in motions(span.times, joints, span.sigma):
        found = ground_forces(motion, span.times)
        if found.known.any():
            return found
    return None


SOLVED_FILES = (
    setup.MODEL, "scaled.osim", "scale-factors.xml", "id.sto", "moments.csv", "ik.mot", "ik_marker_errors.sto",
)  # fmt: skip
_ERRORS = "ik_ik_marker_errors.sto"  # as the tool names it


def solve_package(folder: Path, model: Path) -> list[str]:
    """Scale `model` to a folder's markers, solve, and return notes on residuals; PoseError if it fails."""
    if find_spec("opensim") is None:
        raise PoseError("--solve needs the package opensim: pip install 'pose-run[opensim]'")
    # In a process of its own: OpenSim ends the process on some models, and works in the working directory.
    # -P: the folder of the script has modules with names of the standard library.
    call = [sys.executable, "-P", files("pose.export").joinpath("opensim_tools.py"), model.resolve(), setup.MODEL]
    done = subprocess.run(list(map(str, call)), cwd=folder, capture_output=True, text=True, check=False)
    (folder / "opensim.log").unlink(missing_ok=True)
    if done.returncode or not (folder / _ERRORS).exists():
        said = [line for line in done.stderr.splitlines() if line.strip()]
        reason = said[-1].strip() if said else "see README.txt for the models that work"
        raise PoseError(f"--solve {model}: OpenSim failed: {reason}")
    (folder / _ERRORS).rename(folder / SOLVED_FILES[-1])
    names, rows = _table(folder / SOLVED_FILES[-1])
    rms, largest = (rows[:, names.index(f"marker_error_{kind}")] for kind in ("RMS", "max"))
    error = 1000 * math.sqrt(float(np.mean(rms**2)))
    notes = [f"solved by OpenSim: marker error {error:.0f} mm RMS, at most {1000 * largest.max():.0f} mm in a frame"]
    if (folder / "id.sto").exists():
        notes.append(_moments(folder))
    return notes


def _moments(folder: Path) -> str:
    """Write the joint moments per kg of body mass to `moments.csv`; return a note on the residual force."""
    names, rows = _table(folder / "id.sto")
    turning = [at for at, name in enumerate(names) if name.endswith("_moment") and not name.startswith("pelvis")]
    lines = [",".join(["time", *(f"{names[at]}_nm_per_kg" for at in turning)])]
    lines += [",".join([f"{row[0]:.6f}", *(f"{row[at] / setup.MASS:.4f}" for at in turning)]) for row in rows]
    write_whole(folder / "moments.csv", "\n".join([*lines, ""]))
    force = rows[:, [names.index(f"pelvis_t{axis}_force") for axis in "xyz"]]
    share = math.sqrt(float((force**2).sum(axis=1).mean())) / (setup.MASS * GRAVITY)
    return f"joint moments in moments.csv; residual force {100 * share:.0f} % of the body weight RMS"


def _table(path: Path) -> tuple[list[str], F64]:
    """Return the names of the columns of a file of OpenSim, and its values (T, columns)."""
    _, _, rest = path.read_text(encoding="utf-8").partition("endheader\n")
    lines = [line.split() for line in rest.splitlines() if line.strip()]
    if len(lines) < 2:
        raise PoseError(f"{path}: OpenSim solved no frame")
    return lines[0], np.array(lines[1:], np.float64)
