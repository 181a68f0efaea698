"""TRC: joints as markers, for OpenSim and other programs of biomechanics. Tabs only; a missing marker is three empty
cells. Source of the rules: OpenSim's TRCFileAdapter.
"""

from pathlib import Path

import numpy as np

from pose.export.digits import joined, number, row, text
from pose.export.format import Notes, PersonFormat
from pose.export.text import missing, timing
from pose.export.tracks import Track
from pose.skeletons import H36M17
from pose.system.whole_file import whole_file


def write(track: Track, target: Path) -> Notes:
    assert track.rate is not None, "TRC has one rate"
    with whole_file(target) as hidden, hidden.open("wb") as file:
        file.write(_head(track, target.name).encode("ascii"))
        for span in track.spans():
            frames = number(span.start + 1 + np.arange(len(span.times)))
            cells = number(track.space.to_file(span.places), 5, prefix="\t")
            # OpenSim drops an empty cell at the end of a line, and then misses a column.
            one_more = np.where(span.known, 0, ord("\t")).astype(np.uint8)[:, None]
            file.write(text(joined(frames, number(span.times, 6, prefix="\t"), row(cells), one_more, "\n")))
    return [f"{timing(track)}; metres", *missing(track)]


def _head(track: Track, name: str) -> str:
    rate = f"{track.rate:.6f}"
    keys = (
        *("DataRate", "CameraRate", "NumFrames", "NumMarkers", "Units"),
        *("OrigDataRate", "OrigDataStartFrame", "OrigNumFrames"),
    )
    values = [rate, rate, str(len(track)), str(len(H36M17)), "m", rate, "1", str(len(track))]
    ascii_name = name.encode("ascii", "replace").decode().replace("\t", " ")
    names = "\t\t\t".join(H36M17.names)
    axes = "\t".join(f"{axis}{number}" for number in range(1, len(H36M17) + 1) for axis in "XYZ")
    lines = (
        f"PathFileType\t4\t(X/Y/Z)\t{ascii_name}",
        "\t".join(keys),
        "\t".join(values),
        f"Frame#\tTime\t{names}\t\t",
        f"\t\t{axes}",
        "",
    )
    return "\n".join(lines) + "\n"


FORMAT = PersonFormat(".trc", write)
