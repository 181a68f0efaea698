import av
import pytest


@pytest.fixture(scope="session")
def dance(videos):
    """The first 60 frames of the dancer, (H, W, 3) uint8."""
    with av.open(str(videos / "dance.mp4")) as container:
        frames = container.decode(video=0)
        return [next(frames).to_ndarray(format="rgb24") for _ in range(60)]
