"""Loops of MediaPipe over a video, run as a script in an environment with `mediapipe==0.10.21` and `av`.

MediaPipe pins NumPy 1, so it has an environment of its own, and this file imports nothing of this project.
"""

import json
import sys
import time
import zipfile
from pathlib import Path

import av
import mediapipe
import numpy as np

MIN_CONFIDENCE = 0.1  # of MediaPipe Tasks; with its default of 0.5 it finds no one in images of several people


def pose(clip: str, result: str) -> None:
    """Write landmarks (T, 33, 4), seconds of the whole loop and of MediaPipe alone."""
    landmarks: list[np.ndarray] = []
    process = 0.0
    network = mediapipe.solutions.pose.Pose(static_image_mode=False, model_complexity=1, smooth_landmarks=False)
    start = time.perf_counter()
    with av.open(clip) as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            image = frame.to_ndarray(format="rgb24")
            before = time.perf_counter()
            found = network.process(image).pose_landmarks
            process += time.perf_counter() - before
            row = np.full((33, 4), np.nan, np.float32)
            if found:
                height, width = image.shape[:2]
                row[:] = [(p.x * width, p.y * height, p.visibility, p.presence) for p in found.landmark]
            landmarks.append(row)
    seconds = time.perf_counter() - start
    np.savez(result, landmarks=np.array(landmarks), seconds=seconds, process_seconds=process)


def tasks(clip: str, models: str, people: str) -> None:
    """Print the people found by MediaPipe Tasks, for each frame."""
    from mediapipe.tasks.python import BaseOptions, vision
    from mediapipe.tasks.python.metadata.metadata_writers.metadata_writer import MetadataWriter

    bundle = Path(clip).with_suffix(".task")
    parts = (  # name, our file, mean and scale of the input
        ("pose_detector", "blazepose-detector", 127.5, 127.5),
        ("pose_landmarks_detector", "blazepose-landmark-full", 0.0, 255.0),
    )
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_STORED) as archive:
        for name, file, mean, scale in parts:
            writer = MetadataWriter.create(bytearray((Path(models) / f"{file}.tflite").read_bytes()))
            archive.writestr(f"{name}.tflite", writer.add_image_input([mean], [scale]).populate()[0])
    options = vision.PoseLandmarkerOptions(
        base_options=BaseOptions(model_asset_path=str(bundle)),
        running_mode=vision.RunningMode.VIDEO,
        num_poses=int(people),
        min_pose_detection_confidence=MIN_CONFIDENCE,
        min_pose_presence_confidence=MIN_CONFIDENCE,
    )
    found = []
    with vision.PoseLandmarker.create_from_options(options) as landmarker, av.open(clip) as container:
        for number, frame in enumerate(container.decode(video=0)):
            pixels = np.ascontiguousarray(frame.to_ndarray(format="rgb24"))
            image = mediapipe.Image(image_format=mediapipe.ImageFormat.SRGB, data=pixels)
            found.append(len(landmarker.detect_for_video(image, number * 33).pose_landmarks))
    print(json.dumps(float(np.mean(found))))


if __name__ == "__main__":
    {"pose": pose, "tasks": tasks}[sys.argv[1]](*sys.argv[2:])
