"""Simulation of cameras and detectors that observe people in the world frame, with ground truth.

World frame: metres, y up. Camera frame: metres, x right, y down, z forward. In shapes, B counts sequences, T frames and
J points.

Points (B, T, 19, 3) m are those of `pose_datasets.mapping.POINTS`, for B sequences with T frames.
"""

from dataclasses import dataclass, field

import numpy as np

from pose.structures.camera import intrinsics_from_fov
from pose.structures.sequences import LiftBatch
from pose.structures.types import F32, F64, Flags
from pose_datasets import errors, rotations
from pose_datasets.errors import ErrorConfig
from pose_datasets.mapping import EARS, NOSE
from pose_datasets.smooth import smooth_noise
from pose_datasets.vectors import cross, dot, norm, perpendicular, unit

_HIPS, _SHOULDERS = [4, 1], [11, 14]  # left, right


@dataclass(frozen=True, kw_only=True)
class DefinitionConfig:
    """Ranges of the variation of joint definitions between sequences.

    Attributes:
        canonical: Fraction of sequences with the joint definitions of `pose_datasets.mapping`. The other settings,
            except `detector`, apply to the rest.
        pelvis: Fraction of sequences whose pelvis is above the hip axis, by up to 45 % of the distance to the spine.
        spine: Maximum shift of the spine along the trunk, as a fraction of its length.
        hip: Standard deviation of the positions of the hips per axis, m.
        shoulder: Standard deviation of the positions of the shoulders per axis, m.
        wrist: Fraction of sequences whose wrists are closer to the elbow, by up to a third of the forearm.
        detector: Standard deviation of the positions of a detector's hips and shoulders per axis, m.
    """

    canonical: float = 0.25
    pelvis: float = 0.3
    spine: float = 0.12
    hip: float = 0.02
    shoulder: float = 0.02
    wrist: float = 0.15
    detector: float = 0.012


# The joints of `pose_datasets.mapping`, for ground truth and detector.
CANONICAL = DefinitionConfig(canonical=1.0, detector=0.0)


def observed_joints(points: F32) -> F32:
    """Return Human3.6M joints (..., 17, 3) as `to_h36m17` derives them from a detector's points (..., 19, 3)."""
    joints = points[..., :17, :].copy()
    joints[..., 8, :] = points[..., _SHOULDERS, :].mean(axis=-2)
    joints[..., 7, :] = (joints[..., 0, :] + joints[..., 8, :]) / 2
    joints[..., 9, :] = points[..., NOSE, :]
    joints[..., 10, :] = points[..., EARS, :]
    return joints


def redefine(rng: np.random.Generator, points: F32, config: DefinitionConfig) -> F32:
    """Return Human3.6M joints (B, T, 17, 3) m at randomly changed places, as data sets define joints differently."""
    # The change is constant in each of the B sequences. Hips and shoulders move slightly in the frame of the body,
    # symmetrically. Pelvis, spine and wrists move along the bones, the thorax from the midpoint of the shoulders to the
    # base of the neck, the neck from its base to the nose, and the head from its middle to its top.
    batch = len(points)
    joints = points[..., :17, :].copy()
    other = (rng.random((batch, 1, 1)) >= config.canonical).astype(np.float32)

    def between(low: float, high: float) -> F32:
        return rng.uniform(low, high, (batch, 1, 1)).astype(np.float32) * other

    shift_joint_pair(rng, joints, _HIPS, config.hip * other)
    shift_joint_pair(rng, joints, _SHOULDERS, config.shoulder * other)
    pelvis, spine, thorax = joints[:, :, 0], joints[:, :, 7], joints[:, :, 8]
    neck, head, nose, ears = (points[:, :, point] for point in (9, 10, NOSE, EARS))
    trunk = thorax - pelvis
    high = (rng.random((batch, 1, 1)) < config.pelvis).astype(np.float32)
    new_spine = spine + between(-config.spine, config.spine) * trunk
    straight = between(0, 1)
    new_spine += straight * (pelvis + trunk / 2 - spine)
    new_thorax = thorax + between(0, 1) * (joints[..., _SHOULDERS, :].mean(axis=-2) - thorax)
    new_thorax += between(-0.08, 0.25) * (neck - thorax)
    joints[:, :, 0] = pelvis + high * between(0, 0.45) * (spine - pelvis)
    joints[:, :, 7], joints[:, :, 8] = new_spine, new_thorax
    short = (rng.random((batch, 1, 1, 1)) < config.wrist) * between(0, 0.33)[..., None]
    joints[:, :, [13, 16]] += short * (joints[:, :, [12, 15]] - joints[:, :, [13, 16]])
    low_or_nose = between(-0.6, 1)
    joints[:, :, 9] = neck + np.maximum(low_or_nose, 0) * (nose - neck) + np.minimum(low_or_nose, 0) * (neck - thorax)
    joints[:, :, 10] = head + between(-1, 0.5) * (head - ears)
    return joints


