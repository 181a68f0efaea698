"""What real detectors get wrong on real clips: the figures behind `pose_datasets.errors.ErrorConfig`.

    python benchmarks/detector_errors.py --shared ../shared --out docs/studies/detector-errors.md

Four networks look at the same person of every frame: BlazePose full and lite, YOLO26n-pose and MoveNet. There is no
ground truth, so each is measured against the median of the other three, joint by joint in Human3.6M-17 of
`pose.structures.skeletons.to_h36m17`. What all four get wrong alike stays hidden: the figures are lower bounds. All
lengths are
shares of the person's size, the longer side of the box around the joints.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
from pose_detectors.blazepose import BlazePoseDetector

from pose.networks import crops
from pose.networks.estimators.blazepose import BlazePose
from pose.networks.litert import LiteRTModel
from pose.structures.skeletons import BLAZEPOSE33, COCO17, H36M17, to_h36m17
from pose.structures.types import F32, U8, Regions

CLIPS = ("dance.mp4", "squats.mp4", "walk-by.mp4")
NETWORKS = ("BlazePose full", "BlazePose lite", "YOLO26n-pose", "MoveNet")
SKELETONS = (BLAZEPOSE33, BLAZEPOSE33, COCO17, COCO17)  # of each network
SEEN = 0.3  # a joint below this score counts as not seen
FAR = 0.10  # of the person's size: an outlier
PAIRS = {"legs": ((1, 4), (2, 5), (3, 6)), "arms": ((14, 11), (15, 12), (16, 13))}


@dataclass
class Track:
    """One person of one clip: xy (N, T, 17, 2) px and scores (N, T, 17) of the N networks, times (T,) s.

    native: for each network the same in its own skeleton, (T, J, 2) px and (T, J).
    """

    name: str
    xy: F32
    scores: F32
    times: F32
    native: list[tuple[F32, F32]]


class Networks:
    """The four networks on one person: BlazePose full finds and follows, the others look at the same place."""

    def __init__(self, weights: Path) -> None:
        import onnxruntime

        self._detector = BlazePoseDetector(model=weights / "blazepose-detector.tflite")
        self._blazepose = [
            BlazePose(model=weights / f"blazepose-landmark-{variant}.tflite", variant=variant)
            for variant in ("full", "lite")
        ]
        self._movenet = LiteRTModel(weights / "movenet-lightning-int8.tflite", 2)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        self._yolo = onnxruntime.InferenceSession(str(weights / "yolo26n-pose-256-int8.onnx"), options)
        self._next: Regions | None = None

    def see(self, image: U8) -> list[tuple[F32, F32]] | None:
        """(J, 2) px and (J,) scores of each network in its own skeleton, or None when no person is found."""
        region = self._next
        if region is None:
            boxes = self._detector.detect([image])[0]
            if not len(boxes):
                return None
            region = self._blazepose[0].regions(boxes)[:1]
        (full,), (lite,) = (network.estimate([image], [region]) for network in self._blazepose)
        if full.presence[0] < 0.5:
            self._next = None
            return None
        self._next = full.next_regions
        upright = _upright(full.xy[0], image)
        looks = [look(image, upright) for look in (self._look_yolo, self._look_movenet)]
        return [(found.xy[0], found.scores[0]) for found in (full, lite)] + looks

    def _look_yolo(self, image: U8, region: Regions) -> tuple[F32, F32]:
        matrix = crops.crop_matrices(region, (256, 256))
        crop = crops.crop(image, matrix[0], (256, 256), cv2.BORDER_CONSTANT)
        tensor = (crop.astype(np.float32) / 255).transpose(2, 0, 1)[None]
        (raw,) = self._yolo.run(None, {self._yolo.get_inputs()[0].name: tensor})
        best = raw[0][:, raw[0][4].argmax()]
        points = best[5:].reshape(17, 3)
        return crops.apply_affine(matrix, points[None, :, :2])[0], points[:, 2] * (best[4] > SEEN)

    def _look_movenet(self, image: U8, region: Regions) -> tuple[F32, F32]:
        matrix = crops.crop_matrices(region, (192, 192))
        self._movenet.input()[0] = crops.crop(image, matrix[0], (192, 192), cv2.BORDER_CONSTANT)
        points = self._movenet.run()[0][0, 0].copy()
        xy = points[:, [1, 0]] * 192
        return crops.apply_affine(matrix, xy[None])[0], points[:, 2]


def _upright(xy: F32, image: U8) -> Regions:
    """A square around the keypoints (J, 2), with a margin, inside which the other networks look."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    side = 1.3 * (high - low).max()
    return Regions(((low + high) / 2)[None], np.full((1, 2), side, np.float32), np.zeros(1, np.float32))


