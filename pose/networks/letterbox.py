"""Letterboxing: images scaled into the input of a network with padding, and the mapping back."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.networks.crops import box_iou
from pose.structures.types import F32, U8

GREY = 114  # value of the padding with which the networks were trained


@dataclass(frozen=True, slots=True)
class LetterboxTransform:
    """Placement of an image in a network input: input px = image px * scale + offset."""

    scale: tuple[float, float]  # scale factors along x and y
    offset: tuple[int, int]  # offset (x, y) in input px

    def to_image(self, points: NDArray[np.floating]) -> F32:
        """Convert points (..., 2) from input px to image px."""
        moved = points - np.array(self.offset, np.float32)
        return (moved / np.array(self.scale, np.float32)).astype(np.float32, copy=False)

    def boxes_to_image(self, xyxy: NDArray[np.floating]) -> F32:
        """Convert boxes (P, 4) from input px to image px."""
        return self.to_image(xyxy.reshape(-1, 2, 2)).reshape(-1, 4)


def fitted_size(image: U8, size: tuple[int, int]) -> tuple[int, int]:
    """Return the width and height in px of the image after scaling it to fit into `size` (width, height) px."""
    height, width = image.shape[:2]
    scale = min(size[0] / width, size[1] / height)
    return max(round(width * scale), 1), max(round(height * scale), 1)


def placement(
    image: U8, size: tuple[int, int], *, centred: bool
) -> tuple[tuple[int, int, int, int], LetterboxTransform]:
    """Return left, top, width, height of an image in a network input of (width, height) px, and their mapping."""
    width, height = fitted_size(image, size)
    left = top = 0
    if centred:  # an odd number of padding pixels has one more to the right and below
        left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return (left, top, width, height), LetterboxTransform(
        (width / image.shape[1], height / image.shape[0]), (left, top)
    )


def letterbox(image: U8, size: tuple[int, int], *, centred: bool = False) -> tuple[U8, LetterboxTransform]:
    """Scale an image to fit into a network input, with grey padding."""
    (left, top, width, height), fit = placement(image, size, centred=centred)
    canvas = np.full((size[1], size[0], 3), GREY, np.uint8)
    inside = canvas[top : top + height, left : left + width]
    if (width, height) == (image.shape[1], image.shape[0]):
        inside[:] = image
    else:
        inside[:] = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
    return canvas, fit


def round_up(length: int, step: int) -> int:
    """Return the smallest multiple of `step` that is at least `length`."""
    return math.ceil(length / step) * step


def suppress(xyxy: F32, scores: F32, overlap: float) -> NDArray[np.int64]:
    """Return indices of boxes (N, 4) kept by non-maximum suppression above an IoU of `overlap`, best first."""
    left = np.argsort(-scores, kind="stable")
    kept = []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        left = left[box_iou(xyxy[best : best + 1], xyxy[left])[0] <= overlap]
    return np.array(kept, np.int64)
