"""Common parts of export formats: notes on frames, and the list of filled frames beside a file."""

from pathlib import Path

from pose.body.tracks import Track
from pose.utils.whole_file import write_whole

LIST = ".filled.csv"  # suffix of the file that lists filled frames, for formats that cannot mark them
FILLED = "first_frame,last_frame,first_time,last_time"


def timing(track: Track) -> str:
    """Return a note with the number of frames, their rate and the start time."""
    rate = f" at {track.rate:.6g} frames/s" if track.rate is not None else ", on their own time stamps"
    resampled = ", resampled" if track.resampled else ""
    start = f"the first at {track.times[0]:.3f} s (frame {track.first + 1} of the result)"
    return f"{len(track)} frames{rate}{resampled}, {start}"


def list_filled(track: Track, target: Path) -> list[str]:
    """Write a list of missing frames, counted from 1, beside `target` and return notes; no file without any."""
    # For formats that cannot mark missing frames, whose values are therefore interpolated.
    listed = target.with_name(f"{target.name}{LIST}")
    if not track.gaps:
        return []
    rows = [f"{a + 1},{b + 1},{track.times[a]:.6f},{track.times[b]:.6f}" for a, b in track.gaps]
    write_whole(listed, "\n".join([FILLED, *rows, ""]))
    filled = sum(b - a + 1 for a, b in track.gaps)
    return [f"{filled} missing frames are filled, listed in {listed.name}"]


def missing(track: Track) -> list[str]:
    """Return notes on missing frames, for a format that can mark them."""
    count = sum(b - a + 1 for a, b in track.gaps)
    return [f"{count} frames are missing and marked so"] if count else []
