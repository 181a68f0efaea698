"""Writers of results, one file a format, and the reader of `poses.npz`."""

from collections.abc import Callable
from pathlib import Path

from pose.export.poses_json import JsonWriter
from pose.export.poses_npz import NpzWriter
from pose.export.reader import PoseTable, load_poses
from pose.export.run_info import CameraInfo, ModelInfo, RunInfo
from pose.export.spool import ResultSpool
from pose.export.writer import ResultWriter

# Format name -> writer of `poses.<name>`.
WRITERS: dict[str, Callable[[Path, RunInfo], ResultWriter]] = {"json": JsonWriter, "npz": NpzWriter}

__all__ = [
    "WRITERS",
    "CameraInfo",
    "JsonWriter",
    "ModelInfo",
    "NpzWriter",
    "PoseTable",
    "ResultSpool",
    "ResultWriter",
    "RunInfo",
    "load_poses",
]
