"""The names of MediaPipe's removed module `mp.solutions.pose`, filled by this package.

```python
from pose.compat import mediapipe_pose as mp_pose

with mp_pose.Pose() as pose:
    results = pose.process(image)  # (H, W, 3) uint8 RGB
    if results.pose_landmarks:
        print(results.pose_landmarks.landmark[mp_pose.PoseLandmark.LEFT_WRIST].x)
```

Names, order, units and axes follow MediaPipe's documentation of the pose landmarks. The page "Moving from MediaPipe"
lists the differences.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Self

import numpy as np

from pose.errors import UsageError
from pose.pipeline import Pipeline
from pose.session import Session
from pose.structures.skeletons import BLAZEPOSE33, H36M17
from pose.structures.types import F64, U8, Frame, FrameResult

PoseLandmark = IntEnum("PoseLandmark", [(name.upper(), at) for at, name in enumerate(BLAZEPOSE33.names)])  # type: ignore[misc]
POSE_CONNECTIONS = frozenset(BLAZEPOSE33.edges)
_ESTIMATORS = ("blazepose-lite", "blazepose", "blazepose-heavy")  # by `model_complexity`
_FPS = 30.0  # frame rate that is assumed for images without times
_HIPS = [H36M17.index("left_hip"), H36M17.index("right_hip")]
# Joint of Human3.6M-17 that gives the depth of each landmark; the joint itself where it has the landmark's name.
_DEPTHS = np.array(
    [
        H36M17.index(
            name
            if name in H36M17.names
            else f"{name.split('_')[0]}_wrist"
            if name.split("_")[-1] in ("pinky", "thumb") or name in ("left_index", "right_index")
            else f"{name.split('_')[0]}_ankle"
            if "heel" in name or "foot" in name
            else "neck"  # the nose of Human3.6M-17; also for eyes, ears and mouth
        )
        for name in BLAZEPOSE33.names
    ]
)
_SAME = np.array([name in H36M17.names for name in BLAZEPOSE33.names])


@dataclass(slots=True)
class NormalizedLandmark:
    """A landmark in the image: x and y relative to width and height, z relative to the width, from the hips."""

    x: float
    y: float
    z: float
    visibility: float
    presence: float


@dataclass(slots=True)
class Landmark:
    """A landmark in metres from the middle of the hips: x right, y down, z away from the camera."""

    x: float
    y: float
    z: float
    visibility: float
    presence: float


@dataclass(slots=True)
class NormalizedLandmarkList:
    """The 33 landmarks of a person in the image."""

    landmark: list[NormalizedLandmark]


@dataclass(slots=True)
class LandmarkList:
    """The 33 landmarks of a person in metres."""

    landmark: list[Landmark]


@dataclass(slots=True)
class SolutionOutputs:
    """The result of an image; the landmarks are None without a person."""

    pose_landmarks: NormalizedLandmarkList | None = None
    pose_world_landmarks: LandmarkList | None = None
    segmentation_mask: None = None


class Pose:
    """The person of a stream of images, or of single images."""

    def __init__(
        self,
        static_image_mode: bool = False,
        model_complexity: int = 1,
        smooth_landmarks: bool = True,
        enable_segmentation: bool = False,
        smooth_segmentation: bool = True,
        min_detection_confidence: float = 0.5,
        min_tracking_confidence: float = 0.5,
    ) -> None:
        """Load the networks.

        Args:
            static_image_mode: Whether images are unrelated, so that each is searched for a person.
            model_complexity: 0, 1 or 2: BlazePose lite, full or heavy.
            smooth_landmarks: Ignored, as is `smooth_segmentation`: the tracker always smooths.
            enable_segmentation: Must be False: there is no segmentation.
            min_detection_confidence: Minimum score of a detection.
            min_tracking_confidence: Minimum confidence that a region still shows the person.

        Raises:
            UsageError: For an unknown complexity, or segmentation.
        """
        if model_complexity not in (0, 1, 2):
            raise UsageError(f"model_complexity: {model_complexity} is unknown; known: 0, 1, 2")
        if enable_segmentation:
            raise UsageError("enable_segmentation: segmentation is not available; leave it out")
        self._pipeline = Pipeline.from_preset(
            "fast", live=True, detector="blazepose", estimator=_ESTIMATORS[model_complexity], max_people=1,
            camera="fixed", detection_score=min_detection_confidence, presence_score=min_tracking_confidence,
        )  # fmt: skip
        self._static = static_image_mode
        self._session: Session | None = None
        self._size = (0, 0)
        self._count = 0

    def process(self, image: U8) -> SolutionOutputs:
        """Return the landmarks of the person in an RGB image (H, W, 3) uint8."""
        size = image.shape[1], image.shape[0]
        if self._session is None or self._static or size != self._size:
            self._session, self._size, self._count = self._pipeline.session(size), size, 0
        results = self._session.push(Frame(image, self._count, self._count / _FPS))
        self._count += 1
        return landmarks_of(results[-1], self._session.camera.matrix, size) if results else SolutionOutputs()

    def close(self) -> None:
        """End the stream."""
        self._session = None

    def reset(self) -> None:
        """End the stream; the next image starts another one."""
        self._session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def landmarks_of(result: FrameResult, matrix: F64, size: tuple[int, int]) -> SolutionOutputs:
    """Return the landmarks of the first person of a result with the skeleton `blazepose33`.

    Shoulders, elbows, wrists, hips, knees and ankles have the 3D positions of the lifter. Other landmarks are on the
    ray of their pixel, at the depth of the nearest of these joints or of the nose.
    """
    people, poses = result.people, result.poses
    if not len(people) or not np.isfinite(poses.joints[0]).all() or not np.isfinite(poses.root[0]).all():
        return SolutionOutputs()
    joints = (poses.joints[0] + poses.root[0]).astype(np.float64)
    hips = joints[_HIPS].mean(axis=0)
    pixels, scores = people.keypoints[0].astype(np.float64), people.scores[0].astype(np.float64)
    depths = joints[_DEPTHS, 2]
    rays = np.concatenate([pixels, np.ones((len(pixels), 1))], axis=1) @ np.linalg.inv(matrix).T
    places = np.where(_SAME[:, None], joints[_DEPTHS], rays * depths[:, None]) - hips
    # z has about the scale of x: pixels at the distance of the hips, relative to the width.
    z = (depths - hips[2]) * matrix[0, 0] / max(hips[2], 1e-3) / size[0]
    flat = np.column_stack([pixels / size, z, scores, scores]).tolist()
    solid = np.column_stack([places, scores, scores]).tolist()
    return SolutionOutputs(
        NormalizedLandmarkList([NormalizedLandmark(*one) for one in flat]),
        LandmarkList([Landmark(*one) for one in solid]),
    )
