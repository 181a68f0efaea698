"""Poses of a moving camera: structure from motion on key frames, with COLMAP (`pycolmap`, optional dependency `slam`).

SIFT features (D. Lowe, IJCV 60, 2004) are detected outside people. Pairs of key frames are matched and verified with
the essential matrix; COLMAP's incremental mapping (J. Schoenberger and J.-M. Frahm, CVPR 2016) gives poses and points
up to scale. Unreliable models are rejected.

At key frames the rotation equals that of structure from motion. Between them it follows the rotation estimated from the
background, which is accurate over a fraction of a second. Positions are interpolated with a cubic spline.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.structures.camera_rotations import to_matrix, to_vector
from pose.structures.skeletons import Skeleton
from pose.structures.types import F64, I64, U8, Frame, People
from pose.utils.progress import progress_bar
from pose.world.camera_motion.path import MAX_BRIDGED_S, CameraPath
from pose.world.camera_motion.reduced import people_mask

MAX_FEATURES = 700  # maximum per key frame
_MAX_DESCRIPTOR_RATIO = 0.85  # maximum ratio of the distances to the best and the second-best descriptor
_FOLLOWING_KEYS = 4  # each key frame is matched with this many following ones, and with those 8, 16, ... further on
_MIN_MATCHES = 30  # minimum matches of a pair of key frames
_MAX_REPROJECTION_PX = 2.0  # px, maximum reprojection error of an inlier
_MIN_REGISTERED_SHARE = 0.9  # minimum fraction of key frames with a pose
_MAX_MEAN_ERROR_PX = 1.0  # px, maximum mean reprojection error
_MIN_ANGLE_DEGREES = 2.0  # degrees, minimum median triangulation angle
_MIN_POINTS = 60  # minimum points of a model
_PIXEL_CENTRE_PX = 0.5  # px; COLMAP's origin is the corner of the image, here it is the centre of the first pixel


def has_colmap() -> bool:
    """Return whether `pycolmap` is installed."""
    return find_spec("pycolmap") is not None


@dataclass(frozen=True, slots=True)
class KeyImage:
    """Key frame for structure from motion."""

    grey: U8  # (h, w) uint8 image
    mask: U8  # (h, w) uint8, 0 on people, 255 elsewhere


@dataclass(frozen=True, slots=True)
class Structure:
    """Poses of K key frames, up to scale."""

    rows: NDArray[np.int64]  # (K,) indices of the key frames with a pose, increasing
    rotations: F64  # (K, 3, 3) rotations from the axes of each camera to those of the first
    positions: F64  # (K, 3), camera centres in the axes of the first camera
    error: float  # mean reprojection error, px
    share: float  # fraction of the given key frames that have a pose
    angle: float  # median triangulation angle, degrees
    depth: float  # median distance of points from their cameras, in units of `positions`
    focal: float  # ratio of the refined to the given focal length


def reconstruct(images: Sequence[KeyImage], matrix: F64, focal_known: bool) -> Structure | str:
    """Reconstruct the camera poses of key images, or return the reason why there is no reliable result."""
    steps = len(images) + sum(1 for _ in _pairs(len(images))) + len(images)
    with (
        tempfile.TemporaryDirectory(prefix="pose-slam-") as folder,
        progress_bar("camera path", steps, " steps", kept=False) as bar,
    ):

        def advance() -> None:
            bar.update()

        model = _mapped(Path(folder), images, matrix, focal_known, advance)
    if model is None:
        return "structure from motion finds no pair of images with enough parallax"
    return _checked(model, len(images), float(matrix[0, 0]))


def _mapped(
    folder: Path, images: Sequence[KeyImage], matrix: F64, focal_known: bool, advance: Callable[[], None]
) -> Any:  # fmt: skip
    """Return COLMAP's largest model, or None; `advance` is called after each image, pair and registered image."""
    import pycolmap

    pycolmap.logging.minloglevel = pycolmap.logging.FATAL.value
    height, width = images[0].grey.shape
    camera = pycolmap.Camera(
        model="SIMPLE_PINHOLE", width=width, height=height, camera_id=1,
        params=[float(matrix[0, 0]), float(matrix[0, 2]) + _PIXEL_CENTRE_PX, float(matrix[1, 2]) + _PIXEL_CENTRE_PX],
    )  # fmt: skip
    camera.has_prior_focal_length = True
    sift = cv2.SIFT.create(nfeatures=MAX_FEATURES, contrastThreshold=0.02)
    seen = []
    for image in images:
        seen.append(_features(sift, image))
        advance()
    with pycolmap.Database.open(folder / "database") as database:
        _fill(database, camera, [points for points, _ in seen])
        options = pycolmap.TwoViewGeometryOptions()
        options.ransac.max_error, options.ransac.random_seed = _MAX_REPROJECTION_PX, 0
        options.compute_relative_pose = True
        for first_index, second_index in _pairs(len(images)):
            advance()
            matches = _matches(seen[first_index][1], seen[second_index][1])
            if len(matches) < _MIN_MATCHES:
                continue
            points = (seen[at][0].astype(np.float64) for at in (first_index, second_index))
            first, second = points
            geometry = pycolmap.estimate_two_view_geometry(camera, first, camera, second, matches, options)
            database.write_matches(first_index + 1, second_index + 1, matches)
            database.write_two_view_geometry(first_index + 1, second_index + 1, geometry)
    models = pycolmap.incremental_mapping(
        folder / "database", folder, folder, options=_options(focal_known), next_image_callback=advance
    )
    return max(models.values(), key=lambda model: model.num_reg_images(), default=None)


