"""Data types passed between the stages: frozen data classes that contain NumPy arrays.

Axes: P person, J joint, T time. Pixels: x right, y down, (0, 0) is the centre of the top-left pixel. 3D coordinates are
in metres in the camera frame: x right, y down, z forward. Times are in seconds. Scores are in [0, 1]; 0 means "not
seen", and the coordinates of that point are then invalid.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pose.errors import UsageError
from pose.structures.columns import KEYPOINTS, ColumnSet, Rows, check_shape, column
from pose.structures.columns import Array as Array  # for annotations
from pose.structures.face_points import Faces
from pose.structures.hand_points import Hands
from pose.structures.skeletons import H36M17, LIMBS

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Flags = NDArray[np.bool_]
JOINTS = len(H36M17)


@dataclass(frozen=True, slots=True)
class Frame:
    """One image of the source.

    Attributes:
        image: (H, W, 3) uint8 RGB, upright (rotation metadata already applied).
        index: 0, 1, 2, ... in decoding order.
        time: Seconds from the container's time stamps, relative to the first frame of the source.
    """

    image: U8
    index: int
    time: float

    @classmethod
    def from_bgr(cls, image: U8, index: int, time: float) -> Self:
        """Make a frame from an OpenCV image, (H, W, 3) uint8 in BGR order. `time` is in s from the first frame.

        Raises:
            UsageError: If the image has another type or shape.
        """
        if not (isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3):
            array = isinstance(image, np.ndarray)
            given = f"{image.dtype} of shape {image.shape}" if array else type(image).__name__
            raise UsageError(f"image: expected (H, W, 3) uint8, got {given}")
        return cls(np.ascontiguousarray(image[:, :, ::-1]), index, time)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.image.shape[1], self.image.shape[0]


@dataclass(frozen=True, slots=True)
class Regions:
    """P rotated rectangles to crop."""

    centers: F32  # (P, 2) px
    sizes: F32  # (P, 2) width and height in px
    angles: F32  # (P,) rad, clockwise rotation of the rectangle in the image; 0 is upright

    def __post_init__(self) -> None:
        n = len(self.centers)
        check_shape(self, "centers", (n, 2))
        check_shape(self, "sizes", (n, 2))
        check_shape(self, "angles", (n,))

    def __len__(self) -> int:
        return len(self.centers)

    def __getitem__(self, rows: NDArray[np.generic] | slice | list[int]) -> "Regions":
        return Regions(self.centers[rows], self.sizes[rows], self.angles[rows])

    @classmethod
    def empty(cls) -> Self:
        """Return `Regions` without any region."""
        return cls(np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32), np.zeros(0, np.float32))

    @classmethod
    def concatenate(cls, parts: list["Regions"]) -> Self:
        """Return the regions of all parts, in order."""
        if not parts:
            return cls.empty()
        return cls(
            np.concatenate([part.centers for part in parts]),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate([part.angles for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class Boxes:
    """P detections of people in one frame."""

    xyxy: F32  # (P, 4) px, left, top, right and bottom; may exceed the image
    scores: F32  # (P,) confidence
    # Crops proposed by the detector, which may be rotated with the person; None if the detector returns boxes only.
    regions: Regions | None = None

    def __post_init__(self) -> None:
        n = len(self.xyxy)
        check_shape(self, "xyxy", (n, 4))
        check_shape(self, "scores", (n,))
        if self.regions is not None and len(self.regions) != n:
            raise ValueError(f"Boxes.regions: expected {n} regions, got {len(self.regions)}")

    def __len__(self) -> int:
        return len(self.xyxy)

    def __getitem__(self, rows: NDArray[np.generic] | slice | list[int]) -> "Boxes":
        return Boxes(self.xyxy[rows], self.scores[rows], None if self.regions is None else self.regions[rows])

    @classmethod
    def empty(cls) -> Self:
        """Return `Boxes` without any detection."""
        return cls(np.zeros((0, 4), np.float32), np.zeros(0, np.float32))


@dataclass(frozen=True, slots=True)
class Keypoints2D:
    """Output of an estimator for P crops of one frame, in the estimator's skeleton."""

    xy: F32  # (P, J, 2) px of the whole image
    scores: F32  # (P, J) confidence; 0 for keypoints that are not seen
    presence: F32  # (P,) probability that the crop shows a person
    next_regions: Regions  # regions of the same people in the next frame
    # (P, J) px, root mean square distance of several networks from their mean; 0 where one saw the keypoint; default 0
    distance: F32 = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        n, j = self.scores.shape
        if self.distance is None:
            object.__setattr__(self, "distance", np.zeros((n, j), np.float32))
        check_shape(self, "xy", (n, j, 2))
        check_shape(self, "presence", (n,))
        check_shape(self, "distance", (n, j))
        if len(self.next_regions) != n:
            raise ValueError(f"Keypoints2D.next_regions: expected {n} regions, got {len(self.next_regions)}")

    def __len__(self) -> int:
        return len(self.xy)

    def __getitem__(self, rows: NDArray[np.generic]) -> "Keypoints2D":
        return Keypoints2D(
            self.xy[rows], self.scores[rows], self.presence[rows], self.next_regions[rows], self.distance[rows]
        )

    def __add__(self, more: "Keypoints2D") -> "Keypoints2D":
        parts = ((getattr(self, name), getattr(more, name)) for name in ("xy", "scores", "presence", "distance"))
        xy, scores, presence, distance = (np.concatenate(pair) for pair in parts)
        return Keypoints2D(xy, scores, presence, Regions.concatenate([self.next_regions, more.next_regions]), distance)


