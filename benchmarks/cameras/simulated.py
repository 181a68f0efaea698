"""Several uncalibrated cameras on motion capture: cameras, offsets, identities and joints beside the truth.

    python -m benchmarks.cameras simulated motion.npz --cameras 2,3,4,8 --scenes 8
    python -m benchmarks.cameras simulated vsports.npz --cameras 2,4 --people 3 --scenes 8
    python -m benchmarks.cameras simulated motion.npz --cameras 2 --without bias,drift   # no lasting detector errors
    python -m benchmarks.cameras simulated motion.npz --errors errors.npz --network standard   # errors of real networks

motion.npz, vsports.npz: as `pose-prepare mocap` and `pose-prepare snu` write them; several people are those of one
recording, in one world at the same time. World: metres, y up, floor at y = 0. Each camera has its own pose, intrinsics,
frame rate, clock offset and drift. Its detections have the errors of `pose_datasets.errors`, or series of errors that
`networks` measured on real networks, and people occlude each other. Printed for each number of
cameras, over scenes: the columns of `COLUMNS`; times are processor time, that of the fusion is for each frame
and person. A calibration that raises an error ends its scene and is counted.
"""

import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pose_datasets import mocap
from pose_datasets.errors import ErrorConfig
from pose_datasets.sampling import resample

from benchmarks.cameras.networks import NETWORKS, Library
from benchmarks.cameras.virtual import SceneConfig, VirtualCamera, film_scene, given_camera, truth_at, virtual_cameras
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
from pose.structures.skeletons import COCO17
from pose.training.evaluation.metrics import aligned_errors, flexion

RATE = 60.0
AZIMUTHS = {2: (0, 90), 3: (0, 90, 200), 4: (0, 90, 180, 270), 8: tuple(range(0, 360, 45))}
JOINTS = ("P-MPJPE mm", "world MPJPE mm", "knee deg", "elbow deg", "within sigma %", "size %", "fusion ms")
CAMERAS = ("rotation deg", "place %", "focal %", "offset ms", "rotation within sigma %", "offset within sigma %")
GROUPS = {"arms": [11, 12, 13, 14, 15, 16], "legs": [1, 2, 3, 4, 5, 6], "trunk": [0, 7, 8, 9, 10]}
COLUMNS = (*JOINTS, "exact cameras mm", "one camera mm", *CAMERAS, "IDF1 %", "groups worse than one camera %", "s")


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


def scene_of(together, rng, seconds, config):
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
    found = sum(common[row, column] for row, column in best_pairs(common, min_similarity=1e-6))
    return 100 * found / sum(lengths.values())


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


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("motion", type=Path)
    parser.add_argument("--cameras", default="2,3,4,8")
    parser.add_argument("--people", type=int, default=1)
    parser.add_argument("--scenes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--part", default="test", choices=("train", "validation", "test"))
    parser.add_argument(
        "--without", default="", help="parts of the detector errors that are left out: bias,drift,jitter"
    )
    parser.add_argument("--errors", type=Path, help="file of the command `networks`, instead of simulated errors")
    parser.add_argument("--network", default="standard", choices=NETWORKS)


def main(given: Namespace) -> None:
    clips = mocap.split(mocap.load_clips(given.motion), given.part)
    together = recordings(clips, given.people, given.seconds)
    if not together:
        raise PoseError(f"--seconds {given.seconds:g}: no recording of {given.part} is so long")
    left_out = {name: 0.0 for name in given.without.split(",") if name}
    for count in map(int, given.cameras.split(",")):
        rows = []
        for number in range(given.scenes):
            rng = np.random.default_rng((count, given.people, number))
            errors = Library.load(given.errors, given.network) if given.errors else None
            errors = errors or replace(ErrorConfig(), **left_out)
            config = SceneConfig(azimuths=AZIMUTHS[count], errors=errors)
            scene = scene_of(together, rng, given.seconds, config)
            try:
                rows.append(measure(scene))
            except PoseError as error:
                print(f"  {count} cameras, scene {number}: {error}", flush=True)
        print(f"{count} cameras, {given.people} people: {len(rows)} of {given.scenes} scenes")
        for name, values in zip(COLUMNS, np.transpose(rows), strict=True) if rows else ():
            mean, spread, median = np.mean(values), np.std(values), np.median(values)
            print(f"  {name:32} {mean:8.2f}  (standard deviation {spread:.2f}, median {median:.2f})", flush=True)
