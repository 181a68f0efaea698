"""Human pose from video: the public API. Names that `__all__` does not list are private.

    from pose import Pipeline

    result = Pipeline.from_preset("fast").process("clip.mp4")
    print(result.people, result.joints().shape)

Names are imported at their first use, so that `import pose` is fast.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pose.body.joint_angles import JointAngles
    from pose.errors import PoseError, UsageError
    from pose.export.result import Result, load
    from pose.functions import analyse, convert, lift, several
    from pose.live.loop import LiveLoop
    from pose.live.rerun_sink import RerunSink
    from pose.live.result import LiveResult
    from pose.live.sinks import UdpSink
    from pose.live.sources import PushedFrames, open_live
    from pose.live.websocket import WebSocketSink
    from pose.pipeline import Pipeline
    from pose.structures.types import Boxes, Frame

__all__ = [
    "Boxes",
    "Frame",
    "JointAngles",
    "LiveLoop",
    "LiveResult",
    "Pipeline",
    "PoseError",
    "PushedFrames",
    "RerunSink",
    "Result",
    "UdpSink",
    "UsageError",
    "WebSocketSink",
    "analyse",
    "convert",
    "lift",
    "load",
    "open_live",
    "several",
]

_MODULES = {
    "Boxes": "pose.structures.types",
    "Frame": "pose.structures.types",
    "JointAngles": "pose.body.joint_angles",
    "LiveLoop": "pose.live.loop",
    "LiveResult": "pose.live.result",
    "Pipeline": "pose.pipeline",
    "PoseError": "pose.errors",
    "PushedFrames": "pose.live.sources",
    "RerunSink": "pose.live.rerun_sink",
    "Result": "pose.export.result",
    "UdpSink": "pose.live.sinks",
    "UsageError": "pose.errors",
    "WebSocketSink": "pose.live.websocket",
    "analyse": "pose.functions",
    "convert": "pose.functions",
    "lift": "pose.functions",
    "load": "pose.export.result",
    "open_live": "pose.live.sources",
    "several": "pose.functions",
}

# ONNX Runtime reads this variable at import. If it is not set, some builds store an id of the machine in the home
# folder and send reports to their vendor; no later call can stop them. Set the variable to 0 to allow telemetry.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# OpenCV reads this variable at import and rejects images with more pixels. The default limit of OpenCV, 2**30 pixels,
# would allow images of 3 GiB. Set the variable to read larger images.
# OpenCV ends the process if the variable is not a number, so another text counts as not set.
if not os.environ.get("OPENCV_IO_MAX_IMAGE_PIXELS", "").isdecimal():
    os.environ["OPENCV_IO_MAX_IMAGE_PIXELS"] = "100000000"
for _limit in ("OPENCV_IO_MAX_IMAGE_WIDTH", "OPENCV_IO_MAX_IMAGE_HEIGHT"):
    if not os.environ.get(_limit, "0").isdecimal():
        del os.environ[_limit]

# OpenCV reads this variable at import, too. By default it writes to stderr about each damaged image, which a PoseError
# reports already. Set the variable to INFO to see its log.
os.environ.setdefault("OPENCV_LOG_LEVEL", "FATAL")


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'pose' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