def shift_joint_pair(rng: np.random.Generator, joints: F32, pair: list[int], spread: F32 | float) -> None:
    """Shift a joint pair (pelvis with the hips) by a constant normal offset, symmetrically and in place."""
    left = unit(joints[:, :, pair[0]] - joints[:, :, pair[1]])
    up = unit(perpendicular(joints[:, :, 8] - joints[:, :, 0], left))
    wide, high, front = (rng.standard_normal((3, len(joints), 1, 1), dtype=np.float32) * spread).astype(np.float32)
    common = high * up + front * cross(left, up)
    joints[:, :, pair[0]] += wide * left + common
    joints[:, :, pair[1]] += common - wide * left
    if pair == _HIPS:
        joints[:, :, 0] = joints[..., pair, :].mean(axis=-2)


def detector_points(rng: np.random.Generator, points: F32, config: DefinitionConfig) -> F32:
    """Return points (B, T, 19, 3) m with hips and shoulders as a random detector defines them."""
    points = points.copy()
    shift_joint_pair(rng, points, _HIPS, config.detector)
    shift_joint_pair(rng, points, _SHOULDERS, config.detector)
    return points


@dataclass(frozen=True, kw_only=True)
class FilmConfig:
    """Settings of simulated cameras and detectors. Fractions are of all sequences.

    Attributes:
        derived: Fraction whose 2D joints are converted from a detector's skeleton. In the others, the detector observes
            the target joints themselves.
        exact: Fraction without detector errors.
        intrinsics_known: Fraction with known intrinsics. The others have default intrinsics
            (`assumed_intrinsics`).
        steep: Fraction filmed from 15 to 45 degrees above or below.
        white: Maximum standard deviation per axis of white noise that scores do not reflect, relative to the person's
            size. Half of the sequences, including exact ones, get noise with a random level up to this. This models
            small people, whose joints are detected to the nearest pixel, and files from other programs.
        chest_height: Whether all cameras stand at chest height (`chest_height_cameras`), for evaluation.
        definitions: Variation of joint definitions.
        errors: Magnitudes of detector errors.
    """

    derived: float = 0.4
    exact: float = 0.2
    intrinsics_known: float = 0.6
    steep: float = 0.2
    white: float = 0.0
    chest_height: bool = False
    definitions: DefinitionConfig = field(default_factory=DefinitionConfig)
    errors: ErrorConfig = field(default_factory=ErrorConfig)


