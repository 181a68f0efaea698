"""The fit to the 2D, on a body that is known: exact 2D improves the motion, wrong 2D spoils nothing."""

import re

import numpy as np
import pytest

from pose.lifting.fit.motion import BONES, FitTarget, fitted
from pose.lifting.fit.windows import OVERLAP_S, WINDOW_S, FitLog, MotionFit, fit_motion, noise_of
from pose.lifting.offline import PersonFit
from pose.lifting.pending import PendingFrame, PersonFrame
from pose.structures.camera import Camera, project
from pose.structures.refine import assembled
from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.skeletons import H36M17
from pose.structures.types import People
from pose.training.evaluation.metrics import flexion, p_mpjpe

CAMERA = Camera.of((1280, 720))
ROOT = np.array([0.3, 0.1, 4.0])
LENGTHS = np.array([0.13, 0.45, 0.42, 0.13, 0.45, 0.42, 0.23, 0.25, 0.1, 0.12, 0.16, 0.28, 0.25, 0.16, 0.28, 0.25])
_DOWN, _UP, _SIDE = np.array([0.0, 1, 0]), np.array([0.0, -1, 0]), np.array([1.0, 0, 0])
REST = np.array([-_SIDE, _DOWN, _DOWN, _SIDE, _DOWN, _DOWN, *[_UP] * 4, _SIDE, _DOWN, _DOWN, -_SIDE, _DOWN, _DOWN])


def swinging(times, axis, amount, seed):
    """Directions (T, 16, 3) of the bones at rest, each turned about an axis by a slow swing of its own."""
    rng = np.random.default_rng(seed)
    speed, phase = rng.uniform(1, 3, (2, 16))
    angle = np.asarray(amount) * np.sin(speed * times[:, None] + 3 * phase)
    out = np.tile(REST, (len(times), 1, 1))
    a, b = (axis + 1) % 3, (axis + 2) % 3
    cos, sin = np.cos(angle), np.sin(angle)
    out[..., a], out[..., b] = cos * REST[:, a] - sin * REST[:, b], sin * REST[:, a] + cos * REST[:, b]
    return out


def joints_of(directions, lengths=LENGTHS):
    joints = np.zeros((len(directions), 17, 3))
    for (parent, child), length, way in zip(H36M17.edges, lengths, directions.swapaxes(0, 1), strict=True):
        joints[:, child] = joints[:, parent] + length * way
    return joints


def scene(seconds=4.0, amount=0.5, error=0.12, rate=30.0):
    """The true joints (T, 17, 3) m, a lifter's answer that errs slowly in depth, and exact 2D."""
    times = np.arange(round(seconds * rate)) / rate
    true = joints_of(swinging(times, 2, amount, 0))
    wrong = true.copy()
    wrong[..., 2] += (joints_of(swinging(times, 0, error, 1)) - joints_of(np.tile(REST, (len(times), 1, 1))))[..., 2]
    lifted = assembled(wrong, LENGTHS * np.tile([1.02, 0.98], 8)[BONES.group])
    sigma = np.full((len(times), 17), 60, np.float32)
    answer = Sequence3D(lifted.astype(np.float32), np.tile(ROOT, (len(times), 1)).astype(np.float32), sigma, times)
    pixels = project(true + ROOT, CAMERA.matrix).astype(np.float32)
    return true, answer, Sequence2D(pixels, np.ones(pixels.shape[:2], np.float32), times, CAMERA, "h36m17")


def with_noise(seen, lasting, shaking, rng):
    """Errors of the 2D, px: an offset of each joint that lasts, and independent ones in each frame."""
    off = lasting * rng.standard_normal((1, 17, 2)) + shaking * rng.standard_normal(seen.keypoints.shape)
    return Sequence2D((seen.keypoints + off).astype(np.float32), seen.scores, seen.times, CAMERA, "h36m17")


def frames_of(answer, seen):
    frames = []
    for i, time in enumerate(answer.times.tolist()):
        people = People(
            i, time, np.array([1]), np.zeros((1, 4), np.float32), np.ones(1, np.float32),
            seen.keypoints[i : i + 1], seen.scores[i : i + 1],
        )  # fmt: skip
        frame = PersonFrame.of(PendingFrame(people), 0)
        frame.lifted = np.concatenate([answer.joints[i].ravel(), answer.root[i], answer.sigma[i]])
        frames.append(frame)
    return frames


