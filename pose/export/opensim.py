"""A folder of files for OpenSim: markers, joint angles, and setup files of the Scale and Inverse Kinematics tools.

OpenSim expects a person who faces +x. Markers and angles are rotated about the vertical accordingly; otherwise forward
lean would appear as `pelvis_list`.
"""

import math
from pathlib import Path

import numpy as np

from pose.body.timeline import stretches
from pose.body.tracks import Track
from pose.export import opensim_setup as setup
from pose.export.folder import whole_folder
from pose.export.format import Notes, PersonFormat
from pose.export.mot import facing, write_mot
from pose.export.text import missing, timing
from pose.export.trc import write_trc
from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.utils.whole_file import write_whole

FILES = ("markers.trc", "motion.mot", "motion.mot.filled.csv", "markers.xml", "scale.xml", "ik.xml", "README.txt")
# Percentile of the trunk lengths that scales the torso; above the median, because bending shortens the trunk.
_UPRIGHT_PERCENTILE = 75
README = f"""Markers, joint angles and set-up files for OpenSim 4.

1. Copy the model here as {setup.MODEL}: https://simtk.org/projects/full_body, or Models/Rajagopal of
   https://github.com/opensim-org/opensim-models, or Rajagopal2015.osim of the Python package nimblephysics. Models with
   the same bodies run, too (Model_Pose2Sim_simple.osim of the Python package pose2sim), with larger marker errors.
2. Run:
       opensim-cmd run-tool scale.xml      (makes scaled.osim)
       opensim-cmd run-tool ik.xml         (makes ik.mot and ik_marker_errors.sto)

markers.trc   joint centres, m; turned by {{degrees:.1f}} degrees about y, so that the person faces +x on average
motion.mot    joint angles that the joints show without OpenSim, in the same frame; for comparison
markers.xml   the model's markers, at the origins of its bodies

Scale and IK use the longest stretch without a gap, {{start:.3f}} to {{end:.3f}} s: change time_range for others.
The model's mass is not scaled: enter the person's mass in scale.xml. Hip rotation of ik.mot is unreliable: only the
plane of the bent knee shows it. motion.mot leaves it out. A model that motion.mot poses has its hips where the markers
are; its shoulders lie some centimetres away, because the angles of the back are measured without the model.
"""


def write(track: Track, target: Path) -> Notes:
    """Write the track of one person to the folder `target` for OpenSim; return notes for the export summary."""
    assert track.rate is not None, "TRC and MOT have one rate"
    quaternion = facing(track)
    degrees = 2 * np.degrees(np.arctan2(quaternion[2], quaternion[0]))
    with whole_folder(target, FILES) as folder:
        write_trc(track, folder / "markers.trc", quaternion, setup.markers())
        notes = write_mot(track, folder / "motion.mot", quaternion)
        first, last = max(stretches(track.known), key=lambda ends: ends[1] - ends[0])
        span = float(track.times[first]), float(track.times[last])
        write_whole(folder / "markers.xml", setup.marker_set())
        write_whole(folder / "scale.xml", setup.scale_setup(f"person{track.person}", _trunk(track), span))
        write_whole(folder / "ik.xml", setup.ik_setup(span))
        write_whole(folder / "README.txt", README.format(degrees=degrees, start=span[0], end=span[1]))
    rotation_note = f"turned by {degrees:.0f} degrees about y, so that the person faces +x"
    return [f"{timing(track)}; metres and degrees; {rotation_note}; for {setup.MODEL}", *missing(track), *notes[1:]]


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
    pelvis = (np.array(setup.BACK) - np.array(setup.HIPS)) * hips_apart / setup.HALF_HIPS
    return setup.Trunk(_reach(pelvis, np.array(setup.SHOULDERS), length), float(shoulders_apart / setup.HALF_SHOULDERS))


def _reach(start: F64, along: F64, length: float) -> float:
    """Return the largest s with |start + s along| = length, or the s of the nearest point if there is none."""
    a, b, c = float(along @ along), float(start @ along), float(start @ start) - length**2
    return (-b + math.sqrt(max(b * b - a * c, 0.0))) / a


FORMAT = PersonFormat("-opensim", write)