def _options(focal_known: bool) -> Any:
    import pycolmap

    options = pycolmap.IncrementalPipelineOptions()
    options.multiple_models, options.extract_colors, options.min_model_size = False, False, 5
    options.ba_refine_focal_length, options.ba_refine_extra_params = not focal_known, False
    options.ba_global_frames_ratio = options.ba_global_points_ratio = 1.4
    options.random_seed, options.num_threads = 0, 1
    mapper = options.mapper
    mapper.abs_pose_refine_focal_length = mapper.abs_pose_refine_extra_params = False
    mapper.init_min_tri_angle, mapper.init_min_num_inliers = 4.0, 50
    mapper.filter_max_reproj_error, mapper.filter_min_tri_angle = _MAX_REPROJECTION_PX, 0.7
    mapper.abs_pose_max_error, mapper.abs_pose_min_num_inliers = 4.0, 25
    options.triangulation.min_angle = 0.7
    return options


def _fill(database: Any, camera: Any, points: Sequence[NDArray[np.float32]]) -> None:
    import pycolmap

    database.write_camera(camera, use_camera_id=True)
    rig = pycolmap.Rig(rig_id=1)
    rig.add_ref_sensor(camera.sensor_id)
    database.write_rig(rig, use_rig_id=True)
    for number, part in enumerate(points, 1):
        image = pycolmap.Image(name=f"{number:05d}", camera_id=1, image_id=number)
        frame = pycolmap.Frame(frame_id=number, rig_id=1)
        frame.add_data_id(image.data_id)
        database.write_frame(frame, use_frame_id=True)
        database.write_image(image, use_image_id=True)
        database.write_keypoints(number, part)


def _features(sift: Any, image: KeyImage) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return features (N, 2) px in COLMAP's convention and unit descriptors (N, 128) in the Hellinger kernel."""
    key_points, descriptors = sift.detectAndCompute(image.grey, image.mask)
    if descriptors is None:
        return np.zeros((0, 2), np.float32), np.zeros((0, 128), np.float32)
    points = np.array([key_point.pt for key_point in key_points], np.float32).reshape(-1, 2) + np.float32(
        _PIXEL_CENTRE_PX
    )
    share = descriptors / np.maximum(descriptors.sum(axis=1, keepdims=True), 1e-6)
    return points, np.sqrt(share).astype(np.float32)


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    steps = [*range(1, _FOLLOWING_KEYS + 1), *(2**power for power in range(3, 12))]
    return ((one, one + step) for step in steps for one in range(count - step))


