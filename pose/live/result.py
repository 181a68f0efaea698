"""Results and status of a live loop."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pose.live.camera import WatchedWorld
from pose.live.counter import Count
from pose.results import WorldInfo
from pose.structures.camera import Camera
from pose.structures.skeletons import Skeleton
from pose.structures.types import U8, FrameResult
from pose.utils.json_values import Json

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose.session import Session

STALL_SECONDS = 3.0  # time without an image after which a source counts as stalled


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A sequence of images of one size, processed by one pipeline. Track ids restart with each stream of a pipeline."""

    pipeline: "Pipeline"  # pipeline that processes the images
    session: "Session"  # state of the pipeline for this stream, such as its tracks
    size: tuple[int, int]  # (width, height) of the images, px
    world: WatchedWorld | None = None  # world of the people; None for camera coordinates
    camera: Camera | None = None  # camera in whose frame the 3D poses are; None for the camera of the pipeline
    # Descriptions of the cameras, as in `RunInfo.cameras`; empty for one camera, and without a calibration.
    cameras: tuple[Mapping[str, Json], ...] = ()


@dataclass(frozen=True, slots=True)
class LiveResult:
    """Result of one frame."""

    image: U8  # (H, W, 3) uint8 RGB, the image of the frame. It is shared between subscribers: do not write to it
    # People and poses. `index` counts captured frames, so the indices of dropped frames are missing. With prediction
    # (`Poses3D.ahead`), poses, keypoints and boxes are those of a later time than the image.
    result: FrameResult
    skeleton: Skeleton  # skeleton of the 2D keypoints
    captured: float  # capture time in s on the clock of `time.monotonic`
    done: float  # time at which the 3D pose was available, s, on the same clock
    stream: Stream | None = None  # stream of the frame. Another stream has other track ids, and may have other networks
    # World of the people in this frame, with their heights; None in camera coordinates, for example while the camera
    # moves.
    world: WorldInfo | None = None
    motion: str = ""  # camera motion, `static`, `rotating`, `translating` or `unknown`; empty if not measured
    final: bool = True  # whether no refined result of the same frame follows (`LiveLoop.subscribe`)
    # Repetition counts by track id, for people who repeat a movement.
    counts: Mapping[int, Count] = field(default_factory=dict)

    @property
    def latency(self) -> float:
        """Time from the capture to the 3D pose, s."""
        return self.done - self.captured

    @property
    def size(self) -> tuple[int, int]:
        """Image size (width, height), px."""
        return self.image.shape[1], self.image.shape[0]

    def without_image(self) -> "LiveResult":
        """Return a copy with an empty image, to save memory."""
        return replace(self, image=np.empty((0, 0, 3), np.uint8))

    def mirrored(self) -> "LiveResult":
        """Return a mirrored copy for display: the image, and the 2D and 3D data of people, are flipped horizontally.

        Joints keep their names: a left hand stays left.
        """
        last = self.size[0] - 1
        people, poses, placed = self.result.people, self.result.poses, self.result.placed
        keypoints, boxes = people.keypoints.copy(), people.boxes.copy()
        keypoints[..., 0] = last - keypoints[..., 0]
        boxes[:, [0, 2]] = last - boxes[:, [2, 0]]
        side = np.array([-1, 1, 1], np.float32)
        hands = people.hands
        if hands is not None:
            points = hands.points * np.array([-1, 1], np.float32) + np.array([last, 0], np.float32)
            hands = replace(hands, points=points, shapes=hands.shapes * side)
        faces = people.faces
        if faces is not None:
            points = faces.points * side + np.array([last, 0, 0], np.float32)
            faces = replace(faces, points=points)
        return replace(
            self,
            image=np.ascontiguousarray(self.image[:, ::-1]),
            result=FrameResult(
                replace(people, keypoints=keypoints, boxes=boxes, hands=hands, faces=faces),
                replace(poses, joints=poses.joints * side, root=poses.root * side),
                None if placed is None else replace(placed, joints=placed.joints * side),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStatus:
    """State of a live loop."""

    fps: float  # rate of frames with 3D poses over the last 5 s, frames/s
    latency_ms: float  # median latency from capture to 3D pose over the last 5 s; NaN without frames
    latency_p95_ms: float  # 95th percentile of this latency over the last 5 s; NaN without frames
    people: int  # number of people in the last frame
    device: str  # device of the networks
    lifter: str  # name of the lifter, the network from 2D to 3D
    lifter_delay_ms: float  # delay by the look-ahead of the lifter, which is part of the latency
    ahead_ms: float  # prediction time of the last frame after its capture; 0 without prediction
    frames_in: int  # number of captured frames since the start
    processed: int  # number of frames with 3D poses
    dropped: int  # number of frames that were dropped to process newer ones
    paused: bool  # whether new frames are discarded
    message: str  # problem of the source, such as a lost camera; empty without one
    world: str = ""  # state of gravity and camera motion in a few words; empty in camera coordinates
    cameras: str = ""  # state of the calibration of several cameras in a few words; empty with one camera
    frame_age_s: float = math.nan  # time since the last captured frame, s; NaN before the first

    @property
    def is_stalled(self) -> bool:
        """Whether the source has sent no image for more than `STALL_SECONDS` (3 s)."""
        return self.frame_age_s > STALL_SECONDS

    def line(self) -> str:
        """Return the status as one line of text."""
        people = "1 person" if self.people == 1 else f"{self.people} people"
        latency = "no frame yet"
        if self.processed:
            latency = f"latency {self.latency_ms:.0f} ms (95th percentile {self.latency_p95_ms:.0f} ms)"
            if math.isnan(self.latency_ms):
                latency = "no new result"
        parts = [
            f"{self.fps:.1f} frames/s",
            latency,
            people,
            self.device,
            f"{self.lifter} lifter +{self.lifter_delay_ms:.0f} ms",
        ]
        if self.ahead_ms:
            parts.append(f"{self.ahead_ms:.0f} ms ahead")
        if self.dropped:
            parts.append(f"{self.dropped} dropped")
        if self.world:
            parts.append(self.world)
        if self.cameras:
            parts.append(self.cameras)
        if self.paused:
            parts.append("paused")
        if self.is_stalled:
            parts.append(f"no image for {self.frame_age_s:.0f} s")
        if self.message:
            parts.append(self.message)
        return " | ".join(parts)
