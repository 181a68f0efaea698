"""Images of predicted poses drawn over the ground truth, for training runs."""

from pathlib import Path

import cv2
import numpy as np

from pose.structures.skeletons import H36M17
from pose.structures.types import F32, U8
from pose.utils.whole_file import write_whole

_TILE = 260
_PIXELS_PER_METRE = 110
_TRUE, _LIFTED = (170, 170, 170), (200, 80, 20)
_VIEWS = {"front": (0, 1), "side": (2, 1)}  # axes of a pose that point right and down in the image


def draw_comparison(lifted: F32, true: F32) -> U8:
    """Draw predicted over true (grey) poses (N, 17, 3) m, each from the front and from the side, (H, W, 3) RGB."""
    columns = []
    for pose, truth in zip(lifted, true, strict=True):
        column = np.full((_TILE * len(_VIEWS), _TILE, 3), 255, np.uint8)
        for row, axes in enumerate(_VIEWS.values()):
            origin = np.array([_TILE / 2, _TILE * (row + 0.5)])
            _draw(column, truth[:, axes] * _PIXELS_PER_METRE + origin, _TRUE, 5)
            _draw(column, pose[:, axes] * _PIXELS_PER_METRE + origin, _LIFTED, 2)
        columns.append(column)
    return np.concatenate(columns, axis=1)


def _draw(picture: U8, points: F32, color: tuple[int, int, int], width: int) -> None:
    for a, b in H36M17.edges:
        start, end = points[a].round().astype(int), points[b].round().astype(int)
        cv2.line(picture, start.tolist(), end.tolist(), color, width, cv2.LINE_AA)


def save_picture(picture: U8, path: Path) -> None:
    """Write an RGB image as PNG; PoseError if the folder cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _, data = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
    write_whole(path, data.tobytes())
