"""What `ultralytics` itself finds, as numbers for tests/detectors: the proof that our YOLO gives the same.

Run it where `ultralytics` is installed, from the checkout:

    python tests/detectors/ultralytics_reference.py ../shared tests/detectors/ultralytics.json

on a CPU with 8-bit dot products (VNNI), into `ultralytics_without_vnni.json` beside it on an x86 one without.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from pose.structures.types import U8
from pose.video import open_source

FRAMES = {"street.mp4": (0, 2, 4), "walk-by.mp4": (60, 400, 700), "dance.mp4": (0, 100, 300), "squats.mp4": (10, 30)}
PICTURES = ("bus.jpg", "zidane.jpg")
NETWORKS = {"detect": ("yolo26n-person-320-int8.onnx", 320), "pose": ("yolo26n-pose-256-int8.onnx", 256)}


def images(shared: Path) -> Iterator[tuple[str, U8]]:
    """Names and RGB images: frames of the clips as `clip#index`, and Ultralytics' own two images."""
    from ultralytics.utils import ASSETS

    for name in PICTURES:
        yield name, np.ascontiguousarray(cv2.imread(str(ASSETS / name))[..., ::-1])
    for clip, indices in FRAMES.items():
        with open_source(str(shared / "videos" / clip)) as source:
            for frame in source:
                if frame.index in indices:
                    yield f"{clip}#{frame.index}", frame.image
                if frame.index == max(indices):
                    break


def measure(shared: Path) -> dict[str, dict[str, list[list[float]]]]:
    """Image -> task -> rows: x0, y0, x1, y1 px, score, and for pose 17 times x, y px, score."""
    from ultralytics import YOLO

    networks = {task: (YOLO(shared / "weights" / file, task=task), side) for task, (file, side) in NETWORKS.items()}
    found: dict[str, dict[str, list[list[float]]]] = {}
    for name, image in images(shared):
        found[name] = {}
        for task, (network, side) in networks.items():
            result = network.predict(image[..., ::-1].copy(), imgsz=side, device="cpu", verbose=False)[0]
            rows = result.boxes.data[:, :5]
            if task == "pose":
                joints = result.keypoints.data.reshape(len(rows), 51)
                rows = np.concatenate([rows, joints], axis=1)
            found[name][task] = np.asarray(rows, np.float64).round(3).tolist()
    return found


def main() -> None:
    import onnxruntime
    import ultralytics

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shared", type=Path, help="folder of weights and videos")
    parser.add_argument("out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    versions = {"ultralytics": ultralytics.__version__, "onnxruntime": onnxruntime.__version__}
    rows = measure(arguments.shared)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(tasks)}" for name, tasks in rows.items())
    arguments.out.write_text(f'{{"versions": {json.dumps(versions)}, "pictures": {{\n{lines}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
