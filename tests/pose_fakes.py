"""Results to write, draw and show, without a video."""

import numpy as np

from pose.results import ModelInfo, RunInfo
from pose.structures.camera import Camera, intrinsics_from_fov, project
from pose.structures.skeletons import BLAZEPOSE33, H36M17, Skeleton
from pose.structures.types import F32, U8, FrameResult, People, Poses3D
from pose.video.planes import Planes

SIZE = (640, 480)

# A body of 1.7 m that stands upright and faces the camera, relative to its pelvis, in the camera's axes (y down).
STANDING = np.array(
    [
        (0, 0, 0), (-0.12, 0, 0), (-0.12, 0.43, 0), (-0.12, 0.86, 0), (0.12, 0, 0), (0.12, 0.43, 0), (0.12, 0.86, 0),
        (0, -0.24, 0), (0, -0.5, 0), (0, -0.62, -0.05), (0, -0.75, 0), (0.17, -0.48, 0), (0.25, -0.22, 0),
        (0.28, 0.02, 0), (-0.17, -0.48, 0), (-0.25, -0.22, 0), (-0.28, 0.02, 0),
    ],
    np.float32,
)  # fmt: skip


def run_info(skeleton: Skeleton = BLAZEPOSE33, size: tuple[int, int] = SIZE) -> RunInfo:
    return RunInfo(
        source='a "clip".mp4',
        fps=25.0,
        camera=Camera.of(size),
        skeleton=skeleton,
        models=(ModelInfo("lifter", "tiny", "0f" * 32),),
        settings={"max_people": 3},
    )


def random_result(rng: np.random.Generator, index: int, people: int, skeleton: Skeleton = BLAZEPOSE33) -> FrameResult:
    j = len(skeleton)
    return FrameResult(
        People(
            index,
            index / 25,
            np.arange(people) + 7,
            rng.uniform(-50, 700, (people, 4)).astype(np.float32),
            rng.random(people, np.float32),
            rng.uniform(-50, 700, (people, j, 2)).astype(np.float32),
            rng.random((people, j), np.float32),
        ),
        Poses3D(
            rng.normal(0, 0.4, (people, 17, 3)).astype(np.float32),
            rng.normal(3, 1, (people, 3)).astype(np.float32),
            rng.uniform(5, 200, (people, 17)).astype(np.float32),
            rng.random((people, 2)) < 0.5,
        ),
    )


def seen_result(
    roots: F32, joints: F32 = STANDING, index: int = 0, time: float = 0.0, size: tuple[int, int] = SIZE
) -> FrameResult:
    """The same body (17, 3) m at several places (P, 3) m, with the h36m17 keypoints that the camera sees of it."""
    roots = np.asarray(roots, np.float32).reshape(-1, 3)
    n = len(roots)
    bodies = np.broadcast_to(joints, (n, 17, 3)).astype(np.float32)
    pixels = project(bodies + roots[:, None], intrinsics_from_fov(size)).astype(np.float32)
    boxes = np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1) if n else np.zeros((0, 4), np.float32)
    ones = np.ones((n, 17), np.float32)
    return FrameResult(
        People(index, time, np.arange(n) + 1, boxes, np.ones(n, np.float32), pixels, ones),
        Poses3D(bodies, roots, ones * 20),
    )


assert len(STANDING) == len(H36M17)


def rgb_of(planes: Planes) -> U8:
    """(H, W, 3) RGB of planes of an even size: what they mean, by the inverse of the way there."""
    u, v = (np.repeat(np.repeat(plane, 2, axis=0), 2, axis=1) for plane in (planes.u, planes.v))
    coded = np.stack([planes.y, u, v], axis=-1).astype(np.float64)
    to_coded = planes.colours.from_rgb.astype(np.float64)
    rgb = (coded - to_coded[:, 3]) @ np.linalg.inv(to_coded[:, :3]).T
    return np.clip(np.rint(rgb), 0, 255).astype(np.uint8)