def film(rng: np.random.Generator, world: F32, times: F64, valid: Flags, config: FilmConfig) -> LiftBatch:
    """Project people with random cameras, simulate a 2D detector, and return the 2D joints and 3D targets."""
    # Targets are joints with random definitions (`definitions.redefine`), which are also the observed joints. In a
    # fraction `config.derived` of the sequences, the detector has its own skeleton; the targets are then the joints of
    # `pose_datasets.mapping`.
    size = len(world)
    if config.chest_height:
        view = chest_height_cameras(rng, world)
    else:
        view = random_cameras(rng, world, times, steep=config.steep)
    points = view.to_camera(world)
    derived = rng.random(size) < config.derived
    targets = points[:, :, :17].copy()
    targets[~derived] = redefine(rng, points[~derived], config.definitions)
    observed = targets.copy()
    observed[derived] = observed_joints(detector_points(rng, points[derived], config.definitions))
    keypoints = project_batch(observed, view.intrinsics)
    person_size = errors.person_size(keypoints)
    scores = np.ones(keypoints.shape[:3], np.float32)
    wrong = rng.random(size) >= config.exact
    if wrong.any():
        depth = targets[wrong, :, :, 2] - targets[wrong, :, :1, 2]
        keypoints[wrong], scores[wrong] = errors.add_errors(
            rng, keypoints[wrong], times[wrong], view.image_size[wrong], depth, config.errors
        )
    moved = wrong
    if config.white:
        moved = wrong | _add_white_noise(rng, keypoints, person_size * (scores > 0), config.white)
    derived_keypoints, derived_scores = keypoints[moved & derived], scores[moved & derived]
    errors.rederive(derived_keypoints, derived_scores)
    keypoints[moved & derived], scores[moved & derived] = derived_keypoints, derived_scores
    known = rng.random(size) < config.intrinsics_known
    given = np.where(known[:, None, None], view.intrinsics, assumed_intrinsics(view.image_size))
    return LiftBatch(
        keypoints=keypoints,
        scores=scores * valid[..., None],
        derived=derived,
        times=times,
        valid=valid,
        intrinsics=given,
        intrinsics_known=known,
        image_size=view.image_size,
        joints=targets - targets[:, :, :1],
        root=reproject_root(targets[:, :, 0], view.intrinsics, given),
    )


def _add_white_noise(rng: np.random.Generator, keypoints: F32, size: F32, max_level: float) -> Flags:
    """Add white noise of up to `max_level` person's sizes to 2D joints in place; return the noisy sequences (B,)."""
    level = np.float32(max_level) * rng.uniform(-1, 1, (len(keypoints), 1, 1, 1)).clip(0).astype(np.float32)
    noise = level * rng.standard_normal(keypoints.shape, dtype=np.float32)
    keypoints += noise * size[..., None]
    return (level > 0).ravel()


def reproject_root(root: F32, true_intrinsics: F64, given_intrinsics: F64) -> F32:
    """Return the root (B, T, 3) m that has the same pixels with the given intrinsics as `root` with the true ones."""
    # Depth is scaled by the ratio of given to true focal length, which keeps the size of the person in the image.
    depth = root[..., 2:] * (given_intrinsics[:, 0, 0] / true_intrinsics[:, 0, 0]).astype(np.float32)[:, None, None]
    pixels = project_batch(root[:, :, None], true_intrinsics)[:, :, 0]
    centre = given_intrinsics[:, None, :2, 2].astype(np.float32)
    focal = given_intrinsics[:, None, 0, :1].astype(np.float32)
    return np.concatenate([(pixels - centre) / focal * depth, depth], axis=-1)


# Common image sizes; each is also used in portrait orientation.
_SIZES = np.array([(1920, 1080), (1280, 720), (1000, 1000), (640, 480), (3840, 2160), (854, 480), (1440, 1080)])
_MIN_DISTANCE_M = 0.35  # of points from the camera
_BODY_HEIGHT_M = 1.7  # used to choose the size in the image


@dataclass(frozen=True, slots=True)
class Cameras:
    """B moving cameras over T frames: x_camera = rotation @ (x_world - centre)."""

    intrinsics: F64  # (B, 3, 3) px, camera matrices
    image_size: F32  # (B, 2) px, width and height
    rotation: F32  # (B, T, 3, 3) rotations from the world to the camera frame
    centre: F32  # (B, T, 3) m, camera positions in the world frame

    def to_camera(self, points: F32) -> F32:
        """Transform points (B, T, J, 3) m from the world to the camera frame of each time."""
        result: F32 = np.matmul(points - self.centre[:, :, None], np.swapaxes(self.rotation, -1, -2), dtype=np.float32)
        return result


def project_batch(points: F32, intrinsics: F64) -> F32:
    """Project points (B, T, J, 3) m in front of cameras without distortion to pixels (B, T, J, 2)."""
    focal = np.stack([intrinsics[:, 0, 0], intrinsics[:, 1, 1]], axis=-1).astype(np.float32)
    centre = intrinsics[:, :2, 2].astype(np.float32)
    return (points[..., :2] / points[..., 2:] * focal[:, None, None] + centre[:, None, None]).astype(
        np.float32, copy=False
    )


