"""People cut out of the shared clips with BlazePose's segmentation, from whom scenes of known truth are made."""

from dataclasses import dataclass, replace
from pathlib import Path

import av
import cv2
import numpy as np
from pose_detectors.blazepose import BlazePoseDetector

from pose.networks import crops
from pose.networks.estimators.blazepose import SIDE, BlazePose
from pose.networks.litert import LiteRTModel, sigmoid
from pose.structures.types import F32, U8

VISIBLE = 0.25  # a person who is visible to a smaller share counts as absent
SEGMENTATION = 2  # which of the network's outputs
NECK = 0.18  # of the height of the joints' box: below are clothes
DYE = 0.4  # how much of a colour is that of other clothes


@dataclass(frozen=True, slots=True)
class Cutout:
    """A person cut out. image: (H, W, 3). alpha: (H, W) in [0, 1]. joints: (J, 2) px. box: (4,) of the joints."""

    image: U8
    alpha: F32
    joints: F32
    box: F32


def frames_of(clip: Path, start: int, count: int) -> list[U8]:
    with av.open(str(clip)) as container:
        frames = (frame.to_ndarray(format="rgb24") for frame in container.decode(video=0))
        return [frame for _, frame in zip(range(start + count), frames, strict=False)][start:]


def cut_out(images: list[U8], weights: Path) -> list[Cutout]:
    """The person of every image, followed by BlazePose."""
    model = weights / "blazepose-landmark-full.tflite"
    estimator, segmenter = BlazePose(model=model), LiteRTModel(model, 2, (SEGMENTATION,))
    detector = BlazePoseDetector(model=weights / "blazepose-detector.tflite")
    region, cutouts = estimator.regions(detector.detect([images[0]])[0])[:1], []
    for image in images:
        matrix = crops.crop_matrices(region, (SIDE, SIDE))
        segmenter.input()[0] = crops.crop(image, matrix[0], (SIDE, SIDE)).astype(np.float32) / 255
        mask = sigmoid(segmenter.run()[0].reshape(SIDE, SIDE).astype(np.float32))
        size = image.shape[1], image.shape[0]
        alpha = cv2.warpAffine(mask, matrix[0], size, flags=cv2.INTER_LINEAR)
        seen = estimator.estimate([image], [region])[0]
        region = seen.next_regions
        cutouts.append(Cutout(image, alpha, seen.xy[0], crops.bounds(seen.xy, seen.scores > 0)[0]))
    return cutouts


def dyed(cutout: Cutout, colour: np.ndarray) -> Cutout:
    """The same person in clothes of another colour (3,)."""
    image = cutout.image.copy()
    neck = max(0, int(cutout.box[1] + NECK * (cutout.box[3] - cutout.box[1])))
    image[neck:] = (image[neck:] * (1 - DYE) + colour * DYE).astype(np.uint8)
    return replace(cutout, image=image)
