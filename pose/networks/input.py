"""Network inputs from images: letterboxed or cropped, normalised, on the device of the network.

On the CPU this uses OpenCV and NumPy. On a GPU, each image is uploaded once, and torch processes the whole batch. Both
results differ only by the rounding of OpenCV's fixed-point weights.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

import cv2
import numpy as np
from numpy.typing import DTypeLike

from pose.networks import crops
from pose.networks.letterbox import GREY, LetterboxTransform, letterbox, placement
from pose.structures.types import F32, U8, Array

if TYPE_CHECKING:
    from torch import Tensor

Samples: TypeAlias = "Array | Tensor"


class NetworkInput:
    """Converter of (H, W, 3) uint8 RGB images to the normalised input (B, 3, H, W) of a network."""

    def __init__(
        self,
        device: str,
        dtype: DTypeLike = np.float32,
        *,
        mean: Sequence[float] = (0.0, 0.0, 0.0),
        std: Sequence[float] = (1.0, 1.0, 1.0),
        bgr: bool = False,
        by_torch: bool | None = None,
    ) -> None:
        self._device = device
        self._by_torch = device != "cpu" if by_torch is None else by_torch
        self._dtype = np.dtype(dtype)
        self._mean, self._std = np.array(mean, np.float32), np.array(std, np.float32)
        self._order = (2, 1, 0) if bgr else (0, 1, 2)

    def letterboxed(
        self, images: Sequence[U8], size: tuple[int, int], *, centred: bool = False
    ) -> tuple[Samples, list[LetterboxTransform]]:
        """Scale images into a normalised input (B, 3, height, width) with grey padding, and return the mappings."""
        if self._by_torch:
            return self._letterboxed_by_torch(images, size, centred)
        fitted = [letterbox(image, size, centred=centred) for image in images]
        return self._normalised([canvas for canvas, _ in fitted], size), [fit for _, fit in fitted]

    def cropped(self, images: Sequence[U8], matrices: Sequence[F32], size: tuple[int, int]) -> Samples:
        """Crop and normalise regions of images, (P, 2, 3) maps each, with black padding, to one batch (B, 3, h, w)."""
        if self._by_torch:
            return self._cropped_by_torch(images, matrices, size)
        cropped = [
            crops.crop(image, matrix, size, cv2.BORDER_CONSTANT)
            for image, rows in zip(images, matrices, strict=True)
            for matrix in rows
        ]
        return self._normalised(cropped, size)

    def _normalised(self, images: Sequence[U8], size: tuple[int, int]) -> Array:
        samples = np.empty((len(images), 3, size[1], size[0]), self._dtype)
        for sample, image in zip(samples, images, strict=True):
            planes = cv2.split(image)  # NumPy is several times slower on interleaved channels than on separate planes
            for channel, source in enumerate(self._order):
                np.subtract(planes[source], self._mean[channel], out=sample[channel], casting="same_kind")
                sample[channel] /= self._std[channel]
        return samples

    def _letterboxed_by_torch(
        self, images: Sequence[U8], size: tuple[int, int], centred: bool
    ) -> tuple["Tensor", list[LetterboxTransform]]:
        import torch
        from torch.nn.functional import interpolate

        canvas = torch.full((len(images), 3, size[1], size[0]), float(GREY), device=self._device)
        fits = []
        for row, image in zip(canvas, images, strict=True):
            (left, top, width, height), fit = placement(image, size, centred=centred)
            tensor = upload(image, self._device)[None].to(torch.float32)
            inside = interpolate(tensor, (height, width), mode="bilinear", align_corners=False)
            row[:, top : top + height, left : left + width] = inside[0].round()
            fits.append(fit)
        return self._normalised_by_torch(canvas), fits

    def _cropped_by_torch(self, images: Sequence[U8], matrices: Sequence[F32], size: tuple[int, int]) -> "Tensor":
        import torch
        from torch.nn.functional import grid_sample

        line = [torch.arange(side, dtype=torch.float32, device=self._device) for side in size]
        y, x = torch.meshgrid(line[1], line[0], indexing="ij")
        pixels = torch.stack([x, y, torch.ones_like(x)], dim=-1)  # (H, W, 3): x, y, 1
        cropped = [torch.empty((0, 3, size[1], size[0]), device=self._device)]
        for image, rows in zip(images, matrices, strict=True):
            if len(rows):
                tensor = upload(image, self._device).to(torch.float32)
                extent = torch.tensor([tensor.shape[2], tensor.shape[1]], device=self._device)
                positions = torch.einsum("hwk,pck->phwc", pixels, torch.from_numpy(rows).to(self._device))
                grid = (2 * positions + 1) / extent - 1
                source = tensor.expand(len(rows), -1, -1, -1)
                cropped.append(grid_sample(source, grid, mode="bilinear", align_corners=False).round())
        return self._normalised_by_torch(torch.cat(cropped))

    def _normalised_by_torch(self, pixels: "Tensor") -> "Tensor":
        import torch

        mean, std = (torch.from_numpy(v).to(pixels.device).view(3, 1, 1) for v in (self._mean, self._std))
        return ((pixels[:, self._order] - mean) / std).to(getattr(torch, self._dtype.name))


# Images uploaded within `shared_uploads`, by id and device. The reference to the image keeps its id unique.
_uploads: ContextVar[dict[tuple[int, str], tuple[U8, "Tensor"]] | None] = ContextVar("uploads", default=None)


@contextmanager
def shared_uploads() -> Iterator[None]:
    """Upload each image array, which must not change, only once within this context, even for several networks."""
    token = _uploads.set({})
    try:
        yield
    finally:
        _uploads.reset(token)


def upload(image: U8, device: str) -> "Tensor":
    """Copy an image (H, W, 3) to a torch device as (3, H, W), within `shared_uploads` only once."""
    import torch

    shared, key = _uploads.get(), (id(image), device)
    if shared is not None and key in shared:
        return shared[key][1]
    tensor = torch.from_numpy(image).to(device).permute(2, 0, 1)
    if shared is not None:
        shared[key] = image, tensor
    return tensor
