"""Human pose from video: the public API. What `__all__` does not list is private.

    from pose import Pipeline

    result = Pipeline.from_preset("fast").process("clip.mp4")
    print(result.people, result.joints().shape)

Names are imported at their first use, so that `import pose` is fast.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pose.errors import PoseError, UsageError
    from pose.export.joint_angles import JointAngles
    from pose.lifting import lift
    from pose.pipeline import Pipeline
    from pose.result import Result, load
    from pose.result_functions import analyse, convert
    from pose.several_videos import several

__all__ = [
    "JointAngles",
    "Pipeline",
    "PoseError",
    "Result",
    "UsageError",
    "analyse",
    "convert",
    "lift",
    "load",
    "several",
]

_MODULES = {
    "JointAngles": "pose.export.joint_angles",
    "Pipeline": "pose.pipeline",
    "PoseError": "pose.errors",
    "Result": "pose.result",
    "UsageError": "pose.errors",
    "analyse": "pose.result_functions",
    "convert": "pose.result_functions",
    "lift": "pose.lifting",
    "load": "pose.result",
    "several": "pose.several_videos",
}

# Read by ONNX Runtime at import. Without it some builds store an id of the machine in the home folder and send reports
# to their vendor, which no later call can stop. Set the variable to 0 to allow it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# Read by OpenCV at import: it rejects images of more pixels. Its own limit, 2**30, means 3 GiB. Set the variable for
# larger images.
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", "100000000")


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'pose' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
