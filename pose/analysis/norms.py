"""Published angles of healthy walkers.

Schwartz, Rozumalski and Trost, Journal of Biomechanics 41(8), 2008: 83 typically developing children, free speed. The
numbers are those of biomechZoo (Apache-2.0, github.com/PhilD001/biomechZoo), every 4 % of the gait cycle from foot
strike to foot strike. Hip flexion has the pelvic tilt of the same table subtracted, because the lifted skeleton does
not show the tilt: both are then angles of the thigh against an upright pelvis.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pose.analysis.report_tables import ANGLES
from pose.errors import UsageError
from pose.structures.types import F64

POINTS = 101  # points of a curve, 0 to 100 %
SOURCE = "healthy children at free speed (Schwartz 2008)"

_MEANS = {
    "knee flexion": """5.6 10.9 16.9 19.3 18.6 16.5 13.9 11.3 9.0 7.2 6.2 6.8 9.5 14.5 22.6 33.9 46.3 55.7 59.1 56.9
        49.8 38.8 25.5 12.5 4.6 5.4""",
    "hip flexion": """23.6 23.7 23.0 20.3 16.2 11.5 6.7 2.0 -2.5 -6.8 -10.8 -14.2 -16.6 -17.7 -16.3 -11.7 -4.4 3.4
        10.4 16.0 20.4 23.3 24.4 24.1 23.5 23.6""",
    "hip adduction": """-1.6 0.1 2.6 4.5 5.2 5.0 4.4 3.6 2.9 2.6 2.4 2.2 1.4 0.0 -2.3 -5.2 -7.0 -6.8 -5.6 -4.2 -3.1
        -2.4 -2.2 -2.3 -2.4 -1.6""",
    "pelvis obliquity": """0.8 1.5 2.8 3.8 4.1 3.4 2.1 0.8 -0.1 -0.5 -0.5 -0.3 -0.5 -1.0 -2.0 -3.3 -4.1 -3.9 -2.8
        -1.5 -0.4 0.2 0.4 0.3 0.3 0.6""",
    "pelvis rotation": """4.4 4.3 3.6 3.4 3.6 3.3 2.6 1.6 0.5 -0.6 -1.9 -3.2 -4.1 -4.4 -3.9 -3.5 -3.6 -3.6 -3.1 -2.2
        -1.2 -0.1 1.1 2.4 3.6 4.2""",
}
_DEVIATIONS = {
    "knee flexion": """5.7 5.6 6.1 6.3 6.2 5.9 5.7 5.5 5.6 5.7 5.8 5.7 5.7 5.8 6.2 6.6 6.5 5.7 5.9 6.9 7.8 8.5 8.7 8.1
        6.6 5.6""",
    "hip flexion": """5.5 5.6 6.0 6.0 6.0 6.0 6.0 6.0 6.1 6.5 6.7 6.8 6.9 6.8 6.8 6.8 6.6 6.3 6.0 5.8 5.5 5.4 5.5 5.6
        5.5 5.6""",
    "hip adduction": """3.6 3.6 3.6 3.5 3.4 3.4 3.3 3.2 3.1 3.0 3.0 3.0 3.0 3.1 3.3 3.3 3.2 2.9 2.8 2.8 2.8 2.8 2.9
        3.1 3.3 3.4""",
    "pelvis obliquity": """2.0 2.0 2.1 2.2 2.1 2.1 2.1 2.1 2.1 2.0 2.0 2.0 2.0 2.0 2.1 2.2 2.3 2.2 2.2 2.2 2.1 2.1
        2.0 2.0 2.0 2.0""",
    "pelvis rotation": """4.0 4.0 3.8 3.8 3.8 3.7 3.6 3.4 3.4 3.5 3.6 3.7 3.8 3.8 3.8 3.8 3.8 3.8 3.7 3.5 3.5 3.4 3.5
        3.7 3.8 3.8""",
}


@dataclass(frozen=True, slots=True)
class Norms:
    """Angles over the gait cycle of people to compare with."""

    source: str
    curves: dict[str, tuple[F64, F64]]  # by angle: mean and standard deviation (101,) in degrees

    def of(self, movement: str, angle: str) -> tuple[F64, F64] | None:
        """Return mean and standard deviation of an angle, (101,) degrees each; None without a norm."""
        return self.curves.get(angle) if movement == "walking" else None


def read_norms(path: Path) -> Norms:
    """Read `angle`, `percent` (0 to 100), `mean` and `sd` (degrees) from a CSV file; UsageError if invalid."""
    points: dict[str, list[tuple[float, float, float]]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                numbers = float(row["percent"]), float(row["mean"]), float(row["sd"])
                points.setdefault(row["angle"].strip(), []).append(numbers)
    except OSError as error:
        raise UsageError(f"--norms {path}: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"--norms {path}: needs the columns angle, percent, mean and sd, with numbers") from error
    curves = {}
    for angle, rows in points.items():
        percent, mean, deviation = np.array(sorted(rows)).T
        if angle not in ANGLES:
            raise UsageError(f"--norms {path}: unknown angle {angle!r}; known: {', '.join(ANGLES)}")
        if not np.isfinite([percent, mean, deviation]).all() or (deviation < 0).any() or len(percent) < 2:
            raise UsageError(f"--norms {path}: {angle}: needs two or more finite points, with sd of 0 or more")
        if percent[0] > 0 or percent[-1] < 100:
            raise UsageError(f"--norms {path}: {angle}: percent must reach from 0 to 100")
        at = np.linspace(0, 100, POINTS)
        curves[angle] = np.interp(at, percent, mean), np.interp(at, percent, deviation)
    if not curves:
        raise UsageError(f"--norms {path}: contains no row")
    return Norms(path.name, curves)


def _curve(numbers: str) -> F64:
    values = np.array([float(word) for word in numbers.split()])
    return np.asarray(np.interp(np.linspace(0, 1, POINTS), np.linspace(0, 1, len(values)), values))


CHILDREN = Norms(SOURCE, {angle: (_curve(_MEANS[angle]), _curve(_DEVIATIONS[angle])) for angle in _MEANS})
