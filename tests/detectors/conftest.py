from collections.abc import Callable

import numpy as np
import pytest

from pose.structures.types import U8
from pose.video import open_source


@pytest.fixture(scope="session")
def clip_frame(videos) -> Callable[[str, int], U8]:
    """The RGB image `index` of a clip."""
    kept: dict[tuple[str, int], U8] = {}

    def read(clip: str, index: int) -> U8:
        if (clip, index) not in kept:
            with open_source(str(videos / clip)) as source:
                frame = next(frame for frame in source if frame.index == index)
            kept[clip, index] = frame.image
        return kept[clip, index]

    return read


@pytest.fixture
def empty_picture() -> U8:
    """A wall: no person."""
    return np.full((240, 320, 3), 180, np.uint8)
