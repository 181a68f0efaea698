"""C3D: joints as points, for the programs of motion capture. Written by ezc3d, which holds all frames in memory.

A missing point has coordinates 0 and residual -1: NaN is not portable.
"""

from pathlib import Path

import numpy as np

from pose.export.format import Notes, PersonFormat
from pose.export.text import missing, timing
from pose.export.tracks import Track
from pose.skeletons import H36M17
from pose.system.whole_file import whole_file

MOST_FRAMES = 65_535  # that the header can count; ezc3d and others read the true number from a parameter


def write(track: Track, target: Path) -> Notes:
    import ezc3d

    assert track.rate is not None, "C3D has one rate"
    points = np.zeros((4, len(H36M17), len(track)))
    residuals = np.full((1, len(H36M17), len(track)), -1.0)
    for span in track.spans():
        at = span.start + np.flatnonzero(span.known)
        points[:3, :, at] = 1000 * track.space.to_file(span.places[span.known]).transpose(2, 1, 0)
        residuals[:, :, at] = 0
    points[3] = 1
    file = ezc3d.c3d()
    file["parameters"]["POINT"]["RATE"]["value"] = [track.rate]
    file["parameters"]["POINT"]["UNITS"]["value"] = ["mm"]
    file["parameters"]["POINT"]["LABELS"]["value"] = list(H36M17.names)
    for name, value in (("X_SCREEN", "+X"), ("Y_SCREEN", "+Y")):
        file.add_parameter("POINT", name, [value])
    file["data"]["points"] = points
    file["data"]["meta_points"]["residuals"] = residuals
    with whole_file(target) as hidden:
        named = hidden.with_suffix(".c3d")  # ezc3d adds it where it is not there
        file.write(str(named))
        named.replace(hidden)
    long = [f"more than {MOST_FRAMES} frames: some programs read only that many"] if len(track) > MOST_FRAMES else []
    return [f"{timing(track)}; millimetres", *missing(track), *long]


FORMAT = PersonFormat(".c3d", write, extra="formats", modules=("ezc3d",))
