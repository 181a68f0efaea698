"""Focal length of a rotating camera whose intrinsics only assume one.

Images of a rotating camera determine its focal length (R. Hartley, "Self-calibration from multiple views with a
rotating camera", ECCV 1994). Each comparison of `pose.world.camera_motion.parallax` estimates it. The result is used
where
the estimates agree and differ clearly from the assumed focal length. If the camera translates in proportion to its
rotation, the estimates agree on a wrong value. Standing feet must therefore support the path (`CameraMotion.certain`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pose.structures.types import Background
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import ROTATING, CameraMotion, agree_on_focal

_MIN_LOG_RATIO = 0.12  # a slow translation may cause smaller differences
_MIN_TURN_DEGREES = 8.0


def focal_ratios(path: CameraPath, motion: CameraMotion) -> dict[int, float]:
    """Return measured / assumed focal length by scene number, where rotation shows that the assumed one is wrong."""
    scenes = {scene.number: scene.motion for scene in motion.scenes} or {int(path.scenes[0]): motion}
    return {number: scene.focal_ratio for number, scene in scenes.items() if _determined(scene)}


def _determined(motion: CameraMotion) -> bool:
    apart = abs(float(np.log(motion.focal_ratio)))
    turned = max(motion.pan, motion.tilt) > _MIN_TURN_DEGREES
    agrees = agree_on_focal(motion.focal_ratio, motion.focal_sigma)
    return motion.kind == ROTATING and apart > _MIN_LOG_RATIO and agrees and turned


def rescaled(
    measured: Sequence[tuple[int, Background]], scenes: Sequence[int], ratios: Mapping[int, float]
) -> list[tuple[int, Background]]:
    """Convert backgrounds to other focal lengths (ratio by scene): the displacements in px give other rotations."""
    return [(at, _rescaled(background, ratios.get(int(scenes[at]), 1.0))) for at, background in measured]


def _rescaled(background: Background, ratio: float) -> Background:
    links = background.links.copy()
    angles = np.linalg.norm(links[:, 1:3], axis=1, keepdims=True)
    safe = np.maximum(angles, 1e-9)
    links[:, 1:3] *= np.arctan(np.tan(safe) / ratio) / safe
    return replace(background, links=links)
