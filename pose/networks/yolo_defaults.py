"""Ultralytics' defaults for YOLO, shared by all runtimes."""

from typing import Literal

YoloTask = Literal["detect", "pose"]

SCORE_THRESHOLD = 0.25
OVERLAP_THRESHOLD = 0.7
MAX_DETECTIONS = 300
DEFAULT_SIDE = 640
