"""Human pose from video: the public API. What `__all__` does not list is private.

    from pose import Pipeline

    result = Pipeline.from_preset("fast").process("clip.mp4")
    print(result.people, result.joints().shape)

The names are loaded when they are first used, so that `import pose` is fast.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pose.errors import PoseError, UsageError
    from pose.lifting import lift
    from pose.pipeline import Pipeline
    from pose.result import JointAngles, Result, analyse, convert, load

__all__ = ["JointAngles", "Pipeline", "PoseError", "Result", "UsageError", "analyse", "convert", "lift", "load"]

_MODULES = {
    "JointAngles": "pose.result",
    "Pipeline": "pose.pipeline",
    "PoseError": "pose.errors",
    "Result": "pose.result",
    "UsageError": "pose.errors",
    "analyse": "pose.result",
    "convert": "pose.result",
    "lift": "pose.lifting",
    "load": "pose.result",
}

# Read by ONNX Runtime when it is loaded. Without it some builds write an id of the machine into the home folder and
# send reports to their vendor, and no function of theirs stops that afterwards. Who wants it sets the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# Read by OpenCV when it is loaded: it decodes no picture of more pixels, whatever a file announces. Its own limit, of
# 2**30, is 3 GiB. Who has larger pictures sets the variable.
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", "100000000")


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'pose' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