def _matches(first: NDArray[np.float32], other_descriptors: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return (M, 2) indices of mutually best descriptors that pass the ratio test."""
    if min(len(first), len(other_descriptors)) < 2:
        return np.zeros((0, 2), np.uint32)
    alike = first @ other_descriptors.T
    best = alike.argmax(axis=1)
    rows = np.arange(len(first))
    second = np.partition(alike, -2, axis=1)[:, -2]
    near, next_near = (np.sqrt(np.maximum(2 - 2 * cosines, 0)) for cosines in (alike[rows, best], second))
    good = (alike.argmax(axis=0)[best] == rows) & (near < _MAX_DESCRIPTOR_RATIO * next_near)
    return np.column_stack([rows[good], best[good]]).astype(np.uint32)


def _checked(model: Any, count: int, focal: float) -> Structure | str:
    images = sorted((image for image in model.images.values() if image.has_pose), key=lambda image: image.name)
    rows = np.array([int(image.name) - 1 for image in images])
    share, error = len(rows) / count, float(model.compute_mean_reprojection_error())
    if share < _MIN_REGISTERED_SHARE:
        return f"structure from motion registers only {share:.0%} of the key frames"
    if error > _MAX_MEAN_ERROR_PX or model.num_points3D() < _MIN_POINTS:
        return f"structure from motion has a reprojection error of {error:.1f} px with {model.num_points3D()} points"
    rotations = np.array([image.cam_from_world().rotation.matrix().T for image in images])
    positions = np.array([image.projection_center() for image in images])
    angle, depth = _spread(model, {image.image_id: position for image, position in zip(images, positions, strict=True)})
    if angle < _MIN_ANGLE_DEGREES:
        return f"the median triangulation angle is only {angle:.1f} degrees"
    begin = rotations[0].T
    rotations, positions = begin @ rotations, (positions - positions[0]) @ begin.T
    focal_ratio = next(iter(model.cameras.values())).focal_length / focal
    return Structure(rows, rotations, positions, error, share, angle, depth, float(focal_ratio))


def _spread(model: Any, positions: dict[int, F64]) -> tuple[float, float]:
    """Return the median triangulation angle in degrees, and median distance of points from the cameras."""
    angles, depths = [], []
    for point in model.points3D.values():
        lines = point.xyz - np.array([positions[part.image_id] for part in point.track.elements])
        away = np.linalg.norm(lines, axis=1)
        units = lines / np.maximum(away, 1e-12)[:, None]
        angles.append(float(np.degrees(np.arccos(np.clip((units @ units[0]).min(), -1, 1)))))
        depths.append(float(np.median(away)))
    return float(np.median(angles)), float(np.median(depths))


MAX_SIDE_PX = 640  # px of the longer side of key images
KEY_INTERVAL_S = 0.33  # s between key frames
MAX_KEYS = 90  # maximum number of key frames
_MAX_KEY_INTERVAL_S = 1.0  # maximum s between key frames; clips that need more are not reconstructed
_MIN_KEYS = 6  # minimum number of key frames


def choose_keys(path: CameraPath) -> I64 | str:
    """Return the indices (K,) of the key frames of a run, or the reason why there is no structure from motion."""
    if path.scenes[-1] > 0:
        return "the clip has cuts; cut it into its scenes"
    seconds = float(path.times[-1] - path.times[0])
    step = max(KEY_INTERVAL_S, seconds / (MAX_KEYS - 1))
    if step > _MAX_KEY_INTERVAL_S:
        return f"the clip is longer than {_MAX_KEY_INTERVAL_S * (MAX_KEYS - 1):.0f} s; cut it into pieces"
    wanted = np.arange(path.times[0], path.times[-1] + 1e-9, step)
    rows = np.unique(path.rows(wanted))
    rows = np.append(rows, len(path.times) - 1) if len(path.times) - 1 - rows[-1] > 2 else rows
    return rows if len(rows) >= _MIN_KEYS else "the clip is too short"


def key_images(frames: Iterator[tuple[Frame, People]], rows: I64, skeleton: Skeleton) -> tuple[list[KeyImage], float]:
    """Return the reduced images of the key frames, and their scale relative to the original images."""
    wanted, images, scale = set(rows.tolist()), [], 1.0
    for row, (frame, people) in enumerate(frames):
        if row not in wanted:
            continue
        grey = np.ascontiguousarray(frame.image[..., 1])
        scale = min(1.0, MAX_SIDE_PX / max(grey.shape))
        if scale < 1:
            size = round(grey.shape[1] * scale), round(grey.shape[0] * scale)
            grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)
        images.append(KeyImage(grey, people_mask(grey.shape, scale, people, skeleton)))
        if len(images) == len(rows):
            break
    return images, scale


def scaled_matrix(matrix: F64, scale: float) -> F64:
    """Return the intrinsics (3, 3) px of an image reduced by `scale`, from the `matrix` of the original image."""
    reduced = matrix * scale
    reduced[:2, 2] += (scale - 1) / 2
    reduced[2, 2] = 1.0
    return np.asarray(reduced)


def with_translation(path: CameraPath, keys: I64, found: Structure) -> CameraPath:
    """Combine the background's path with the rotations and positions (up to scale) of structure from motion."""
    at = keys[found.rows]
    times = path.times[at]
    # Corrections that convert rotations of the background to those of the structure.
    corrections = found.rotations @ np.swapaxes(path.rotations[at], 1, 2)
    rotations = _between(path.times, times, corrections) @ path.rotations
    positions = np.stack([_spline(path.times, times, side) for side in found.positions.T], axis=1)
    begin = rotations[0].T
    rotations, positions = begin @ rotations, (positions - positions[0]) @ begin.T
    away = np.maximum(times[0] - path.times, path.times - times[-1])
    sigmas = np.where(away > MAX_BRIDGED_S, np.nan, path.sigmas)
    return replace(path, rotations=rotations, positions=positions, sigmas=sigmas, zooms=path.zooms * found.focal)


def _between(wanted: F64, times: F64, rotations: F64) -> F64:
    """Interpolate rotations (K, 3, 3) at `times` to (F, 3, 3) at `wanted`; constant beyond the ends."""
    left = np.clip(np.searchsorted(times, wanted, side="right") - 1, 0, len(times) - 2)
    share = np.clip((wanted - times[left]) / (times[left + 1] - times[left]), 0, 1)
    steps = to_vector(np.swapaxes(rotations[left], 1, 2) @ rotations[left + 1])
    return np.asarray(rotations[left] @ to_matrix(share[:, None] * steps))


def _spline(wanted: F64, times: F64, values: F64) -> F64:
    """Interpolate values (K,) at `times` (K,) to times `wanted` (F,) with a cubic Hermite spline; linear outside."""
    slopes = np.gradient(values, times)
    left = np.clip(np.searchsorted(times, wanted, side="right") - 1, 0, len(times) - 2)
    step = times[left + 1] - times[left]
    s = np.clip((wanted - times[left]) / step, 0, 1)
    begin, end = values[left], values[left + 1]
    inside = (
        (2 * s**3 - 3 * s**2 + 1) * begin
        + (3 * s**2 - 2 * s**3) * end
        + step * ((s**3 - 2 * s**2 + s) * slopes[left] + (s**3 - s**2) * slopes[left + 1])
    )
    before, after = np.minimum(wanted - times[0], 0), np.maximum(wanted - times[-1], 0)
    return np.asarray(inside + before * slopes[0] + after * slopes[-1])
