"""What a live loop hands out: the result of a frame with its picture, and how the loop is doing."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pose.files import WorldInfo
from pose.live.camera import WatchedWorld
from pose.skeletons import Skeleton
from pose.types import U8, FrameResult

if TYPE_CHECKING:
    from pose.pipeline import Pipeline, Session

STALL_SECONDS = 3.0  # without an image, after which a source counts as stalled


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Pictures of one size, (width, height) px, through one pipeline. With each of them identities begin anew.

    world: that their people are put into; None leaves them as they were lifted.
    """

    pipeline: "Pipeline"
    session: "Session"
    size: tuple[int, int]
    world: WatchedWorld | None = None


@dataclass(frozen=True, slots=True)
class LiveResult:
    """One frame, seen and lifted.

    image: (H, W, 3) uint8 RGB, the picture that `result` is about; shared between subscribers, never write to it.
    result: its `index` counts captured frames, so numbers of dropped ones are missing. skeleton: of the 2D keypoints.
    Poses that are predicted (`Poses3D.ahead`), their keypoints and boxes stand where people will be, not where the
    picture shows them. captured, done: s on the clock of `time.monotonic`, when the picture was there and when its 3D
    was. stream: what the frame belongs to; another one has other identities, and maybe other networks. world: that the
    people were put into, as it was known then, with the heights of those in the frame; None where they were not, as
    while the camera is carried. motion: of the camera, `static`, `rotating`, `translating` or `unknown`; empty where it
    was not measured. final: False where the same frame follows once more, refined (`LiveLoop.subscribe`).
    """

    image: U8
    result: FrameResult
    skeleton: Skeleton
    captured: float
    done: float
    stream: Stream | None = None
    world: WorldInfo | None = None
    motion: str = ""
    final: bool = True

    @property
    def latency(self) -> float:
        """s from the picture to its 3D."""
        return self.done - self.captured

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the picture, px."""
        return self.image.shape[1], self.image.shape[0]

    def mirrored(self) -> "LiveResult":
        """As a mirror shows it, for people who look at themselves. Names stay: a left hand is called left."""
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
        return replace(
            self,
            image=np.ascontiguousarray(self.image[:, ::-1]),
            result=FrameResult(
                replace(people, keypoints=keypoints, boxes=boxes, hands=hands),
                replace(poses, joints=poses.joints * side, root=poses.root * side),
                None if placed is None else replace(placed, joints=placed.joints * side),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a live loop is doing.

    fps: frames a second that get their 3D, over the last seconds. latency_ms, latency_p95_ms: from picture to 3D,
    median and 95th percentile over the last seconds; NaN before the first. people: seen in the last frame. device:
    where the networks run. lifter: its name. lifter_delay_ms: what its look-ahead adds, contained in the latency.
    ahead_ms: by how much the last frame was predicted; 0 where frames are not. frames_in: captured. processed: with 3D.
    dropped: older ones given up for newer ones. paused: frames are let pass unseen. message: what people must know,
    such as a camera that is gone; empty while all is well. world: what is known of gravity and of the camera's motion,
    in a few words; empty where nobody is put into a world. frame_age_s: time since the last captured frame; NaN before
    the first.
    """

    fps: float
    latency_ms: float
    latency_p95_ms: float
    people: int
    device: str
    lifter: str
    lifter_delay_ms: float
    ahead_ms: float
    frames_in: int
    processed: int
    dropped: int
    paused: bool
    message: str
    world: str = ""
    frame_age_s: float = math.nan

    @property
    def is_stalled(self) -> bool:
        """No image has come from the source for `STALL_SECONDS`."""
        return self.frame_age_s > STALL_SECONDS

    def line(self) -> str:
        """All of it in one line for people."""
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
        if self.paused:
            parts.append("paused")
        if self.is_stalled:
            parts.append(f"no image for {self.frame_age_s:.0f} s")
        if self.message:
            parts.append(self.message)
        return " | ".join(parts)
