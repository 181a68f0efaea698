"""Films that were edited: images of several clips in another order, with flashes, blank images and other sizes."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path

import av
import cv2
import numpy as np

SIZE = 320, 240  # width and height of the films, px


def images_of(video: Path, count: int, first: int = 0, size: tuple[int, int] = SIZE) -> list[np.ndarray]:
    """`count` images of a clip from number `first` on, (H, W, 3) RGB, of one size (width, height)."""
    with av.open(str(video)) as container:
        frames = islice(container.decode(video=0), first, first + count)
        return [frame.to_ndarray(width=size[0], height=size[1], format="rgb24") for frame in frames]


def edited(scenes: Sequence[Sequence[np.ndarray]], lengths: Iterable[int]) -> list[np.ndarray]:
    """Shots of the scenes in turn, each as many images long as `lengths` says, every scene from its first image on."""
    at, film = [0] * len(scenes), []
    for shot, length in enumerate(lengths):
        which = shot % len(scenes)
        for _ in range(length):
            film.append(scenes[which][at[which] % len(scenes[which])])
            at[which] += 1
    return film


def write(path: Path, images: Sequence[np.ndarray], stamps: Sequence[int] | None = None, fps: int = 30) -> Path:
    """Write images as a video. stamps: ticks of 1/600 s of each image; by default one image each 1 / fps."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=fps, options={"crf": "20", "preset": "ultrafast"})
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = Fraction(1, 600)
        for n, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image).reformat(format="yuv420p")
            frame.pts, frame.time_base = n * 600 // fps if stamps is None else stamps[n], Fraction(1, 600)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def joined(path: Path, parts: Sequence[Sequence[np.ndarray]], sizes: Sequence[tuple[int, int]], fps: int) -> Path:
    """Write parts of different sizes (width, height) one after another, like a recorder that changes its settings."""
    content = b""
    for number, (images, size) in enumerate(zip(parts, sizes, strict=True)):
        part = path.with_name(f"{path.stem}-{number}.ts")
        write(part, [cv2.resize(image, size) for image in images], fps=fps)
        content += part.read_bytes()
        part.unlink()
    path.write_bytes(content)
    return path
