"""Several uncalibrated cameras on motion capture: cameras, offsets, identities and joints beside the truth.

    python -m benchmarks.multi_camera motion.npz --cameras 2,3,4,8 --scenes 8
    python -m benchmarks.multi_camera vsports.npz --cameras 2,4 --people 3 --scenes 8
    python -m benchmarks.multi_camera motion.npz --cameras 2 --without bias,drift   # no lasting detector errors
    python -m benchmarks.multi_camera motion.npz --errors errors.npz --network standard   # errors of real networks

motion.npz, vsports.npz: as `pose-prepare mocap` and `pose-prepare snu` write them; several people are those of one
recording, in one world at the same time. World: metres, y up, floor at y = 0. Each camera has its own pose, intrinsics,
frame rate, clock offset and drift. Its detections have the errors of `pose_datasets.errors`, or series of errors that
`benchmarks.network_errors` measured on real networks, and people occlude each other. Printed for each number of
cameras, over scenes: the columns of `COLUMNS`; times are processor time, that of the fusion is for each frame
and person. A calibration that raises an error ends its scene and is counted.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pose_datasets import mocap
from pose_datasets.errors import ErrorConfig, add_errors
from pose_datasets.filming import observed_joints
from pose_datasets.sampling import interpolate, resample

from benchmarks.network_errors import NETWORKS, Library
from pose.errors import PoseError
from pose.lifting.load import load_lifter
from pose.lifting.offline import OfflineLifter
from pose.multiview.calibrate import Known
from pose.multiview.motions import find_motions, fused_times, on_time_line
from pose.multiview.rig import find_rig
from pose.multiview.sampling import sample
from pose.multiview.stored import collect_tracks
from pose.multiview.types import ViewCamera, ViewTrack
from pose.structures.assignment import best_pairs
from pose.structures.camera import Camera
from pose.structures.skeletons import COCO17, H36M17
from pose.structures.types import F32, F64, People
from pose.training.evaluation.metrics import aligned_errors, flexion

_H36M_OF_COCO = np.array(
    [
        H36M17.index({"nose": "neck"}.get(name, "head" if "eye" in name or "ear" in name else name))
        for name in COCO17.names
    ]
)
_BONES = np.array(H36M17.edges)
_BODY_RADIUS = 0.1  # radius of limbs for occlusion, m
RATE = 60.0
AZIMUTHS = {2: (0, 90), 3: (0, 90, 200), 4: (0, 90, 180, 270), 8: tuple(range(0, 360, 45))}
JOINTS = ("P-MPJPE mm", "world MPJPE mm", "knee deg", "elbow deg", "within sigma %", "size %", "fusion ms")
CAMERAS = ("rotation deg", "place %", "focal %", "offset ms", "rotation within sigma %", "offset within sigma %")
GROUPS = {"arms": [11, 12, 13, 14, 15, 16], "legs": [1, 2, 3, 4, 5, 6], "trunk": [0, 7, 8, 9, 10]}
COLUMNS = (*JOINTS, "exact cameras mm", "one camera mm", *CAMERAS, "IDF1 %", "groups worse than one camera %", "s")


@dataclass(frozen=True, kw_only=True)
class VirtualCamera:
    """Virtual camera with its own clock. World time is the clock of the scene.

    Attributes:
        size: (width, height) of the images, px.
        matrix: (3, 3) px, true camera matrix.
        rotation: (3, 3) rotation: x_camera = rotation @ x_world + translation.
        translation: (3,) m, position of the world origin in the camera frame.
        start: World time at which the recording starts, s.
        end: World time at which the recording ends, s.
        fps: Frame rate on the clock of the camera, frames/s.
        offset: World time at which the clock of the camera is 0, s.
        drift: Duration of one second of the camera's clock in world time, s, minus 1.
        radial: Coefficient k1 of radial distortion.
    """

    size: tuple[int, int]
    matrix: F64
    rotation: F64
    translation: F64
    start: float
    end: float
    fps: float = 30.0
    offset: float = 0.0
    drift: float = 0.0
    radial: float = 0.0

    @property
    def times(self) -> F64:
        """Times (T,) s of the frames on the clock of the camera; the first is 0."""
        count = int((self.end - self.start) / (1 + self.drift) * self.fps) + 1
        return np.arange(count) / self.fps

    def world_times(self) -> F64:
        """Return the times (T,) s of the frames on the clock of the scene."""
        return self.times * (1 + self.drift) + self.offset

    def project(self, points: NDArray[np.floating]) -> F64:
        """Project points (..., 3) m in the world frame to (..., 2) px, with lens distortion."""
        seen = points @ self.rotation.T + self.translation
        ray = seen[..., :2] / np.maximum(seen[..., 2:], 0.1)
        ray = ray * (1 + self.radial * (ray * ray).sum(axis=-1, keepdims=True))
        result: F64 = ray * self.matrix[[0, 1], [0, 1]] + self.matrix[:2, 2]
        return result


@dataclass(frozen=True, kw_only=True)
class SceneConfig:
    """Settings of random cameras around people. Values are drawn for each camera, except for `azimuths`.

    azimuths: degrees about the vertical, relative to each other, one for each camera. distance: m from the middle of
    the people; a camera moves back until all are in view. height: m above the floor. fov: degrees of the longer side;
    55 are assumed of an uncalibrated camera. sizes: (width, height) px. rates: frames/s. offset, drift: s, and s per
    second of either sign, at most; the first camera has none. radial: k1 of either sign, at most. errors: of the
    detector, simulated or measured; None for exact keypoints.
    """

    azimuths: Sequence[float] = (0.0, 90.0)
    distance: tuple[float, float] = (3.5, 5.5)
    height: tuple[float, float] = (0.8, 2.2)
    fov: tuple[float, float] = (50.0, 70.0)
    sizes: Sequence[tuple[int, int]] = ((1920, 1080), (1080, 1920), (1280, 720))
    rates: Sequence[float] = (30.0, 25.0, 60.0)
    offset: float = 3.0
    drift: float = 100e-6
    radial: float = 0.0
    errors: ErrorConfig | Library | None = field(default_factory=ErrorConfig)


def virtual_cameras(
    rng: np.random.Generator, people: Sequence[F32], seconds: float, config: SceneConfig
) -> list[VirtualCamera]:
    """Place cameras around people so that at least 97 % of the points are in each image.

    World time is the time on the clock of the first camera.
    """
    points = np.concatenate([one.reshape(-1, 3) for one in people])
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    cameras = []
    turn = rng.uniform(0, 2 * np.pi)
    for index, azimuth in enumerate(config.azimuths):
        size = config.sizes[int(rng.integers(len(config.sizes)))]
        focal = max(size) / 2 / np.tan(np.radians(rng.uniform(*config.fov)) / 2)
        matrix = np.array([[focal, 0, (size[0] - 1) / 2], [0, focal, (size[1] - 1) / 2], [0, 0, 1]])
        angle = np.radians(azimuth) + turn
        away = np.array([np.sin(angle), 0, np.cos(angle)])
        distance = rng.uniform(*config.distance)
        offset = 0.0 if index == 0 else rng.uniform(0, config.offset)
        drift = 0.0 if index == 0 else rng.uniform(-1, 1) * config.drift
        height = rng.uniform(*config.height)
        for _ in range(30):  # move back until all people are in view
            place = np.array([middle[0], height, middle[2]]) + away * distance
            rotation = _look_at(place, middle + rng.normal(0, 0.1, 3))
            camera = VirtualCamera(
                size=size, matrix=matrix, rotation=rotation, translation=-rotation @ place, start=offset, end=seconds,
                fps=config.rates[int(rng.integers(len(config.rates)))], offset=offset, drift=drift,
                radial=rng.uniform(-1, 1) * config.radial,
            )  # fmt: skip
            pixels = camera.project(points)
            if ((pixels > 0) & (pixels < np.array(size) - 1)).all(axis=-1).mean() > 0.97:
                break
            distance *= 1.12
        cameras.append(camera)
    return cameras


def _look_at(place: F64, aim: F64) -> F64:
    forward = (aim - place) / np.linalg.norm(aim - place)
    right = np.cross(forward, [0.0, 1.0, 0.0])
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward])


def truth_at(points: F32, rate: float, times: F64) -> F32:
    """Interpolate the motion of a person, and return points (K, 19, 3) m at K times.

    Before the first and after the last frame, points are constant.
    """
    flat = points.reshape(len(points), -1)
    found = interpolate(flat, np.zeros(1, np.int64), np.array([len(flat)]), times[None] * rate)[0]
    result: F32 = found.reshape(-1, *points.shape[1:])
    return result


def film_scene(
    rng: np.random.Generator,
    people: Sequence[F32],
    rate: float,
    camera: VirtualCamera,
    config: ErrorConfig | Library | None,
) -> list[People]:
    """Simulate the detected people in every frame of a camera, with COCO-17 keypoints.

    People have ids 1, 2, ... in the order of `people`. A person with fewer than 4 visible keypoints is not detected.
    """
    times = camera.times
    world = np.stack([truth_at(one, rate, camera.world_times()) for one in people])  # (P, T, 19, 3)
    joints = observed_joints(world)
    pixels = camera.project(joints).astype(np.float32)
    scores = np.ones(pixels.shape[:3], np.float32)
    if isinstance(config, Library):
        pixels, scores = config.add(rng, pixels, times)
    elif config is not None:
        depth = (joints @ camera.rotation[2]).astype(np.float32)
        clocks = np.tile(times, (len(people), 1))
        sizes = np.tile(np.array(camera.size, np.float32), (len(people), 1))
        pixels, scores = add_errors(rng, pixels, clocks, sizes, depth - depth[:, :, :1], config)
    if config is not None:
        hidden = np.stack([_occluded_by_others(joints, row, camera) for row in range(len(people))])
        scores = np.where(hidden & (rng.random(hidden.shape) < 0.6), 0, np.where(hidden, 0.3 * scores, scores))
    inside = ((pixels >= 0) & (pixels < np.array(camera.size))).all(axis=-1)
    scores = np.where(inside, scores, 0).astype(np.float32)
    coco, coco_scores = pixels[:, :, _H36M_OF_COCO], scores[:, :, _H36M_OF_COCO]
    frames = []
    for index, moment in enumerate(times.tolist()):
        rows = np.flatnonzero((coco_scores[:, index] > 0).sum(axis=-1) >= 4)
        spots = coco[rows, index]
        boxes = [_box(spots[i][coco_scores[row, index] > 0]) for i, row in enumerate(rows)]
        frames.append(
            People(
                index,
                moment,
                rows + 1,
                np.array(boxes, np.float32).reshape(-1, 4),
                np.ones(len(rows), np.float32),
                spots.astype(np.float32),
                coco_scores[rows, index],
            )
        )
    return frames


def _box(points: F32) -> list[float]:
    low, high = points.min(axis=0), points.max(axis=0)
    return [float(low[0]), float(low[1]), float(high[0]), float(high[1])]


def _occluded_by_others(joints: F32, row: int, camera: VirtualCamera) -> NDArray[np.bool_]:
    """Return a mask (T, 17) of the joints of person `row` that a limb of another person occludes."""
    seen = joints @ camera.rotation.T + camera.translation
    mine = seen[row]
    hidden = np.zeros(mine.shape[:2], bool)
    for other in range(len(seen)):
        if other == row:
            continue
        start, end = seen[other][:, _BONES[:, 0]], seen[other][:, _BONES[:, 1]]
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            spot = start + share * (end - start)  # (T, B, 3)
            scale = mine[:, :, None, 2:] / np.maximum(spot[:, None, :, 2:], 0.1)
            miss = np.linalg.norm(mine[:, :, None, :2] / scale - spot[:, None, :, :2], axis=-1)
            hidden |= ((miss < _BODY_RADIUS) & (scale[..., 0] > 1.02)).any(axis=-1)
    return hidden


def given_camera(camera: VirtualCamera, known: bool = False) -> Camera:
    """Return the camera as it is given to a calibration, without its pose."""
    return Camera.of(camera.size, camera.matrix if known else None)


@dataclass(frozen=True)
class Scene:
    """people: (T, 19, 3) m each at RATE. tracks: number n is person n - 1."""

    people: list[np.ndarray]
    views: list[VirtualCamera]
    tracks: list[ViewTrack]


def recordings(clips, count, seconds):
    """Lists of `count` clips that were recorded together; for one person every clip."""
    long = [clip for clip in clips if clip.times[-1] - clip.times[0] > seconds + 0.2]
    if count == 1:
        return [[clip] for clip in long]
    scenes = defaultdict(list)
    for clip in long:
        if clip.times[0] < 0.1 and "/" not in clip.name.rsplit("_", 1)[1]:
            scenes[clip.name.rsplit("_", 1)[0]].append(clip)
    whole = ([clip for clip in one if clip.times[-1] == max(c.times[-1] for c in one)] for one in scenes.values())
    return [one[:count] for one in whole if len(one) >= count]


def scene_of(together, rng, cameras, seconds, config=None):
    """A part of a random recording, virtual cameras, and what they see."""
    chosen = together[rng.integers(len(together))]
    people = [resample(clip, RATE)[0] for clip in chosen]
    first = rng.integers(max(min(map(len, people)) - int(seconds * RATE), 1))
    people = [points[first : first + int(seconds * RATE)].copy() for points in people]
    middle = np.mean([points[:, 0, [0, 2]].mean(axis=0) for points in people], axis=0)
    floor = min(np.percentile(points[..., 1], 0.5) for points in people)
    for points in people:
        points[..., [0, 2]] -= middle
        points[..., 1] -= floor
    config = config or SceneConfig(azimuths=AZIMUTHS[cameras])
    views = virtual_cameras(rng, people, seconds, config)
    lifter, tracks = load_lifter("offline"), []
    for index, view in enumerate(views):
        stage = OfflineLifter(lifter, COCO17, given_camera(view), repair=True, constant_bones=True)
        results = [r for frame in film_scene(rng, people, RATE, view, config.errors) for r in stage.push(frame)]
        tracks += collect_tracks([*results, *stage.flush()], COCO17, index)
    return Scene(people, views, tracks)


def exact(views):
    """The true cameras in the frame of the first."""
    base, found = views[0], []
    for view in views:
        rotation = view.rotation @ base.rotation.T
        move = view.translation - rotation @ base.translation
        camera = replace(ViewCamera.of(given_camera(view, known=True)), rotation=rotation, translation=move)
        found.append(replace(camera, offset=view.offset, drift=view.drift))
    return found


def owner_of(tracks, lengths):
    """Who a found person is, by the frames of the tracks."""
    votes = defaultdict(float)
    for key in tracks:
        votes[key[1] - 1] += lengths[key]
    return max(votes, key=votes.get)


def identity_score(rig, scene):
    """IDF1 over all tracked people of all cameras: the tracker of each camera is right, matching may not be."""
    lengths = {(track.camera, track.number): len(track) for track in scene.tracks}
    common = np.zeros((len(rig.tracks), len(scene.people)))
    for row, tracks in enumerate(rig.tracks):
        for key in tracks:
            common[row, key[1] - 1] += lengths[key]
    return (
        100
        * sum(common[row, column] for row, column in best_pairs(common, min_similarity=1e-6))
        / sum(lengths.values())
    )


def joints_error(rig, scene):
    """`JOINTS`, where two cameras see a person, and the share of joint groups that one camera alone has better."""
    base, lengths = scene.views[0], {(track.camera, track.number): len(track) for track in scene.tracks}
    line = fused_times(rig.cameras, [(0.0, float(view.times[-1])) for view in scene.views], 30.0)
    on_line = on_time_line(rig, line)
    begun = time.process_time()
    motions = find_motions(on_line, line)
    spent = 1000 * (time.process_time() - begun) / sum(len(motion.frames) for motion in motions)
    rows, worse = [], []
    for person, motion in enumerate(motions):
        if len(rig.tracks[person]) < 2:
            continue
        points = scene.people[owner_of(rig.tracks[person], lengths)]
        times = line.times[motion.frames]
        truth = truth_at(points, RATE, times + line.begins)[:, :17].astype(float) @ base.rotation.T + base.translation
        shared = np.isfinite(motion.residual).sum(axis=1) >= 2
        if shared.sum() < 10:
            continue
        errors = aligned_errors(motion.joints.astype(float), truth)
        worse += worse_groups(errors, truth, shared, on_line, person, times)
        found, truth = motion.joints[shared].astype(float), truth[shared]
        near, far = found - found[:, :1], truth - truth[:, :1]
        scale = (near * far).sum() / (near * near).sum()
        sigma = np.hypot(motion.sigma[shared], motion.sigma[shared][:, :1])[:, 1:]
        inside = (1000 * np.linalg.norm(scale * near - far, axis=-1)[:, 1:] < sigma).mean()
        bends = [np.nanmean(np.abs(flexion(found, part) - flexion(truth, part))) for part in ("knee", "elbow")]
        world = 1000 * np.linalg.norm(scale * found - truth, axis=-1).mean()
        rows.append([errors[shared].mean(), world, *bends, 100 * inside, 100 * abs(1 / scale - 1)])
    return [*np.mean(rows, axis=0), spent], 100 * np.mean(worse)


def worse_groups(errors, truth, shared, rig, person, times):
    """Of each joint group whether a camera alone has it better, at those `shared` instants at which it has the person.

    errors: (K, 17) mm of all cameras at times (K,) s. truth: (K, 17, 3) m.
    """
    own = []
    for camera, track in rig.people[person].items():
        found = sample(track, rig.cameras[camera].own_time(times))
        both = shared & found.present
        if both.sum() >= 10:
            own.append((aligned_errors(found.joints[both], truth[both]), both))
    return [any(errors[both][:, g].mean() > one[:, g].mean() for one, both in own) for g in GROUPS.values()]


def alone(scene):
    """P-MPJPE of each camera by itself, mm, as a mean."""
    errors = []
    for track in scene.tracks:
        view, points = scene.views[track.camera], scene.people[track.number - 1]
        truth = truth_at(points, RATE, track.times * (1 + view.drift) + view.offset)[:, :17].astype(float)
        errors.append(aligned_errors(track.joints.astype(float), truth @ view.rotation.T).mean())
    return float(np.mean(errors))


def camera_errors(rig, views):
    """`CAMERAS`, as means over all but the first."""
    truth = exact(views)
    places = np.array([one.position for one in truth]), np.array([one.position for one in rig.cameras])
    scale = (places[0] * places[1]).sum() / (places[1] ** 2).sum()
    rows = []
    for index, (found, true) in enumerate(zip(rig.cameras, truth, strict=True)):
        if index == 0:
            continue
        here, there, claimed = places[1][index], places[0][index], rig.accuracy[index]
        cosine = (np.trace(found.rotation @ true.rotation.T) - 1) / 2
        turned, late = np.degrees(np.arccos(np.clip(cosine, -1, 1))), abs(found.offset - true.offset)
        rows.append([
            turned, 100 * np.linalg.norm(scale * here - there) / np.linalg.norm(true.translation),
            100 * abs(found.focal / true.focal - 1), 1000 * late,
            100 * (turned <= claimed.rotation), 100 * (late <= claimed.offset),
        ])  # fmt: skip
    return np.mean(rows, axis=0)


def measure(scene):
    """`COLUMNS` of one scene. Raises PoseError where the cameras are not found."""
    names = [f"cam{index + 1}" for index in range(len(scene.views))]
    begun = time.process_time()
    rig = find_rig(scene.tracks, [ViewCamera.of(given_camera(view)) for view in scene.views], names)
    spent = time.process_time() - begun
    best = find_rig(scene.tracks, exact(scene.views), names, Known(poses=True, clocks=True))
    joints, worse = joints_error(rig, scene)
    floor, _ = joints_error(best, scene)
    cameras = camera_errors(rig, scene.views)
    return [*joints, floor[0], alone(scene), *cameras, identity_score(rig, scene), worse, spent]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("motion", type=Path)
    parser.add_argument("--cameras", default="2,3,4,8")
    parser.add_argument("--people", type=int, default=1)
    parser.add_argument("--scenes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--part", default="test", choices=("train", "validation", "test"))
    parser.add_argument(
        "--without", default="", help="parts of the detector errors that are left out: bias,drift,jitter"
    )
    parser.add_argument("--errors", type=Path, help="file of `benchmarks.network_errors`, instead of simulated errors")
    parser.add_argument("--network", default="standard", choices=NETWORKS)
    options = parser.parse_args()
    clips = mocap.split(mocap.load_clips(options.motion), options.part)
    together = recordings(clips, options.people, options.seconds)
    if not together:
        parser.error(f"--seconds {options.seconds:g}: no recording of {options.part} is so long")
    left_out = {name: 0.0 for name in options.without.split(",") if name}
    for count in map(int, options.cameras.split(",")):
        rows = []
        for number in range(options.scenes):
            rng = np.random.default_rng((count, options.people, number))
            errors = Library.load(options.errors, options.network) if options.errors else None
            errors = errors or replace(ErrorConfig(), **left_out)
            config = SceneConfig(azimuths=AZIMUTHS[count], errors=errors)
            scene = scene_of(together, rng, count, options.seconds, config)
            try:
                rows.append(measure(scene))
            except PoseError as error:
                print(f"  {count} cameras, scene {number}: {error}", flush=True)
        print(f"{count} cameras, {options.people} people: {len(rows)} of {options.scenes} scenes")
        for name, values in zip(COLUMNS, np.transpose(rows), strict=True) if rows else ():
            mean, spread, median = np.mean(values), np.std(values), np.median(values)
            print(f"  {name:32} {mean:8.2f}  (standard deviation {spread:.2f}, median {median:.2f})", flush=True)


if __name__ == "__main__":
    main()