def test_exact_2d_improves_the_motion():
    true, answer, seen = scene()
    found = fit_motion(answer, seen)
    assert p_mpjpe(found.joints, true) < 0.8 * p_mpjpe(answer.joints, true)
    off = np.linalg.norm(project(found.joints + found.root[:, None], CAMERA.matrix) - seen.keypoints, axis=-1)
    before = np.linalg.norm(project(answer.joints + answer.root[:, None], CAMERA.matrix) - seen.keypoints, axis=-1)
    assert np.median(off) < 0.3 * np.median(before)
    assert (found.sigma < answer.sigma).all()


@pytest.mark.parametrize(("lasting", "shaking"), [(20, 10), (40, 0), (60, 20)])
def test_wrong_2d_does_not_worsen_the_motion(rng, lasting, shaking):
    true, answer, seen = scene()
    found = fit_motion(answer, with_noise(seen, lasting, shaking, rng))
    assert p_mpjpe(found.joints, true) < 1.01 * p_mpjpe(answer.joints, true)


def test_outliers_of_one_joint_do_not_pull_the_others(rng):
    true, answer, seen = scene()
    keypoints = seen.keypoints.copy()
    keypoints[20:60, 13] += 200
    found = fit_motion(answer, Sequence2D(keypoints, seen.scores, seen.times, CAMERA, "h36m17"))
    assert p_mpjpe(found.joints, true) < 0.95 * p_mpjpe(answer.joints, true)


def test_straight_knees_stay_straight():
    amount = np.full(16, 0.4)
    amount[[1, 2, 4, 5]] = 0
    _, answer, seen = scene(amount=amount, error=np.where(amount > 0, 0.1, 0.0))
    assert np.nanmax(flexion(answer.joints, "knee")) < 4
    found = fit_motion(answer, seen)
    assert np.nanmedian(flexion(found.joints, "knee")) < 6


def test_bones_are_constant_and_symmetric():
    _, answer, seen = scene()
    length, _ = BONES.measure(fit_motion(answer, seen).joints.astype(np.float64))
    np.testing.assert_allclose(length, np.tile(length[0], (len(length), 1)), atol=1e-5)
    for group in range(BONES.count):
        assert np.ptp(length[0, BONES.group == group]) < 1e-5


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_fit_does_not_depend_on_chunking(chunk):
    _, answer, seen = scene(2.5 * WINDOW_S, rate=6.0)
    expected = fit_motion(answer, seen)
    fit, final, most = PersonFit(H36M17, CAMERA), [], 0
    frames = frames_of(answer, seen)
    for first in range(0, len(frames), chunk):
        final += fit.push(frames[first : first + chunk])
        most = max(most, first + chunk - len(final))
    assert chunk > 100 or most <= 6 * WINDOW_S + chunk + 1
    final += fit.end()
    assert [frame.time for frame in final] == answer.times.tolist()
    np.testing.assert_array_equal([frame.lifted[:51] for frame in final], expected.joints.reshape(-1, 51))
    np.testing.assert_array_equal([frame.lifted[51:54] for frame in final], expected.root)


def test_fit_log_reports_changes_and_reprojection_distance(rng):
    _, answer, seen = scene(2.5 * WINDOW_S, rate=6.0)
    logs = {}
    for name, given in {"exact": seen, "wrong": with_noise(seen, 40, 0, rng)}.items():
        logs[name] = FitLog()
        found = fit_motion(answer, given, logs[name])
        frames, moved, apart = zip(*logs[name].windows, strict=True)
        assert sum(frames) == len(answer)
        changes = 1000 * np.linalg.norm(found.joints - answer.joints, axis=-1)[: frames[0], 1:]
        assert moved[0] == pytest.approx(np.median(changes), abs=0.01)
        offset = np.linalg.norm(given.keypoints - project(answer.joints + ROOT, CAMERA.matrix), axis=-1)
        assert apart[0] == pytest.approx(
            1000 * np.median(offset[: frames[0]]) * ROOT[2] / CAMERA.matrix[0, 0], rel=1e-3
        )
    exact, wrong = (np.array(logs[name].windows).mean(axis=0) for name in ("exact", "wrong"))
    assert exact[1] > 2 * wrong[1]
    assert logs["exact"].line.startswith(f"fit to the 2D keypoints: {len(answer)} poses, changed by ")
    # Lasting errors have little weight in the fit, but the line states them as they are: about 150 mm here.
    apart = re.search(r"were (\d+) mm apart", logs["wrong"].line)
    assert apart
    assert 100 < int(apart[1]) < 200


