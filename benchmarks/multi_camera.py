"""Several uncalibrated cameras on motion capture: cameras, offsets and joints beside the truth and one camera.

    python benchmarks/multi_camera.py motion.npz --cameras 2,4 --scenes 3

motion.npz: as `pose-prepare mocap` writes it. Each scene is one test subject before virtual cameras with detector
errors, own focal lengths, frame rates, offsets and drift. Printed for each number of cameras, as means over scenes:
P-MPJPE with the cameras found, with exact cameras, and of one camera; rotation, place (% of the distance, at the true
scale), focal length and offset errors; share of joints within sigma; processor seconds of the calibration.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from pose_datasets import mocap
from pose_datasets.sampling import resample
from pose_datasets.several_cameras import SceneConfig, film_scene, told_camera, truth_at, virtual_cameras

from pose.evaluation.angles import flexion
from pose.evaluation.metrics import aligned_errors
from pose.lifter.load import load_lifter
from pose.lifter.offline import OfflineLifter
from pose.multiview.calibrate import Known
from pose.multiview.collect import collect_tracks
from pose.multiview.motions import find_motions, on_time_line, time_line
from pose.multiview.rig import find_rig
from pose.multiview.types import ViewCamera
from pose.skeletons import COCO17

RATE = 60.0
AZIMUTHS = {2: (0, 90), 3: (0, 90, 200), 4: (0, 90, 180, 270), 8: tuple(range(0, 360, 45))}


def scene_of(clips, rng, cameras, seconds):
    """Points (T, 19, 3) m of one person, virtual cameras, and what they see."""
    clip = clips[rng.integers(len(clips))]
    points, _ = resample(clip, RATE)
    first = rng.integers(max(len(points) - int(seconds * RATE), 1))
    points = points[first : first + int(seconds * RATE)].copy()
    points[..., [0, 2]] -= points[:, 0, [0, 2]].mean(axis=0)
    points[..., 1] -= np.percentile(points[..., 1], 0.5)
    config = SceneConfig(azimuths=AZIMUTHS[cameras])
    views = virtual_cameras(rng, [points], seconds, config)
    lifter, tracks = load_lifter("offline"), []
    for index, view in enumerate(views):
        stage = OfflineLifter(lifter, COCO17, told_camera(view), repair=True, constant_bones=True)
        results = [r for frame in film_scene(rng, [points], RATE, view, config.errors) for r in stage.push(frame)]
        tracks += collect_tracks([*results, *stage.flush()], COCO17, index)
    return points, views, tracks


def exact(views):
    """The true cameras in the frame of the first."""
    base, found = views[0], []
    for view in views:
        rotation = view.rotation @ base.rotation.T
        move = view.translation - rotation @ base.translation
        camera = replace(ViewCamera.of(told_camera(view, known=True)), rotation=rotation, translation=move)
        found.append(replace(camera, offset=view.offset, drift=view.drift))
    return found


def joints_error(rig, tracks, views, points):
    """P-MPJPE mm where two cameras see the person, knee and elbow degrees, share within sigma."""
    spans = [(0.0, float(view.times[-1])) for view in views]
    line = time_line(rig.cameras, spans, 30.0)
    motion = max(find_motions(on_time_line(rig, line), line), key=lambda one: len(one.frames))
    times = line.times[motion.frames] + line.begins
    truth = truth_at(points, RATE, times)[:, :17].astype(float) @ views[0].rotation.T + views[0].translation
    shared = np.isfinite(motion.residual).sum(axis=0) >= 2
    found, truth = motion.joints[shared].astype(float), truth[shared]
    near, far = found - found[:, :1], truth - truth[:, :1]
    near *= (near * far).sum() / (near * near).sum()
    sigma = np.hypot(motion.sigma[shared], motion.sigma[shared][:, :1])[:, 1:]
    inside = (1000 * np.linalg.norm(near - far, axis=-1)[:, 1:] < sigma).mean()
    bends = [np.nanmean(np.abs(flexion(found, part) - flexion(truth, part))) for part in ("knee", "elbow")]
    return [aligned_errors(found, truth).mean(), *bends, 100 * inside]


def camera_errors(rig, views):
    """Means over all cameras but the first: degrees, % of the distance, %, ms."""
    truth = exact(views)
    places = np.array([one.place for one in truth]), np.array([one.place for one in rig.cameras])
    scale = (places[0] * places[1]).sum() / (places[1] ** 2).sum()
    rows = []
    for found, true, here, there in zip(rig.cameras[1:], truth[1:], places[1][1:], places[0][1:], strict=True):
        cosine = (np.trace(found.rotation @ true.rotation.T) - 1) / 2
        distance = np.linalg.norm(true.translation)
        rows.append([
            np.degrees(np.arccos(np.clip(cosine, -1, 1))), 100 * np.linalg.norm(scale * here - there) / distance,
            100 * abs(found.focal / true.focal - 1), 1000 * abs(found.offset - true.offset),
        ])  # fmt: skip
    return np.mean(rows, axis=0)


def alone(tracks, views, points):
    """P-MPJPE of each camera by itself, mm."""
    errors = []
    for track in tracks:
        view = views[track.camera]
        truth = truth_at(points, RATE, track.times * (1 + view.drift) + view.offset)[:, :17].astype(float)
        errors.append(aligned_errors(track.joints.astype(float), truth @ view.rotation.T).mean())
    return float(np.mean(errors))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("motion", type=Path)
    parser.add_argument("--cameras", default="2,3,4")
    parser.add_argument("--scenes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    clips = [
        clip
        for clip in mocap.split(mocap.load_clips(options.motion), "test")
        if clip.times[-1] - clip.times[0] > options.seconds + 0.2
    ]
    print("cameras  P-MPJPE exact alone  knee elbow  inside%  degrees place% focal% ms  s")
    for count in map(int, options.cameras.split(",")):
        rows = []
        for scene in range(options.scenes):
            points, views, tracks = scene_of(clips, np.random.default_rng((count, scene)), count, options.seconds)
            names = [f"cam{index + 1}" for index in range(count)]
            begun = time.process_time()
            rig = find_rig(tracks, [ViewCamera.of(told_camera(view)) for view in views], names)
            spent = time.process_time() - begun
            best = find_rig(tracks, exact(views), names, Known(poses=True, clocks=True))
            found = joints_error(rig, tracks, views, points)
            floor = joints_error(best, tracks, views, points)[0]
            rows.append([found[0], floor, alone(tracks, views, points), *found[1:], *camera_errors(rig, views), spent])
            print(f"  {count} scene {scene}", np.round(rows[-1], 2).tolist(), flush=True)
        print(count, np.round(np.mean(rows, axis=0), 2).tolist(), flush=True)


if __name__ == "__main__":
    main()
