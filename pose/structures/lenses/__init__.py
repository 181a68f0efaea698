"""Lens models by their names in calibration files. A new model is a module here and a line in `LENSES`."""

from pose.structures.lenses.fisheye import FisheyeLens
from pose.structures.lenses.lens import Lens
from pose.structures.lenses.radial import RadialLens

LENSES: dict[str, type[Lens]] = {"radial": RadialLens, "fisheye": FisheyeLens}
PINHOLE = RadialLens()  # no distortion


def lens_of_file(name: str, coefficients: tuple[float, ...]) -> Lens:
    """Return the lens of a model's name and OpenCV's coefficients; ValueError if they do not fit."""
    if name not in LENSES:
        raise ValueError(f"unknown lens model {name!r}; known: {', '.join(LENSES)}")
    return LENSES[name].of_file(coefficients)


__all__ = ["LENSES", "PINHOLE", "FisheyeLens", "Lens", "RadialLens", "lens_of_file"]