def test_log_without_2d_states_no_distance():
    _, answer, seen = scene(2.0)
    log = FitLog()
    fit_motion(answer, Sequence2D(seen.keypoints, 0 * seen.scores, seen.times, CAMERA, "h36m17"), log)
    assert log.line == f"fit to the 2D keypoints: {len(answer)} poses, changed by 0.0 mm (median over joints)"


def test_fit_windows_join_without_a_step():
    _, answer, seen = scene(1.5 * WINDOW_S, rate=6.0)
    moved = fit_motion(answer, seen).joints - answer.joints
    step = np.abs(np.diff(moved, axis=0)).max(axis=(1, 2))
    seam = answer.times[1:] >= WINDOW_S - OVERLAP_S - 0.2
    assert step[seam].max() < 2 * step[~seam].max()


@pytest.mark.parametrize("missing", ["joints", "frames", "everything"])
def test_unseen_keypoints_have_no_effect(missing):
    true, answer, seen = scene()
    scores = seen.scores.copy()
    rows = {"joints": np.s_[:, [3, 13]], "frames": np.s_[40:70], "everything": np.s_[:]}[missing]
    scores[rows] = 0
    keypoints = np.where(scores[..., None] > 0, seen.keypoints, np.float32(np.nan))
    found = fit_motion(answer, Sequence2D(keypoints, scores, seen.times, CAMERA, "h36m17"))
    limit = 1.0 if missing == "everything" else 0.9
    assert p_mpjpe(found.joints, true) < limit * p_mpjpe(answer.joints, true) + 1e-9


def test_short_track_is_not_fitted():
    _, answer, seen = scene(0.9)
    np.testing.assert_array_equal(fit_motion(answer, seen).joints, answer.joints)


def test_fit_handles_long_gaps():
    _, answer, seen = scene(4.0)
    rows = np.r_[0:50, 60:120]
    times = answer.times[rows] + np.where(rows >= 60, 30.0, 0.0)
    part = Sequence3D(answer.joints[rows], answer.root[rows], answer.sigma[rows], times)
    found = fit_motion(part, Sequence2D(seen.keypoints[rows], seen.scores[rows], times, CAMERA, "h36m17"))
    assert np.isfinite(found.joints).all()


def test_a_single_frame_of_a_later_window_is_fitted_with_the_bones_of_the_first():
    _, answer, seen = scene(2.0)
    fit = MotionFit()
    fit.window(answer, seen)
    one = Sequence3D(answer.joints[:1], answer.root[:1], answer.sigma[:1], np.array([50.0]))
    later = Sequence2D(seen.keypoints[:1], seen.scores[:1], one.times, CAMERA, "h36m17")
    assert np.isfinite(fit.window(one, later).joints).all()


def test_keypoint_noise_is_split_into_bias_and_jitter(rng):
    seen = np.ones((300, 17), bool)
    exact, shaking = (noise_of(size * rng.standard_normal((300, 17, 2)), seen) for size in (1e-4, 0.03))
    lasting = noise_of(np.tile(0.06 * rng.standard_normal((1, 17, 2)), (300, 1, 1)), seen)
    assert exact.max() < 0.01
    np.testing.assert_allclose(shaking, 0.03, rtol=0.3)
    assert np.median(lasting) > 2 * np.median(shaking)


def test_solver_step_equals_dense_algebra_with_fixed_lengths(rng):
    """One Gauss-Newton step of the chain with its border, against the whole system's gradient by differences."""
    _, answer, seen = scene(1.0)
    points = answer.joints[::6].astype(np.float64) + ROOT
    noise = np.full(points.shape[:2], 2.0)
    target = FitTarget(answer.times[::6], points, seen.keypoints[::6].astype(np.float64), noise, CAMERA.matrix)
    lengths = np.full(BONES.count, 0.3)
    moves, found = fitted(target, lengths, fixed_lengths=True)
    np.testing.assert_array_equal(found, lengths)
    assert np.abs(moves).max() > 0.01