def watch(clip: Path, networks: Networks) -> Iterator[Track]:
    """The uninterrupted sightings of at least ten frames."""
    video = cv2.VideoCapture(str(clip))
    fps = video.get(cv2.CAP_PROP_FPS)
    seen: list[tuple[int, list[tuple[F32, F32]]]] = []
    index = 0
    while True:
        good, image = video.read()
        view = networks.see(np.ascontiguousarray(image[..., ::-1])) if good else None
        if view is not None:
            seen.append((index, view))
        if view is None or not good:
            if len(seen) >= 10:
                yield track_of(clip.name, [view for _, view in seen], np.array([i for i, _ in seen]) / fps)
            seen = []
        if not good:
            return
        index += 1


def track_of(name: str, views: list[list[tuple[F32, F32]]], times: F32) -> Track:
    """views: for each frame what `Networks.see` gives."""
    native = [(np.stack([v[n][0] for v in views]), np.stack([v[n][1] for v in views])) for n in range(len(NETWORKS))]
    common = [to_h36m17(*own, skeleton) for own, skeleton in zip(native, SKELETONS, strict=True)]
    return Track(name, np.stack([xy for xy, _ in common]), np.stack([score for _, score in common]), times, native)


def differences(track: Track) -> tuple[F32, F32, F32]:
    """Error (N, T, 17, 2) of each network against the median of the others and speed (T, 17) /s, in sizes; seen."""
    boxes = np.ptp(np.median(track.xy, axis=0), axis=1).max(axis=1)
    size = np.maximum(np.median(boxes), 1)
    others = [np.median(np.delete(track.xy, n, axis=0), axis=0) for n in range(len(track.xy))]
    error = (track.xy - np.stack(others)) / size
    middle = np.median(track.xy, axis=0) / size
    speed = np.linalg.norm(np.gradient(middle, track.times, axis=0), axis=-1)
    return error, speed, track.scores >= SEEN


def swapped(track: Track, network: int, pairs: tuple[tuple[int, int], ...]) -> np.ndarray:
    """(T,) True where swapping left and right brings the limb nearer to the others', by half, and they are apart."""
    others = np.median(np.delete(track.xy, network, axis=0), axis=0)
    own = track.xy[network]
    right, left = (list(side) for side in zip(*pairs, strict=True))
    limb, mirror = right + left, left + right

    def distance(order: list[int]) -> np.ndarray:
        return np.linalg.norm(own[:, order] - others[:, limb], axis=-1)[:, [1, 2, 4, 5]].sum(axis=1)

    apart = np.linalg.norm(others[:, right] - others[:, left], axis=-1)[:, 1:].sum(axis=1)
    size = np.ptp(others, axis=1).max(axis=1)
    return (distance(mirror) < 0.5 * distance(limb)) & (apart > 0.1 * size)


def fast(values: np.ndarray) -> np.ndarray:
    """Jitter: the second difference over time (axis 1), scaled so that white noise keeps its standard deviation."""
    return np.diff(values, n=2, axis=1) / np.sqrt(6)


def robust(values: np.ndarray) -> float:
    """Standard deviation of the bulk, from the median absolute value."""
    return float(np.median(np.abs(values)) / 0.6745) if values.size else float("nan")