NO_LINK = -1  # instead of the index of a key frame


@dataclass(frozen=True, slots=True)
class Background:
    """Background motion of one frame relative to key frames (`pose.world.camera_motion.measure`)."""

    # (2, 6), a row for each of two key frames. Column 0 is the index of the key frame; NO_LINK means none. Columns 1 to
    # 3 are the rotation vector (rad) from this frame's camera axes to those of the key frame. Column 4 is the logarithm
    # of the ratio of focal lengths, this frame over key frame. Column 5 is the standard deviation of the rotation
    # (rad).
    links: F64
    features: int  # number of tracked points
    inliers: float  # share of the tracked points that agree with one rotation and zoom
    shift: float  # median displacement of the points since the key frame in px of the original image
    # Residual of the points in rad that a translation of the camera explains; NaN if not tested
    # (`pose.world.camera_motion.parallax`).
    parallax: float = float("nan")
    # Ratio of the focal length that a pure rotation without zoom would require to the expected focal length; NaN if not
    # tested.
    focal_ratio: float = float("nan")
    focal_sigma: float = float("nan")  # standard deviation of the logarithm of `focal_ratio`; NaN if not tested

    def __post_init__(self) -> None:
        check_shape(self, "links", (2, 6))


@dataclass(frozen=True, slots=True)
class People(ColumnSet):
    """The P tracked people of one frame in 2D, with J keypoints each.

    Attributes:
        index: Index of the frame.
        time: Time of the frame in s.
        ids: (P,) int64, stable over time.
        boxes: (P, 4) px, left, top, right and bottom.
        box_scores: (P,) confidence that the box contains a person; 0 for predicted boxes.
        keypoints: (P, J, 2) px in the estimator's skeleton.
        scores: (P, J) confidence; 0 for keypoints that are not seen.
        keypoint_sigma: (P, J) px, radius around each keypoint that contains the true point with a probability of 68 %
            (`pose.structures.keypoint_sigma`); 0 if unknown.
        interpolated: (P,) whether 2D and 3D of a person are interpolated between samples (`pose.lifting.between`).
        untracked: Number of confident detections that belong to no track; 0 in frames without a detection pass.
        cut: Whether a new scene begins here (a hard cut); no track continues across it.
        sampled: Whether people were searched for in this frame. False for frames between samples: they contain only
            people who move fast, until `pose.lifting.between` adds the others.
        background: Background motion; None in frames without a measurement.
        segments: (L, 2, 2) px, ends of line segments of the background (`pose.world.scene.lines`); None in frames
            in which they were not searched for.
        hands: Hands of the same people; None if they were not estimated.
        faces: Faces of the same people; None if they were not estimated.
    """

    index: int
    time: float
    ids: I64 = column("id", dtype="<i8", member="id")
    boxes: F32 = column("box", (4,), unit="px", space="image", limits=(-1e7, 1e7), member="box", decimals=2)
    box_scores: F32 = column("box_score", limits=(0, 1), member="score", decimals=3)
    keypoints: F32 = column(
        "keypoints", (KEYPOINTS, 2), unit="px", space="image", limits=(-1e7, 1e7), member="keypoints", decimals=2
    )
    scores: F32 = column("scores", (KEYPOINTS,), limits=(0, 1))
    keypoint_sigma: F32 = column(
        "keypoint_sigma", (KEYPOINTS,), unit="px", limits=(0, 1e7), required=False, optional=True,
        member="keypoint_sigma", decimals=1, sparse=True,
    )  # fmt: skip
    interpolated: Flags = column(
        "interpolated", dtype="|b1", required=False, optional=True, member="interpolated", sparse=True
    )
    untracked: int = 0
    cut: bool = False
    sampled: bool = True
    background: Background | None = None
    segments: F32 | None = None
    hands: Hands | None = None
    faces: Faces | None = None

    def __post_init__(self) -> None:
        self.check_columns(self.scores.shape[1])
        for name, hands_or_faces in (("hands", self.hands), ("faces", self.faces)):
            if hands_or_faces is not None and len(hands_or_faces) != len(self):
                found = len(hands_or_faces)
                raise ValueError(f"People.{name}: expected those of {len(self)} people, got {found}")

    def _with(self, arrays: Mapping[str, Array]) -> "People":
        return replace(self, hands=None, faces=None, **arrays)  # type: ignore[arg-type]

    def __getitem__(self, rows: Rows) -> "People":
        """Return the people in some rows, with their hands and faces."""
        hands = None if self.hands is None else self.hands[rows]
        faces = None if self.faces is None else self.faces[rows]
        return replace(ColumnSet.__getitem__(self, rows), hands=hands, faces=faces)

    def with_undetected(self, ids: list[int], boxes: F32) -> "People":
        """Return these people, followed by N people without keypoints.

        Args:
            ids: Track ids of the N people.
            boxes: (N, 4) xyxy px, predicted boxes of the people.
        """
        count, joints = len(ids), self.scores.shape[1]
        added = People(
            self.index, self.time, np.asarray(ids, np.int64), boxes, np.zeros(count, np.float32),
            np.zeros((count, joints, 2), np.float32), np.zeros((count, joints), np.float32),
        )  # fmt: skip
        hands = None if self.hands is None else self.hands + Hands.unknown(count)
        faces = None if self.faces is None else self.faces + Faces.unknown(count)
        return replace(self + added, hands=hands, faces=faces)


