"""The peer: a plain loop of MediaPipe Pose, run by the other two scripts in an environment of its own.

`mediapipe==0.10.21` pins NumPy 1, so it cannot live beside the project. This file imports only mediapipe, numpy and av.

    python mediapipe_peer.py CLIP.mp4 RESULT.npz

RESULT holds `landmarks` (T, 33, 4): x, y in px, visibility, presence, NaN where no person was found; `seconds`: of the
whole loop, decoding included; `process_seconds`: of MediaPipe alone.
"""

import sys
import time

import av
import mediapipe
import numpy as np


def main(clip: str, result: str) -> None:
    landmarks: list[np.ndarray] = []
    process = 0.0
    pose = mediapipe.solutions.pose.Pose(static_image_mode=False, model_complexity=1, smooth_landmarks=False)
    start = time.perf_counter()
    with av.open(clip) as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            image = frame.to_ndarray(format="rgb24")
            before = time.perf_counter()
            found = pose.process(image).pose_landmarks
            process += time.perf_counter() - before
            row = np.full((33, 4), np.nan, np.float32)
            if found:
                height, width = image.shape[:2]
                row[:] = [(p.x * width, p.y * height, p.visibility, p.presence) for p in found.landmark]
            landmarks.append(row)
    seconds = time.perf_counter() - start
    np.savez(result, landmarks=np.array(landmarks), seconds=seconds, process_seconds=process)


if __name__ == "__main__":
    main(*sys.argv[1:])
