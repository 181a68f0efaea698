"""Time to write numbers as text: ours against the standard library, per hour of one person at 30 frames/s.

    python benchmarks/number_text.py

CSV is that of `pose-convert --to csv` (`pose.body.digits` against a %-format per row). JSON is the 2D and 3D of a
person: `json.dumps` of rounded values with null for NaN, as in `poses.json`, against one %-format per person.
"""

import json
import time
from collections.abc import Callable

import numpy as np

from pose.body.digits import encoded, joined, merged, number, to_bytes
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

FRAMES = 2000
HOUR = 3600 * 30
NAMES = H36M17.names
KEYPOINTS = 33
REPETITIONS = 5


def csv_by_digits(values: F64, times: F64) -> bytes:
    head = joined("clip,", number(np.arange(FRAMES)), number(times, 6, prefix=","), ",1,")
    cells = merged(number(values[..., :3], 4, prefix=","), 2), number(values[..., 3], 1, prefix=",")
    return to_bytes(joined(head[:, None], encoded(NAMES), *cells, number(values[..., 4], 3, prefix=","), "\n"))


def csv_by_format(values: F64, times: F64) -> bytes:
    line, lines = "clip,%d,%.6f,1,%s,%.4f,%.4f,%.4f,%.1f,%.3f\n", []
    for frame, (second, joints) in enumerate(zip(times.tolist(), values.tolist(), strict=True)):
        lines += [line % (frame, second, name, *one) for name, one in zip(NAMES, joints, strict=True)]
    return "".join(lines).encode()


def json_by_format(keypoints: F64, joints: F64) -> list[str]:
    points = ",".join(["[%.2f,%.2f,%.3f]"] * KEYPOINTS), ",".join(["[%.4f,%.4f,%.4f]"] * len(NAMES))
    whole = f'{{"keypoints":[{points[0]}],"joints3d":[{points[1]}]}}'
    rows = (np.concatenate([seen.ravel(), lifted.ravel()]) for seen, lifted in zip(keypoints, joints, strict=True))
    return [(whole % tuple(one.tolist())).replace("nan", "null") for one in rows]


def json_by_library(keypoints: F64, joints: F64) -> list[str]:
    return [
        json.dumps({"keypoints": _known(seen, 3), "joints3d": _known(lifted, 4)}, separators=(",", ":"))
        for seen, lifted in zip(keypoints, joints, strict=True)
    ]


def _known(values: F64, decimals: int) -> object:
    rounded = np.round(values, decimals)
    missing = np.isnan(rounded)
    return np.where(missing, None, rounded).tolist() if missing.any() else rounded.tolist()  # type: ignore[call-overload]


def seconds_per_hour(write: Callable[[], object]) -> float:
    found = []
    for _ in range(REPETITIONS):
        begun = time.process_time()
        write()
        found.append(time.process_time() - begun)
    return min(found) * HOUR / FRAMES


def main() -> None:
    rng = np.random.default_rng(0)
    values, times = rng.uniform(1, 2, (FRAMES, len(NAMES), 5)), np.arange(FRAMES) / 30
    keypoints, joints = rng.uniform(0, 1000, (FRAMES, KEYPOINTS, 3)), rng.normal(size=(FRAMES, len(NAMES), 3))
    keypoints[rng.random((FRAMES, KEYPOINTS)) < 0.05] = np.nan
    assert csv_by_digits(values, times) == csv_by_format(values, times)
    assert len(json_by_format(keypoints, joints)) == len(json_by_library(keypoints, joints))
    for name, write in (
        ("CSV, pose.body.digits", lambda: csv_by_digits(values, times)),
        ("CSV, %-format per row", lambda: csv_by_format(values, times)),
        ("JSON, %-format per person", lambda: json_by_format(keypoints, joints)),
        ("JSON, json.dumps", lambda: json_by_library(keypoints, joints)),
    ):
        print(f"{name:<27}{seconds_per_hour(write):5.1f} s")


if __name__ == "__main__":
    main()