@dataclass(frozen=True, slots=True)
class Poses3D(ColumnSet):
    """3D poses of the P people of a frame (Human3.6M-17), one row for each row of `People`.

    Attributes:
        joints: (P, 17, 3) m, relative to the pelvis, in camera axes (x right, y down, z forward).
        root: (P, 3) m, position of the pelvis in the camera frame.
        sigma: (P, 17) mm, radius around each joint that contains the true joint with a probability of 68 %.
        swapped: (P, 2), whether repair swapped left and right before lifting: column 0 for the legs, column 1 for the
            arms; default False.
        ahead: (P,) s since the person was last observed, if the pose is predicted; 0 for an observed pose.
        seen_by: (P, 17) bit mask; bit c is set if camera c observed the joint. All 0 with a single camera.
    """

    joints: F32 = column(
        "joints3d", (JOINTS, 3), unit="m", space="camera", limits=(-1e6, 1e6), member="joints3d", decimals=4
    )
    root: F32 = column("root", (3,), unit="m", space="camera", limits=(-1e6, 1e6), member="root", decimals=4)
    sigma: F32 = column("sigma", (JOINTS,), unit="mm", limits=(0, 1e9), member="sigma", decimals=1)
    swapped: Flags = column(
        "swapped", (2,), "|b1", required=False, optional=True, member="swapped", labels=("legs", "arms")
    )
    ahead: F32 = column(
        "ahead", unit="s", limits=(0, 3600), required=False, optional=True, member="ahead", decimals=4, sparse=True
    )
    seen_by: U8 = column(
        "seen_by", (JOINTS,), "|u1", part="cameras", required=False, optional=True, member="seen_by", sparse=True
    )

    def __post_init__(self) -> None:
        self.check_columns()


SENSORS = ("camera", "depth", "imu")  # bits of `Placed.measured_by`, from the lowest


