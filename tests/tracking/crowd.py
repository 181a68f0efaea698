"""Crowds that walk, hide and are seen badly by a moving camera, and who is who in them for the `trackers` library.

    python tests/tracking/crowd.py

writes trackers.json beside this file, where `trackers` is installed (Apache-2.0; it brings a second OpenCV, so it is no
part of the development environment).
"""

import json
from pathlib import Path

import numpy as np

SCENES = 3
SIZE = 160  # px, of the images
REFERENCE = Path(__file__).with_name("trackers.json")


def crowd(seed, people=5, frames=80):
    """Frames {"time", "boxes", "scores", "camera"}: irregular times, hidden people, weak boxes, shuffled rows."""
    rng = np.random.default_rng(seed)
    centres, speeds = rng.uniform(50, 700, (people, 2)), rng.normal(0, 90, (people, 2))
    sizes = rng.uniform([30, 80], [90, 220], (people, 2))
    hidden, time, camera = np.zeros(people, int), 0.0, np.zeros(2)
    for _ in range(frames):
        step = 1 / 30 if rng.random() < 0.7 else rng.uniform(0.01, 0.3)
        time += step
        camera = camera + rng.normal(0, 4, 2)
        speeds = speeds + rng.normal(0, 40, (people, 2))
        centres = centres + speeds * step
        speeds = np.where(((centres < 0) & (speeds < 0)) | ((centres > 800) & (speeds > 0)), -speeds, speeds)
        hidden = np.where(hidden > 0, hidden - 1, (rng.random(people) < 0.04) * rng.integers(1, 25, people))
        seen = rng.permutation(np.flatnonzero(hidden == 0))
        half = sizes[seen] * rng.normal(1, 0.03, (len(seen), 2)) / 2
        middle = centres[seen] + rng.normal(0, 2, (len(seen), 2)) - camera
        weak = rng.random(len(seen)) < 0.2
        scores = np.where(weak, rng.uniform(0.05, 0.5, len(seen)), rng.uniform(0.5, 1, len(seen)))
        yield {
            "time": round(time, 4),
            "boxes": np.concatenate([middle - half, middle + half], axis=1).round(1).tolist(),
            "scores": scores.round(3).tolist(),
            "camera": camera.round(2).tolist(),
        }


def arrays(frame, seen=True):
    """boxes (P, 4), scores (P,), time, and the image of a frame, if it is `seen`."""
    boxes = np.array(frame["boxes"], np.float32).reshape(-1, 4)
    return boxes, np.array(frame["scores"], np.float32), frame["time"], picture(frame["camera"]) if seen else None


def picture(camera):
    """(SIZE, SIZE, 3) what a camera at these px sees of a wall of waves."""
    y, x = np.mgrid[:SIZE, :SIZE] + np.array(camera)[::-1, None, None]
    waves = sum(np.sin(x * np.cos(k) / (3 + k) + y * np.sin(k) / (3 + k) + k) for k in range(1, 9))
    return np.repeat((128 + 15 * waves).astype(np.uint8)[..., None], 3, axis=2)


class Library:
    """A tracker of `trackers` with our settings."""

    def __init__(self, name):
        import trackers

        classes = {"bytetrack": "ByteTrackTracker", "ocsort": "OCSORTTracker", "botsort": "BoTSORTTracker"}
        starts = {"minimum_iou_threshold": 0.1} if name == "ocsort" else {"track_activation_threshold": 0.5}
        self._tracker = getattr(trackers, classes[name])(
            lost_track_buffer=30, minimum_consecutive_frames=1, high_conf_det_threshold=0.5, **starts
        )

    def update(self, boxes, scores, time, image):
        """(P,) its ids, -1 for no person. It names people when it sees them again; ours are named at once."""
        import supervision

        shown = supervision.Detections(xyxy=boxes, confidence=scores, data={"row": np.arange(len(boxes))})
        found = self._tracker.update(shown, frame=image, timestamp=time)
        ids = np.full(len(boxes), -1)
        if len(found):
            ids[found.data["row"]] = found.tracker_id
        new = [track for track in self._tracker.tracks if track.tracker_id == -1]
        for track in new:
            track.tracker_id = self._tracker._allocate_tracker_id()
        for row in np.flatnonzero((ids == -1) & (scores >= 0.5)):
            ids[row] = min(new, key=lambda track: np.abs(track.get_state_bbox() - boxes[row]).max()).tracker_id
        return ids


def main():
    from importlib.metadata import version

    scenes = []
    for seed in range(SCENES):
        frames = list(crowd(seed))
        for name in ("bytetrack", "ocsort", "botsort"):
            library = Library(name)
            for frame in frames:
                frame[name] = library.update(*arrays(frame, seen=name == "botsort")).tolist()
        scenes.append(",\n".join(json.dumps(frame, separators=(",", ":")) for frame in frames))
    body = "\n],[\n".join(scenes)
    REFERENCE.write_text(f'{{"trackers": "{version("trackers")}", "scenes": [[\n{body}\n]]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
