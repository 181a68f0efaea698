"""Writers of result files, one module per format, and the reader of `poses.npz`."""

from pose.results.json import JsonWriter
from pose.results.npz import NpzWriter
from pose.results.reader import load_poses, result_file
from pose.results.recording import Recording
from pose.results.result_files import WRITERS, ResultFiles
from pose.results.run_info import ModelInfo, MotionInfo, RunInfo, WorldInfo
from pose.results.writer import ResultWriter

__all__ = [
    "WRITERS",
    "JsonWriter",
    "ModelInfo",
    "MotionInfo",
    "NpzWriter",
    "Recording",
    "ResultFiles",
    "ResultWriter",
    "RunInfo",
    "WorldInfo",
    "load_poses",
    "result_file",
]
