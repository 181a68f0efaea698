"""What the overlay costs in processor time, part by part, and how like its file is to what was drawn.

    python benchmarks/overlay_cost.py CLIP.mp4 ... [--seconds 5]

The people come from a `pose-run` of the clip. Decoding, drawing and encoding of 25 frames then run one after the
other, so that the processor time of the process, with all threads of codecs, is each part's own. The file is decoded
again and compared with the drawing made in RGB, which no encoder has seen: PSNR over all three colours, PSNR and SSIM
(Gaussian window, as Wang et al. 2004) of brightness, the mean of every fifth frame.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
from pose_apps.run import main as pose_run

from pose.results import PoseTable, load_poses
from pose.structures.skeletons import BLAZEPOSE33
from pose.structures.types import F32, U8
from pose.utils.device import opencv_threads
from pose.video import Source, VideoWriter, open_source
from pose.view.overlay import Overlay
from pose.view.planar_overlay import PlanarOverlay

EVERY = 5  # frames compared
PORTION = 25  # frames decoded, then drawn, then encoded


def psnr(a: U8, b: U8) -> float:
    """dB."""
    return float(10 * np.log10(255**2 / np.mean((a.astype(np.float32) - b) ** 2)))


def ssim(a: U8, b: U8) -> float:
    """Structural similarity of two images (H, W): 1 where they are the same."""

    def smooth(image: F32) -> F32:
        return np.asarray(cv2.GaussianBlur(image, (11, 11), 1.5), np.float32)

    x, y = a.astype(np.float32), b.astype(np.float32)
    mean_x, mean_y = smooth(x), smooth(y)
    var_x, var_y = smooth(x * x) - mean_x**2, smooth(y * y) - mean_y**2
    both = smooth(x * y) - mean_x * mean_y
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    share = (2 * mean_x * mean_y + c1) * (2 * both + c2) / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))
    return float(share.mean())


class Clock:
    """Processor seconds of each part."""

    def __init__(self) -> None:
        self.spent = {"decode": 0.0, "draw": 0.0, "encode": 0.0}

    @contextmanager
    def taken(self, part: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.spent[part] += time.process_time() - start


def draw_clip(source: Source, poses: PoseTable, path: Path) -> tuple[Clock, int]:
    """Write the overlay to `path`; what it took, and the number of frames."""
    clock, info = Clock(), source.info
    frames, results = source.replay_planes(), iter(poses)
    colours = next(source.replay_planes()).planes.colours
    overlay = PlanarOverlay(info.size, BLAZEPOSE33, colours)
    count = 0
    with VideoWriter(path, overlay.output_size, fps=info.fps, time_base=info.time_base, colours=colours) as writer:
        while True:
            with clock.taken("decode"):
                portion = list(islice(frames, PORTION))
            if not portion:
                break
            with clock.taken("draw"):
                drawn = [overlay.draw(frame.planes, next(results)) for frame in portion]
            with clock.taken("encode"):
                for frame, planes in zip(portion, drawn, strict=True):
                    writer.write_planes(planes, frame.time)
                    overlay.take_back(planes)
                time.sleep(0.3)  # until the encoder's threads are done with it
            count += len(portion)
        with clock.taken("encode"):
            writer.close()
    return clock, count


def likeness(source: Source, poses: PoseTable, path: Path) -> Iterator[tuple[float, float, float]]:
    """PSNR of the colours, PSNR and SSIM of the brightness, of every fifth frame."""
    overlay = Overlay(source.info.size, BLAZEPOSE33)
    with open_source(str(path)) as written:
        for number, (frame, result, shown) in enumerate(zip(source.replay(), poses, written, strict=False)):
            drawn = overlay.draw(frame.image, result)
            if number % EVERY == 0:
                image = shown.image[: drawn.shape[0], : drawn.shape[1]]
                grey = [np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), np.uint8) for picture in (drawn, image)]
                yield psnr(drawn, image), psnr(*grey), ssim(*grey)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="+", help="videos")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each, from its start")
    options = parser.parse_args()
    print(
        f"{'clip':<20}{'size':>11}{'decode':>8}{'draw':>7}{'encode':>8}{'ms/frame':>10}{'PSNR':>7}{'Y':>7}{'SSIM':>8}"
    )
    for clip in options.clips:
        with tempfile.TemporaryDirectory() as folder:
            call = [
                clip,
                "--out",
                folder,
                "--overwrite",
                "--quiet",
                "--formats",
                "npz",
                "--cache",
                "off",
                "--end",
                str(options.seconds),
            ]
            if pose_run(call):
                raise SystemExit(1)
            poses = load_poses(Path(folder) / "poses.npz")
            with open_source(clip, end=options.seconds) as source, opencv_threads(1):
                clock, frames = draw_clip(source, poses, Path(folder) / "overlay.mp4")
                like = np.mean(list(likeness(source, poses, Path(folder) / "overlay.mp4")), axis=0)
            parts = [1e3 * spent / frames for spent in clock.spent.values()]
            size = "x".join(map(str, source.info.size))
            print(
                f"{Path(clip).name:<20}{size:>11}{parts[0]:>8.1f}{parts[1]:>7.1f}{parts[2]:>8.1f}{sum(parts):>10.1f}"
                f"{like[0]:>7.2f}{like[1]:>7.2f}{like[2]:>8.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