def table(tracks: list[Track]) -> list[str]:
    """One row for each network and clip."""
    rows = [
        "| clip | network | frames | error, median | bulk std | jitter (fast) | outliers > 10 % | legs swapped "
        "| arms swapped | joints below score 0.3 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for clip in CLIPS:
        own = [track for track in tracks if track.name == clip]
        for n, network in enumerate(NETWORKS):
            parts = [differences(track) for track in own]
            error = np.concatenate([e[n][s[n]] for e, _, s in parts])
            length = np.linalg.norm(error, axis=-1)
            jitter = np.concatenate([fast(e)[n][s[n][2:] & s[n][1:-1] & s[n][:-2]] for e, _, s in parts])
            swaps = [np.concatenate([swapped(t, n, pairs) for t in own]).mean() for pairs in PAIRS.values()]
            seen = np.concatenate([s[n] for _, _, s in parts])
            frames = sum(len(track.times) for track in own)
            figures = [np.median(length), robust(error), robust(jitter), (length > FAR).mean(), *swaps, 1 - seen.mean()]
            rows.append(f"| {clip} | {network} | {frames} | " + " | ".join(f"{100 * f:.2f} %" for f in figures) + " |")
    return rows


def joint_table(tracks: list[Track]) -> list[str]:
    """Error and jitter of each joint, of all networks and clips."""
    rows = ["| joint | bulk std | jitter | share of the mean |", "|---|---|---|---|"]
    parts = [differences(track) for track in tracks]
    spread = [robust(np.concatenate([e[..., j, :][s[..., j]] for e, _, s in parts])) for j in range(17)]
    jitter = [
        robust(np.concatenate([fast(e)[..., j, :][(s[:, 2:] & s[:, :-2])[..., j]] for e, _, s in parts]))
        for j in range(17)
    ]
    for j, name in enumerate(H36M17.names):
        rows.append(
            f"| {name} | {100 * spread[j]:.2f} % | {100 * jitter[j]:.2f} % | {spread[j] / np.mean(spread):.2f} |"
        )
    return rows


def speed_table(tracks: list[Track]) -> list[str]:
    """Error and jitter in bins of speed: person's sizes a second."""
    rows = ["| speed (sizes/s) | bulk std | jitter | share of joints |", "|---|---|---|---|"]
    pairs = [(e, np.broadcast_to(v, s.shape), s) for e, v, s in map(differences, tracks)]
    error = np.concatenate([e[:, 2:][s[:, 2:]] for e, _, s in pairs])
    jitter = np.concatenate([fast(e)[s[:, 2:]] for e, _, s in pairs])
    speed = np.concatenate([v[:, 2:][s[:, 2:]] for _, v, s in pairs])
    edges = (0, 0.1, 0.25, 0.5, 1, 2, np.inf)
    for low, high in pairwise(edges):
        rows_in = (speed >= low) & (speed < high)
        figures = (robust(error[rows_in]), robust(jitter[rows_in]), rows_in.mean())
        rows.append(f"| {low:g} to {high:g} | " + " | ".join(f"{100 * f:.2f} %" for f in figures) + " |")
    return rows


def score_table(tracks: list[Track]) -> list[str]:
    """Median error in bins of score, for each network."""
    edges = (0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.01)
    rows = ["| score | " + " | ".join(NETWORKS) + " |", "|---|" + "---|" * len(NETWORKS)]
    parts = [(np.linalg.norm(differences(t)[0], axis=-1), t.scores) for t in tracks]
    for low, high in pairwise(edges):
        cells = []
        for n in range(len(NETWORKS)):
            error = np.concatenate([e[n][(s[n] >= low) & (s[n] < high)] for e, s in parts])
            share = error.size / sum(s[n].size for _, s in parts)
            cells.append(f"{100 * np.median(error):.2f} % ({100 * share:.0f} %)" if error.size else "-")
        rows.append(f"| {low:g} to {min(high, 1):g} | " + " | ".join(cells) + " |")
    return rows


def memory_table(tracks: list[Track]) -> list[str]:
    """How long an error lasts: autocorrelation of the error at lags in seconds, on the 30 fps clip; burst lengths."""
    rows = ["| lag (s) | " + " | ".join(NETWORKS) + " |", "|---|" + "---|" * len(NETWORKS)]
    error = [np.clip(differences(track)[0], -FAR, FAR) for track in tracks if track.name == "dance.mp4"]
    for lag in (1, 2, 4, 8, 15, 30, 60):
        cells = []
        for n in range(len(NETWORKS)):
            now = np.concatenate([e[n][lag:] for e in error if e.shape[1] > lag])
            before = np.concatenate([e[n][:-lag] for e in error if e.shape[1] > lag])
            cells.append(f"{(now * before).mean() / np.sqrt((now**2).mean() * (before**2).mean()):.2f}")
        rows.append(f"| {lag / 30:.2f} | " + " | ".join(cells) + " |")
    return rows


def watch_all(shared: Path, clips: Iterable[str] = CLIPS) -> list[Track]:
    """What the networks see in the clips. shared: the folder with `videos` and `weights`."""
    return [track for clip in clips for track in watch(shared / "videos" / clip, Networks(shared / "weights"))]


def publish(sections: dict[str, list[str]], out: Path | None, heading: str = "Measured") -> None:
    """Print tables by title, or put them under this heading of a Markdown file, in place of what is there."""
    text = "\n\n".join(f"### {title}\n\n" + "\n".join(rows) for title, rows in sections.items()) + "\n"
    if out is None:
        print(text)
        return
    before = out.read_text() if out.exists() else ""
    above, _, below = before.partition(f"## {heading}\n")
    rest = below.partition("\n## ")[2]
    out.write_text(f"{above}## {heading}\n\n{text}" + (f"\n## {rest}" if rest else ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--out", type=Path, help="a Markdown file whose tables are replaced; default: print them")
    arguments = parser.parse_args()
    tracks = watch_all(arguments.shared)
    sections = {
        "By clip and network": table(tracks),
        "By joint": joint_table(tracks),
        "By speed": speed_table(tracks),
        "By score (median error, share of joints)": score_table(tracks),
        "Autocorrelation of the error": memory_table(tracks),
    }
    publish(sections, arguments.out)


if __name__ == "__main__":
    main()