def assumed_intrinsics(image_size: F32) -> F64:
    """Return default camera matrices (B, 3, 3) px for uncalibrated images of (B, 2) px."""
    return np.stack([intrinsics_from_fov((int(width), int(height))) for width, height in image_size])


def random_cameras(
    rng: np.random.Generator, points: F32, times: F64, still: float = 0.4, steep: float = 0.0
) -> Cameras:
    """Draw a random camera for each of B sequences of points (B, T, J, 3) m, pelvis first."""
    # The height of a person is mostly between a quarter and 1.6 times that of the image, so that some people are
    # truncated. `steep` is the fraction of cameras that look from 15 to 45 degrees above or below.
    batch = len(points)
    image_size, intrinsics = random_lenses(rng, batch)
    pelvis = points[:, :, 0]
    follow = rng.random(batch) < 0.4
    aim = np.where(follow[:, None, None], _smoothed_path(pelvis), pelvis.mean(axis=1, keepdims=True))
    focal = intrinsics[:, 0, 0].astype(np.float32)
    fill = np.exp(rng.uniform(np.log(0.22), np.log(1.6), batch)).astype(np.float32)
    distance = focal * _BODY_HEIGHT_M / (fill * image_size[:, 1])
    wander = norm(pelvis - aim).max(axis=1)
    # Most static cameras see the whole walk.
    distance = np.where(
        rng.random(batch) < 0.8, np.maximum(distance, wander * focal / image_size.min(axis=1) * 1.5), distance
    )
    near_level = rng.random(batch) < 0.7
    elevation = np.radians(np.where(near_level, rng.normal(4, 10, batch), rng.uniform(-40, 70, batch)))
    if steep:
        some = rng.random(batch) < steep
        angles = np.radians(rng.uniform(15, 45, batch)) * rng.choice([1, -1], batch, p=[0.65, 0.35])
        elevation = np.where(some, angles, elevation)
    azimuth = rng.uniform(-np.pi, np.pi, batch)
    away = np.stack([np.cos(elevation) * np.sin(azimuth), np.sin(elevation), np.cos(elevation) * np.cos(azimuth)], -1)
    away = away.astype(np.float32)
    # Far enough that no point is too close: points are within `reach` of the aim.
    reach = norm(points - aim[:, :, None]).max(axis=(1, 2))
    distance = np.maximum(distance, reach + _MIN_DISTANCE_M + 0.4)
    hand = (rng.random(batch) >= still).astype(np.float32)
    centre = aim + (away * distance[:, None])[:, None]
    centre = centre + hand[:, None, None] * smooth_noise(rng, times, 3, 0.8) * 0.04
    centre = centre + _travel(rng, times, batch, hand)
    rotation = _look_at(centre, aim)
    rotation = _turned(rng, rotation, times, hand, image_size / focal[:, None])
    cameras = Cameras(intrinsics, image_size, rotation, centre.astype(np.float32))
    return _keep_min_distance(cameras, points)


def chest_height_cameras(rng: np.random.Generator, points: F32) -> Cameras:
    """Draw a static camera at chest height for each of B sequences, like five of MPI-INF-3DHP."""
    # The cameras look at the person from all sides, from up to 15 degrees above or below, with square images. (Mehta et
    # al., "Monocular 3D human pose estimation in the wild using improved CNN supervision", 3DV 2017.) The image size,
    # the field of view of 60 degrees and the distance of 3 to 5 m are our choice.
    batch, frames = points.shape[:2]
    image_size = np.full((batch, 2), 2048, np.float32)
    intrinsics = np.repeat(intrinsics_from_fov((2048, 2048), 60.0)[None], batch, axis=0)
    aim = points[:, :, 0].mean(axis=1, keepdims=True)
    elevation, azimuth = np.radians(rng.uniform(-15, 15, batch)), rng.uniform(-np.pi, np.pi, batch)
    away = np.stack([np.cos(elevation) * np.sin(azimuth), np.sin(elevation), np.cos(elevation) * np.cos(azimuth)], -1)
    centre = aim + (away * rng.uniform(3, 5, (batch, 1))).astype(np.float32)[:, None]
    centre = np.repeat(centre, frames, axis=1)
    return _keep_min_distance(Cameras(intrinsics, image_size, _look_at(centre, aim), centre), points)


