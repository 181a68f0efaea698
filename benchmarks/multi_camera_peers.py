"""Two uncalibrated cameras by OpenCV beside ours, on the scenes of benchmarks/multi_camera.py.

    python benchmarks/multi_camera_peers.py motion.npz --scenes 6

OpenCV gets what it does not find itself: the true clocks. `cv2.calibrateMultiview` (OpenCV 5) takes the first camera's
lifted 3D of each frame as the pattern, as there is no board; then `cv2.triangulatePoints`. The latter also with the
true cameras. `weighted_triangulation` of Pose2Sim, if it is installed (`pip install pose2sim`), has the true cameras
and the scores of the joints as weights, without the filter that Pose2Sim applies later. P-MPJPE in mm over the 14
joints that detectors observe, at instants at which both cameras see all.
"""

import argparse
from pathlib import Path

import cv2
import multi_camera as base
import numpy as np
from pose_datasets import mocap
from pose_datasets.several_cameras import given_camera, truth_at

from pose.errors import PoseError
from pose.multiview.motions import find_motions, fused_times, on_time_line
from pose.multiview.rig import find_rig
from pose.multiview.sampling import sample
from pose.multiview.types import POINTS, ViewCamera
from pose.training.evaluation.metrics import aligned_errors

try:
    from Pose2Sim.common import weighted_triangulation
except ImportError:
    weighted_triangulation = None

EVERY = 6  # of the instants, for the calibration of OpenCV
FIXED = cv2.CALIB_FIX_ASPECT_RATIO | cv2.CALIB_FIX_PRINCIPAL_POINT | cv2.CALIB_ZERO_TANGENT_DIST
FIXED |= cv2.CALIB_USE_INTRINSIC_GUESS | cv2.CALIB_FIX_K1 | cv2.CALIB_FIX_K2 | cv2.CALIB_FIX_K3


def triangulated(matrices, pixels):
    """(K, N, 3) of two 3 x 4 matrices and pixels (2, K, N, 2)."""
    flat = pixels.reshape(2, -1, 2).astype(np.float64)
    points = cv2.triangulatePoints(*matrices, flat[0].T, flat[1].T)
    return (points[:3] / points[3]).T.reshape(*pixels.shape[1:3], 3)


def calibrated(scene, pattern, pixels):
    """3 x 4 matrices of the two cameras by OpenCV."""
    told = [given_camera(view) for view in scene.views]
    rows = range(0, len(pattern), EVERY)
    found = cv2.calibrateMultiview(
        objPoints=[pattern[row].astype(np.float32) for row in rows],
        imagePoints=[[pixels[camera][row].astype(np.float32) for row in rows] for camera in range(2)],
        imageSize=[camera.size for camera in told],
        detectionMask=np.ones((2, len(rows)), np.uint8),
        models=np.zeros((2, 1), np.uint8),
        Ks=[camera.matrix.astype(np.float64) for camera in told],
        distortions=[np.zeros(5) for _ in told],
        Rs=[np.eye(3) for _ in told],
        Ts=[np.zeros((3, 1)) for _ in told],
        flagsForIntrinsics=np.full((2, 1), FIXED, np.int32),
        flags=cv2.CALIB_USE_INTRINSIC_GUESS,
    )
    _, matrices, _, turns, moves = found[:5]
    turns = [cv2.Rodrigues(turn)[0] if np.size(turn) == 3 else np.asarray(turn) for turn in turns]
    return [k @ np.c_[turn, np.reshape(move, 3)] for k, turn, move in zip(matrices, turns, moves, strict=True)]


def weighted(matrices, pixels, scores):
    """(K, N, 3) by Pose2Sim of pixels (2, K, N, 2) and scores (2, K, N); NaN if it is not installed."""
    points = np.full((*pixels.shape[1:3], 3), np.nan)
    for at in np.ndindex(points.shape[:2]) if weighted_triangulation else ():
        seen = [one[at] for one in pixels]
        x, y = zip(*seen, strict=True)
        points[at] = weighted_triangulation(matrices, x, y, [one[at] for one in scores])[:3]
    return points


def measure(scene):
    """P-MPJPE of ours, of OpenCV from nothing, and of OpenCV and Pose2Sim with the true cameras."""
    rig = find_rig(scene.tracks, [ViewCamera.of(given_camera(view)) for view in scene.views], ["cam1", "cam2"])
    line = fused_times(rig.cameras, [(0.0, float(view.times[-1])) for view in scene.views], 30.0)
    motion = find_motions(on_time_line(rig, line), line)[0]
    times = line.times[motion.frames] + line.begins
    exact = base.exact(scene.views)
    seen = [sample(track, exact[track.camera].own_time(times)) for track in scene.tracks]
    rows = np.all([(one.scores > 0).all(axis=1) & one.present for one in seen], axis=0)
    pixels = np.stack([one.pixels[rows] for one in seen])
    truth = truth_at(scene.people[0], base.RATE, times)[rows][:, POINTS].astype(float)
    matrices = [camera.matrix @ np.c_[camera.rotation, camera.translation] for camera in exact]
    scores = np.stack([one.scores[rows] for one in seen])
    theirs = [np.full((3, 4), np.nan)] * 2
    if hasattr(cv2, "calibrateMultiview"):
        theirs = calibrated(scene, seen[0].joints[rows][:, POINTS], pixels)
    found = (
        motion.joints[rows][:, POINTS].astype(float),
        triangulated(theirs, pixels),
        triangulated(matrices, pixels),
        weighted(matrices, pixels, scores),
    )
    return [aligned_errors(one, truth).mean() if np.isfinite(one).all() else np.nan for one in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("motion", type=Path)
    parser.add_argument("--scenes", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    together = base.recordings(mocap.split(mocap.load_clips(options.motion), "test"), 1, options.seconds)
    rows = []
    for number in range(options.scenes):
        scene = base.scene_of(together, np.random.default_rng((2, 1, number)), 2, options.seconds)
        try:
            rows.append(measure(scene))
        except (PoseError, cv2.error) as error:
            print(f"  scene {number}: {error}", flush=True)
    names = ("ours", "OpenCV", "OpenCV, true cameras", "Pose2Sim, true cameras")
    for name, values in zip(names, np.transpose(rows), strict=True):
        if np.isnan(values).all():
            print(f"{name:22} is not installed")
        else:
            print(f"{name:22} {np.nanmean(values):8.1f} mm  (median {np.nanmedian(values):.1f})")


if __name__ == "__main__":
    main()
