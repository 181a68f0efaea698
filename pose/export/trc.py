"""TRC: joints, heels and toes as markers, for OpenSim and other biomechanics programs.

Cells are separated by tabs; a missing marker has three empty cells. Source of the rules: OpenSim's TRCFileAdapter.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from pose.body.digits import joined, merged, number, to_bytes
from pose.body.soles import marker_names, marker_spans
from pose.body.timeline import TrackSpan
from pose.body.tracks import Track
from pose.export.format import Notes, PersonFormat, missing, timing
from pose.structures.types import F64
from pose.utils.whole_file import whole_file


def write(track: Track, target: Path) -> Notes:
    """Write the track of one person to the TRC file `target`, and return notes for the export summary."""
    names = marker_names(track)
    write_trc(track, target, names, marker_spans(track, names, z_up=track.recording.z_up))
    return [f"{timing(track)}; metres", *missing(track)]


def write_trc(track: Track, target: Path, names: Sequence[str], spans: Iterable[tuple[TrackSpan, F64]]) -> None:
    """Write points (n, M, 3) m of all frames of a track as the named markers; NaN is a missing marker."""
    assert track.rate is not None, "TRC has one rate"
    with whole_file(target) as hidden, hidden.open("wb") as file:
        file.write(_head(track, target.name, names).encode("ascii"))
        for span, points in spans:
            frames = number(span.start + 1 + np.arange(len(span.times)))
            cells = number(points, 5, prefix="\t")
            # OpenSim drops an empty cell at the end of a line and then reports a missing column. Hence one more tab.
            one_more = np.where(np.isfinite(points[:, -1, 0]), 0, ord("\t")).astype(np.uint8)[:, None]
            file.write(to_bytes(joined(frames, number(span.times, 6, prefix="\t"), merged(cells), one_more, "\n")))


def _head(track: Track, name: str, joints: Sequence[str]) -> str:
    rate = f"{track.rate:.6f}"
    keys = (
        *("DataRate", "CameraRate", "NumFrames", "NumMarkers", "Units"),
        *("OrigDataRate", "OrigDataStartFrame", "OrigNumFrames"),
    )
    values = [rate, rate, str(len(track)), str(len(joints)), "m", rate, "1", str(len(track))]
    ascii_name = name.encode("ascii", "replace").decode().replace("\t", " ")
    names = "\t\t\t".join(joints)
    axes = "\t".join(f"{axis}{number}" for number in range(1, len(joints) + 1) for axis in "XYZ")
    lines = (
        f"PathFileType\t4\t(X/Y/Z)\t{ascii_name}",
        "\t".join(keys),
        "\t".join(values),
        f"Frame#\tTime\t{names}\t\t",
        f"\t\t{axes}",
        "",
    )
    return "\n".join(lines) + "\n"


FORMAT = PersonFormat(".trc", write, options=("z_up",))