def random_lenses(rng: np.random.Generator, batch: int) -> tuple[F32, F64]:
    """Draw common image sizes (B, 2) px and matrices (B, 3, 3) px with 35 to 90 degrees on the longer side."""
    image_size = _SIZES[rng.integers(len(_SIZES), size=batch)].astype(np.float32)
    upright = rng.random(batch) < 0.35
    image_size[upright] = image_size[upright, ::-1]
    view = np.radians(rng.uniform(35, 90, batch))  # field of view of the longer side
    focal = image_size.max(axis=1) / 2 / np.tan(view / 2)
    intrinsics = np.zeros((batch, 3, 3))
    intrinsics[:, 0, 0] = focal
    intrinsics[:, 1, 1] = focal
    intrinsics[:, :2, 2] = (image_size - 1) / 2 + rng.normal(0, 0.01, (batch, 2)) * image_size
    intrinsics[:, 2, 2] = 1
    return image_size, intrinsics


def _smoothed_path(pelvis: F32) -> F32:
    """Smooth paths of the pelvis (B, T, 3) by a cubic fit over time. Camera operators follow a person like this."""
    steps = np.linspace(-1, 1, pelvis.shape[1])
    basis, _ = np.linalg.qr(np.vander(steps, min(4, len(steps))))
    return (basis @ (basis.T @ pelvis)).astype(np.float32)


def _travel(rng: np.random.Generator, times: F64, batch: int, hand: F32) -> F32:
    """Draw displacements of cameras (B, T, 3) m."""
    # Of the hand-held cameras, 40 % move during the middle 6 s of the sequence, mostly slower than 0.6 m/s.
    speed = rng.normal(0, 0.3, (batch, 3)) * (rng.random((batch, 1)) < 0.4) * hand[:, None]
    speed[:, 1] *= 0.3
    middle = times - times.mean(axis=1, keepdims=True)
    result: F32 = (speed[:, None] * np.clip(middle, -3, 3)[..., None]).astype(np.float32)
    return result


def _look_at(centre: F32, aim: F32) -> F32:
    """Return the world-to-camera rotations (B, T, 3, 3) of cameras at `centre` that look at `aim` without roll."""
    forward = unit(np.broadcast_to(aim, centre.shape) - centre)
    up = np.array([0, 1, 0], np.float32)
    right = unit(cross(forward, up))
    down = cross(forward, right)
    return np.stack([right, down, forward], axis=-2).astype(np.float32)


def _turned(rng: np.random.Generator, rotation: F32, times: F64, hand: F32, view: F32) -> F32:
    """Rotate cameras by random constant angles of up to 0.35 of half the view, roll them, and add hand shake."""
    batch = len(rotation)
    off = rng.uniform(-0.35, 0.35, (batch, 2)) * view / 2
    roll = rng.normal(0, np.radians(np.where(rng.random(batch) < 0.85, 2.5, 15)))
    fixed = np.stack([off[:, 1], off[:, 0], roll], axis=-1).astype(np.float32)
    shake = smooth_noise(rng, times, 3, 1.5) * np.radians(0.7).astype(np.float32) * hand[:, None, None]
    return rotations.from_vector(fixed[:, None] + shake) @ rotation


def _keep_min_distance(cameras: Cameras, points: F32) -> Cameras:
    """Move cameras back so that no point is nearer than `_MIN_DISTANCE_M`."""
    depth = dot(points - cameras.centre[:, :, None], cameras.rotation[:, :, None, 2]).min(axis=(1, 2))
    back = np.maximum(_MIN_DISTANCE_M - depth, 0)[:, None, None]
    # One displacement for the whole sequence, sufficient for its worst frame.
    forward = cameras.rotation[:, :, 2]
    return Cameras(cameras.intrinsics, cameras.image_size, cameras.rotation, cameras.centre - forward * back)