@dataclass(frozen=True, slots=True)
class Placed(ColumnSet):
    """Poses of the P people of a frame in world coordinates (`pose.world.frame`), one row for each row of `People`.

    Attributes:
        joints: (P, 17, 3) m; x to the camera's right, y up, z towards the camera, floor at y = 0.
        root_sigma: (P,) mm, uncertainty of the distance of the pelvis from the camera; NaN if unknown.
        contacts: (P, 2) contact probability of left and right foot.
        filled: (P,) whether the person was not observed in this frame and the pose is interpolated.
        moved: (P,) mm, mean distance by which smoothing and clean-up moved the joints; NaN without clean-up.
        doubtful: (P,) whether the track may be a false detection (`pose.world.tracks`).
        partial: (P,) whether the person enters or leaves the view, or is below the floor (`pose.world.clean`).
        inconsistent: (P, 4) whether the 2D keypoints of each limb (`pose.structures.skeletons.LIMBS`) contradict the
        person's bone
            lengths (`pose.world.consistency`).
        measured_by: (P, 17) bit mask of `SENSORS`: what measured the joint in this frame. All 0 with a camera alone.
        raw: (P, 17, 3) m, joints in the camera frame before depth, gap, smoothing and foot steps; NaN in filled rows.
    """

    joints: F32 = column(
        "world", (JOINTS, 3), unit="m", space="world", limits=(-1e6, 1e6), part="world", fill=math.nan, member="world",
        decimals=4,
    )  # fmt: skip
    root_sigma: F32 = column(
        "root_sigma", unit="mm", limits=(0, 1e9), part="world", fill=math.nan, member="root_sigma", decimals=1
    )
    contacts: F32 = column("contacts", (2,), limits=(0, 1), part="world", member="contacts", decimals=2)
    filled: Flags = column("filled", dtype="|b1", part="world", member="filled")
    moved: F32 = column("moved", unit="mm", limits=(0, 1e9), part="world", fill=math.nan, member="moved", decimals=1)
    doubtful: Flags = column("doubtful", dtype="|b1", required=False, optional=True, member="doubtful", sparse=True)
    partial: Flags = column(
        "partial", dtype="|b1", part="world", required=False, optional=True, member="partial", sparse=True
    )
    inconsistent: Flags = column(
        "inconsistent", (len(LIMBS),), "|b1", part="world", required=False, optional=True, member="inconsistent",
        labels=tuple(LIMBS), sparse=True,
    )  # fmt: skip
    raw: F32 = column(
        "raw_joints3d", (JOINTS, 3), unit="m", space="camera", limits=(-1e6, 1e6), part="world", required=False,
        optional=True, fill=math.nan,
    )  # fmt: skip
    measured_by: U8 = column(
        "measured_by",
        (JOINTS,),
        "|u1",
        part="sensors",
        required=False,
        optional=True,
        member="measured_by",
        sparse=True,
    )

    def __post_init__(self) -> None:
        self.check_columns()


@dataclass(frozen=True, slots=True, eq=False)
class CameraView:
    """Orientation and position of the camera in one frame."""

    # (3, 3) rotation from the camera axes of this frame to those of the first frame of the scene. The `world_rotation`
    # of the result maps the latter to the world.
    rotation: F64
    zoom: float  # ratio of the focal length in this frame to that of the intrinsics
    sigma_degrees: float  # uncertainty of the rotation in degrees; NaN if unknown
    # (3,) m, optical centre in the camera axes of the scene's first frame; None if the camera only rotates.
    position: F64 | None = None
    position_sigma: float = math.nan  # m, standard deviation of `position`; NaN if unknown


@dataclass(frozen=True, slots=True)
class FrameResult:
    """The complete result of one frame.

    Attributes:
        people: People in 2D.
        poses: Poses in 3D in the camera frame, in the order of `people`.
        placed: Poses in world coordinates; None if the result has no world.
        view: Pose of a moving camera; None if the camera is static or its motion unknown.
    """

    people: People
    poses: Poses3D
    placed: Placed | None = None
    view: CameraView | None = None

    @property
    def index(self) -> int:
        """Index of the frame."""
        return self.people.index

    @property
    def time(self) -> float:
        """Time of the frame in s."""
        return self.people.time
