# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of a result folder, without Blender."""

import json
from pathlib import Path

import numpy as np

FLIP = np.diag([1.0, -1.0, -1.0])  # from camera axes (x right, y down, z forward) to y up, z towards the camera
VIDEOS = (".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v")


class Result:
    """People, times and camera of a `poses.npz`, in axes with y up."""

    def __init__(self, path):
        path = Path(path)
        self.path = path / "poses.npz" if path.is_dir() else path
        if not self.path.is_file():
            raise ValueError(f"{self.path}: no such file; choose the folder of a result of pose-run")
        try:
            with np.load(self.path, allow_pickle=False) as arrays:
                self._arrays = {name: arrays[name] for name in arrays.files}
            self.times = self._arrays["timestamps"]
            self._frames = self._arrays["frames"]
            self.run = json.loads(str(self._arrays["run"])) if "run" in self._arrays else {}
        except (KeyError, OSError, ValueError) as error:
            raise ValueError(f"{self.path}: is not a result of pose-run") from error
        self.has_world = "world" in self._arrays
        if not len(self.times):
            raise ValueError(f"{self.path}: contains no frame")

    @property
    def fps(self):
        """Frame rate of the source, frames/s."""
        known = float(self._arrays["fps"]) if "fps" in self._arrays else 0.0
        if known > 0:
            return known
        return 30.0 if len(self.times) < 2 else float(1 / np.median(np.diff(self.times)))

    @property
    def people(self):
        """Ids of the people."""
        return [int(one) for one in np.unique(self._arrays["id"])]

    def joints(self, person):
        """Indices of frames (n,) and joints (n, 17, 3) m of a person."""
        rows = np.flatnonzero(self._arrays["id"] == person)
        if self.has_world:
            joints = self._arrays["world"][rows].astype(float)
        else:
            joints = (self._arrays["joints3d"][rows] + self._arrays["root"][rows][:, None]).astype(float) @ FLIP.T
        known = np.isfinite(joints).all(axis=(1, 2))
        return np.searchsorted(self._frames, self._arrays["frame_index"][rows[known]]), joints[known]

    def camera(self):
        """K (3, 3) px, (width, height), rotations (F or 1, 3, 3) from camera axes, positions, zooms, or None."""
        if "intrinsics" not in self._arrays or "image_size" not in self._arrays:
            return None
        turn = self._arrays["world_rotation"] if self.has_world else FLIP
        floor = float(self._arrays["world_floor"]) if self.has_world else 0.0
        moves = self.has_world and "camera_rotation" in self._arrays
        own = self._arrays["camera_rotation"].astype(float) if moves else np.eye(3)[None]
        places = np.zeros((len(own), 3))
        if moves and "camera_position" in self._arrays:
            places = self._arrays["camera_position"].astype(float)
        zooms = self._arrays["camera_zoom"].astype(float) if "camera_zoom" in self._arrays else np.ones(len(own))
        return (
            self._arrays["intrinsics"],
            tuple(int(one) for one in self._arrays["image_size"]),
            turn @ own,
            places @ turn.T - (0, np.nan_to_num(floor), 0),
            zooms,
        )

    def video(self):
        """Path of the source video if it is found beside the result; else None."""
        name = Path(str(self.run.get("source", {}).get("name", ""))).name
        for folder in (self.path.parent, self.path.parent.parent):
            if name and (folder / name).is_file() and (folder / name).suffix.lower() in VIDEOS:
                return folder / name
        return None

    def characters(self):
        """Path of the characters, a GLB of pose-convert beside the result; else None."""
        found = self.path.with_suffix(".glb")
        return found if found.is_file() else None
