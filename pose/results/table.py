"""The result of a whole run as arrays."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.results.run_info import RunInfo, WorldInfo
from pose.structures.camera import Camera
from pose.structures.face_points import Faces
from pose.structures.hand_points import Hands, swapped_with_arms
from pose.structures.skeletons import H36M17, Skeleton, to_h36m17
from pose.structures.types import F32, F64, I64, U8, CameraView, Flags, FrameResult, People, Placed, Poses3D


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseTable:
    """The result of a whole run as arrays of F frames and N rows, one row per person and frame, sorted by frame.

    Attributes:
        frames: (F,) index of each frame.
        timestamps: (F,) s, time of each frame.
        frame_index: (N,) index of the row's frame, a value of `frames`.
        time: (N,) s, time stamp of the row's frame.
        id: (N,) track id.
        box: (N, 4) px, bounding box of the person, xyxy.
        box_score: (N,) score of the detection.
        keypoints: (N, J, 2) px, 2D keypoints.
        scores: (N, J) scores of the 2D keypoints.
        joints3d: (N, 17, 3) m, joints relative to the root, camera frame.
        root: (N, 3) m, position of the pelvis, camera frame.
        sigma: (N, 17) mm, uncertainty of the joints, the radius that contains the joint with probability 0.68.
        swapped: (N, 2) whether left and right keypoints were swapped before lifting, for legs, arms; False if unknown.
        ahead: (N,) s since the person was last observed, if the pose is predicted; 0 for an observed pose.
        seen_by: (N, 17) bit mask; bit c is set if camera c observed the joint. All 0 with a single camera.
        skeleton: Skeleton of the keypoints.
        placed: People in world coordinates; None if the result has no world coordinates.
        world_info: World frame and people's heights; None if the result has no world coordinates.
        run: Metadata of the run; None for results of `pose-lift`.
        complete: False if the run was interrupted.
        format_version: Version of the file format; None for results of `pose-lift`.
        camera_rotation: (F, 3, 3) rotation from the camera axes of each frame to those of the scene's first frame. This
            array, `camera_zoom` and `camera_sigma` are None if the camera is static or its motion is unknown.
        camera_zoom: (F,) focal length of each frame relative to that of the intrinsics.
        camera_sigma: (F,) degrees, uncertainty of the rotation.
        camera_position: (F, 3) m, optical centre in the camera axes of the scene's first frame; None if the camera is
            static or only rotates.
        hand_keypoints: (N, 2, 21, 2) px, points of the left and right hand. This array, `hand_scores` and
            `hand_joints3d` are None if hands were not estimated.
        hand_scores: (N, 2, 21) scores of the points.
        hand_joints3d: (N, 2, 21, 3) m in camera axes, relative to the lifted wrists.
        hand_sigma: (N, 2, 21) mm, radius that contains the point, relative to the wrist, with probability 0.68; None in
            old results.
        face_keypoints: (N, 468, 3) px, x, y and depth of the face points; None if faces were not estimated.
        face_scores: (N,) probability of each face; None if faces were not estimated.
    """

    frames: I64
    timestamps: F64
    frame_index: I64
    time: F64
    id: I64
    box: F32
    box_score: F32
    keypoints: F32
    scores: F32
    joints3d: F32
    root: F32
    sigma: F32
    swapped: Flags
    ahead: F32
    seen_by: U8
    skeleton: Skeleton
    placed: Placed | None = None
    world_info: WorldInfo | None = None
    run: RunInfo | None = None
    complete: bool = True
    format_version: int | None = None
    camera_rotation: F32 | None = None
    camera_zoom: F32 | None = None
    camera_sigma: F32 | None = None
    camera_position: F32 | None = None
    hand_keypoints: F32 | None = None
    hand_scores: F32 | None = None
    hand_joints3d: F32 | None = None
    hand_sigma: F32 | None = None
    face_keypoints: F32 | None = None
    face_scores: F32 | None = None

    @property
    def camera(self) -> Camera | None:
        """Intrinsics of the camera in whose frame the 3D poses are; None if unknown."""
        return None if self.run is None else self.run.camera

    @property
    def fps(self) -> float | None:
        """Average frames per second of the source; None if unknown."""
        return None if self.run is None else self.run.fps

    @property
    def doubtful(self) -> Flags:
        """Mask (N,) of the rows of tracks that may be false detections."""
        return np.isin(self.id, self.doubtful_ids) if self.placed is None else self.placed.doubtful

    @property
    def doubtful_ids(self) -> tuple[int, ...]:
        """Ids of tracks that may be false detections."""
        if self.world_info is not None:
            return self.world_info.doubtful
        return () if self.run is None else self.run.doubtful

    @property
    def keypoint_names(self) -> tuple[str, ...]:
        """Names of the J 2D joints, in the order of `keypoints`."""
        return self.skeleton.names

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the 17 3D joints, in the order of `joints3d`."""
        return H36M17.names

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.frames)

    def __getitem__(self, position: int) -> FrameResult:
        """Return the result of the frame at `position`, from 0 to F - 1."""
        index = int(self.frames[position])
        first, last = np.searchsorted(self.frame_index, [index, index + 1])
        rows = slice(int(first), int(last))
        people = People(
            index,
            float(self.timestamps[position]),
            self.id[rows],
            self.box[rows],
            self.box_score[rows],
            self.keypoints[rows],
            self.scores[rows],
            hands=self.hand_rows(rows),
            faces=self.face_rows(rows),
        )
        poses = Poses3D(
            self.joints3d[rows],
            self.root[rows],
            self.sigma[rows],
            self.swapped[rows],
            self.ahead[rows],
            self.seen_by[rows],
        )
        return FrameResult(people, poses, self.placed_rows(rows), self.view(position))

    def joint_scores(self, rows: slice | NDArray[np.integer]) -> F32:
        """Return the 2D scores (n, 17) that correspond to the 3D joints in the n table rows `rows`.

        Results of several cameras do not contain scores. For such results, the score is 1 if a camera observed the
        joint, else 0.
        """
        if self.run is not None and self.run.cameras:
            return (self.seen_by[rows] > 0).astype(np.float32)
        return to_h36m17(self.keypoints[rows], self.scores[rows], self.skeleton)[1]

    def view(self, position: int) -> CameraView | None:
        """Return the orientation and position of the camera in the frame at `position`, from 0 to F - 1.

        Return None if the camera is static or its motion is unknown.
        """
        if self.camera_rotation is None or self.camera_zoom is None or self.camera_sigma is None:
            return None
        rotation = self.camera_rotation[position].astype(np.float64)
        zoom, sigma = float(self.camera_zoom[position]), float(self.camera_sigma[position])
        place = None if self.camera_position is None else self.camera_position[position].astype(np.float64)
        return CameraView(rotation, zoom, sigma, place)

    def hand_rows(self, rows: slice | I64) -> Hands | None:
        """Return the hands of the people in the table rows `rows`; None if hands were not estimated."""
        if self.hand_keypoints is None or self.hand_scores is None or self.hand_joints3d is None:
            return None
        swapped, sigma = self.swapped[rows], None
        shapes = np.nan_to_num(swapped_with_arms(self.hand_joints3d[rows], swapped))
        if self.hand_sigma is not None and self.run is not None and self.run.cameras:
            sigma = swapped_with_arms(self.hand_sigma[rows], swapped)
        return Hands(np.asarray(self.hand_keypoints[rows]), np.asarray(self.hand_scores[rows]), shapes, sigma)

    def face_rows(self, rows: slice | I64) -> Faces | None:
        """Return the faces of the people in the table rows `rows`; None if faces were not estimated."""
        if self.face_keypoints is None or self.face_scores is None:
            return None
        return Faces(np.asarray(self.face_keypoints[rows]), np.asarray(self.face_scores[rows]))

    def placed_rows(self, rows: slice | I64) -> Placed | None:
        """Return the poses in world coordinates in the table rows `rows`; None if the result has none."""
        if self.placed is None:
            return None
        return Placed(*(getattr(self.placed, name)[rows] for name in self.placed.__slots__))

    def __iter__(self) -> Iterator[FrameResult]:
        return (self[position] for position in range(len(self)))
