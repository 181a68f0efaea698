import av
import pytest
from pose_detectors.blazepose import BlazePoseDetector

from pose.networks.estimators.blazepose import BlazePose


@pytest.fixture(scope="session")
def blazepose_detector(weights_dir):
    return BlazePoseDetector(model=weights_dir / "blazepose-detector.tflite")


@pytest.fixture(scope="session")
def blazepose(weights_dir):
    return BlazePose(model=weights_dir / "blazepose-landmark-full.tflite")


@pytest.fixture(scope="session")
def dance(videos):
    """The first 60 frames of the dancer, (H, W, 3) uint8."""
    with av.open(str(videos / "dance.mp4")) as container:
        frames = container.decode(video=0)
        return [next(frames).to_ndarray(format="rgb24") for _ in range(60)]
