"""Whole pictures for detectors: scaled into the network's input, the rest filled, and the way back."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.networks.crops import box_iou
from pose.types import F32, U8

GREY = 114  # what the networks saw around their training pictures


@dataclass(frozen=True, slots=True)
class Fit:
    """Where a picture lies in a network's input: input px = picture px * scale + offset (x, y)."""

    scale: tuple[float, float]
    offset: tuple[int, int]

    def to_picture(self, points: NDArray[np.floating]) -> F32:
        """Input px (..., 2) to picture px."""
        moved = points - np.array(self.offset, np.float32)
        return (moved / np.array(self.scale, np.float32)).astype(np.float32, copy=False)

    def boxes_to_picture(self, xyxy: NDArray[np.floating]) -> F32:
        """Boxes (P, 4) in input px to picture px."""
        return self.to_picture(xyxy.reshape(-1, 2, 2)).reshape(-1, 4)


def fitted_size(image: U8, size: tuple[int, int]) -> tuple[int, int]:
    """Width and height, px, at which the picture just fits into `size` (width, height)."""
    height, width = image.shape[:2]
    scale = min(size[0] / width, size[1] / height)
    return max(round(width * scale), 1), max(round(height * scale), 1)


def place(image: U8, size: tuple[int, int], *, centred: bool) -> tuple[tuple[int, int, int, int], Fit]:
    """Where in `size` (width, height) px the picture goes: left, top, width, height."""
    width, height = fitted_size(image, size)
    left = top = 0
    if centred:  # an odd pixel goes to the right and below
        left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return (left, top, width, height), Fit((width / image.shape[1], height / image.shape[0]), (left, top))


def letterbox(image: U8, size: tuple[int, int], *, centred: bool = False) -> tuple[U8, Fit]:
    """The picture scaled to fit into `size` (width, height) px, in its top left corner or centred, grey around it."""
    (left, top, width, height), fit = place(image, size, centred=centred)
    canvas = np.full((size[1], size[0], 3), GREY, np.uint8)
    inside = canvas[top : top + height, left : left + width]
    if (width, height) == (image.shape[1], image.shape[0]):
        inside[:] = image
    else:
        inside[:] = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
    return canvas, fit


def round_up(length: int, step: int) -> int:
    """The smallest multiple of `step` that is not below `length`."""
    return math.ceil(length / step) * step


def suppress(xyxy: F32, scores: F32, overlap: float) -> NDArray[np.int64]:
    """Non-maximum suppression: the rows to keep of boxes (N, 4) with scores (N,), best first.

    A box goes when a better one that stays overlaps it by more than `overlap` IoU.
    """
    left = np.argsort(-scores, kind="stable")
    kept = []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        left = left[box_iou(xyxy[best : best + 1], xyxy[left])[0] <= overlap]
    return np.array(kept, np.int64)
