"""Writers of result files, one module per format, and the reader of `poses.npz`."""

from pose.files.json import JsonWriter
from pose.files.motion_info import MotionInfo
from pose.files.npz import NpzWriter
from pose.files.reader import load_poses, result_file
from pose.files.result_files import WRITERS, ResultFiles
from pose.files.run_info import ModelInfo, RunInfo, WorldInfo
from pose.files.table import PoseTable
from pose.files.writer import ResultWriter

__all__ = [
    "WRITERS",
    "JsonWriter",
    "ModelInfo",
    "MotionInfo",
    "NpzWriter",
    "PoseTable",
    "ResultFiles",
    "ResultWriter",
    "RunInfo",
    "WorldInfo",
    "load_poses",
    "result_file",
]
