"""Windows are blended without seams, and the stage that works frame by frame gives what whole sequences give."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from pose.lifting.config import LifterConfig
from pose.lifting.offline import OfflineLifter
from pose.lifting.repair.person import FULL_LOOKAHEAD_S, repair
from pose.structures.camera import Camera
from pose.structures.refine import refine
from pose.structures.sequences import mirror_lifted, mirror_observations
from pose.structures.skeletons import H36M17, SKELETONS
from pose.structures.types import People

WINDOWS = LifterConfig().windows
WINDOW, HOP = WINDOWS.size, WINDOWS.hop


def people_of(sequence, frame, ids=(1,)):
    n = len(ids)
    return People(
        frame, float(sequence.times[frame]), np.array(ids, np.int64), np.zeros((n, 4), np.float32),
        np.ones(n, np.float32), np.repeat(sequence.keypoints[frame : frame + 1], n, axis=0),
        np.repeat(sequence.scores[frame : frame + 1], n, axis=0),
    )  # fmt: skip


@pytest.mark.parametrize("length", [1, 2, 80, 81, 82, 134, 135, 136, 500])
def test_windows_cover_every_frame_and_overlap_enough(length):
    spans = WINDOWS.spans(length)
    covered = np.zeros(length, int)
    for start, stop in spans:
        assert stop - start <= WINDOW
        covered[start:stop] += 1
    assert covered.min() == 1
    assert all(later[0] - earlier[0] == HOP for earlier, later in pairwise(spans))
    assert all(stop - start > WINDOW - HOP for start, stop in spans[1:])


def test_window_weights_sum_to_one():
    total = np.zeros(HOP + WINDOW)
    total[:WINDOW] += WINDOWS.blending_weights(WINDOW, first=True)
    total[HOP:] += WINDOWS.blending_weights(WINDOW, first=False)
    np.testing.assert_allclose(total[: HOP + HOP], 1)


@pytest.mark.parametrize("length", [1, 60, 81, 82, 135, 300])
def test_offline_stage_equals_the_whole_sequence(make_lifter, make_walk, length):
    lifter, sequence = make_lifter(), make_walk(length)
    expected = lifter.lift(sequence)
    stage = OfflineLifter(lifter, H36M17, Camera.of((640, 480)))
    results, most_waiting = [], 0
    for frame in range(length):
        results += stage.push(people_of(sequence, frame))
        most_waiting = max(most_waiting, frame + 1 - len(results))
    results += stage.flush()
    assert most_waiting <= WINDOW
    assert [result.index for result in results] == list(range(length))
    np.testing.assert_allclose(np.concatenate([r.poses.joints for r in results]), expected.joints, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([r.poses.sigma for r in results]), expected.sigma, rtol=1e-4)


def test_mirrored_input_gives_mirrored_output(make_lifter, make_walk):
    """Since each window is lifted with its mirror image; a single pass of an untrained network does not."""
    lifter, sequence = make_lifter(), make_walk(100)
    turned = mirror_observations(sequence)
    got, expected = mirror_lifted(lifter.lift(turned)), lifter.lift(sequence)
    np.testing.assert_allclose(got.joints, expected.joints, atol=1e-5)
    np.testing.assert_allclose(got.root, expected.root, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got.sigma, expected.sigma, rtol=1e-4)
    alone, once = (lifter.lift_many([one], mirrored=False)[0] for one in (sequence, turned))
    assert np.abs(mirror_lifted(once).joints - alone.joints).max() > 1e-3
    np.testing.assert_allclose(expected.joints, (alone.joints + mirror_lifted(once).joints) / 2, atol=1e-5)
    shorter = lifter.lift_many([sequence[:60]], mirrored=False)[0], lifter.lift_many([turned[:60]], mirrored=False)[0]
    both = np.sqrt(shorter[0].sigma * mirror_lifted(shorter[1]).sigma)
    np.testing.assert_allclose(lifter.lift(sequence[:60]).sigma, both, rtol=1e-4)


@pytest.mark.parametrize(
    ("fps", "frames"), [(15, 81), (29.97, 81), (30, 81), (31, 81), (60, 162), (120, 324), (1000, 648)]
)
def test_windows_have_the_same_seconds_at_any_frame_rate(fps, frames):
    windows = WINDOWS.at_rate_of(np.arange(400) / fps)
    assert (windows.size, windows.hop) == (frames, round(frames * HOP / WINDOW))
    linformer = LifterConfig(attention="linformer").windows
    assert linformer.at_rate_of(np.arange(400) / 60) == linformer


@pytest.mark.parametrize("frames", [40, 81, 82, 162, 163, 400])
def test_a_fast_video_is_lifted_in_longer_windows_frame_by_frame_as_whole(make_lifter, make_walk, frames):
    lifter, sequence = make_lifter(), make_walk(frames, fps=60.0)
    sequence = replace(sequence, times=np.arange(frames) / 60)
    stage = OfflineLifter(lifter, H36M17, Camera.of((640, 480)))
    results = [result for frame in range(frames) for result in stage.push(people_of(sequence, frame))] + stage.flush()
    whole = lifter.lift(sequence).joints
    np.testing.assert_allclose(np.concatenate([result.poses.joints for result in results]), whole, atol=1e-5)
    lengths, forward = [], lifter.forward
    lifter.forward = lambda windows: lengths.extend(map(len, windows)) or forward(windows)
    lifter.lift(sequence)
    assert max(lengths) == min(frames, 162)


def test_no_seam_where_windows_join(make_lifter, make_walk):
    """The blend's acceleration at the joins does not exceed that elsewhere, while cutting windows apart would show."""
    lifter, sequence = make_lifter(), make_walk(4 * HOP + WINDOW)
    sequence = replace(sequence, scores=np.ones_like(sequence.scores))
    joins = HOP * np.arange(1, 5)
    blended = acceleration(lifter.lift(sequence).joints)
    cut = np.concatenate([window.joints for window in lifter.lift_many(pieces(sequence))])
    at_joins = np.concatenate([blended[j - 2 : j + WINDOW - HOP] for j in joins])
    assert np.median(at_joins) < 1.5 * np.median(blended)
    assert at_joins.max() < 1.5 * blended.max()
    assert acceleration(cut)[joins - 1].mean() > 2 * blended[joins - 1].mean()


def pieces(sequence):
    cuts = [slice(start, start + HOP) for start in range(0, len(sequence), HOP)]
    return [
        replace(sequence, keypoints=sequence.keypoints[c], scores=sequence.scores[c], times=sequence.times[c])
        for c in cuts
    ]


def acceleration(joints):
    return np.linalg.norm(np.diff(joints, 2, axis=0), axis=-1).mean(axis=-1)


def test_people_with_different_spans_come_out_in_order(make_lifter, make_walk):
    sequence = make_walk(200)
    stage = OfflineLifter(make_lifter(), H36M17, Camera.of((640, 480)))
    lives = {1: range(200), 2: range(20, 60), 3: range(100, 101), 4: range(0)}
    results = []
    for frame in range(200):
        ids = [person for person, life in lives.items() if frame in life]
        results += stage.push(people_of(sequence, frame, ids))
    results += stage.flush()
    assert [result.index for result in results] == list(range(200))
    for result in results:
        assert result.people.ids.tolist() == [person for person, life in lives.items() if result.index in life]
        assert len(result.poses) == len(result.people)


def test_a_long_absence_starts_a_new_sequence(make_lifter, make_walk):
    lifter, sequence = make_lifter(), make_walk(100)
    stage = OfflineLifter(lifter, H36M17, Camera.of((640, 480)))
    results = []
    for frame in [*range(20), *range(70, 100)]:
        results += stage.push(people_of(sequence, frame))
    results += stage.flush()
    tail = sequence[70:]
    np.testing.assert_allclose(
        np.concatenate([result.poses.joints for result in results[20:]]), lifter.lift(tail).joints, atol=1e-5
    )


def test_chunked_track_equals_a_whole_track(make_lifter, make_walk):
    """Of two people, one of which comes later and leaves earlier, both with limbs swapped at times."""
    lifter, sequence = make_lifter(), make_walk(200)
    swapped = [*range(50, 54), *range(120, 123)]
    sequence.keypoints[swapped] = sequence.keypoints[swapped][:, list(H36M17.flip_order)]
    sequence = replace(sequence, scores=np.ones_like(sequence.scores))
    stage = OfflineLifter(lifter, H36M17, sequence.camera, repair=True, constant_bones=True)
    lives, results = {1: slice(0, 200), 2: slice(20, 150)}, []
    for frame in range(200):
        results += stage.push(people_of(sequence, frame, [i for i, life in lives.items() if frame in range(200)[life]]))
    results += stage.flush()
    for person, life in lives.items():
        seen = repair(sequence[life], lookahead=FULL_LOOKAHEAD_S)
        expected = refine(lifter.lift(seen), seen)
        mine = [(result, result.people.ids.tolist().index(person)) for result in results[life]]
        np.testing.assert_allclose([result.poses.joints[row] for result, row in mine], expected.joints, atol=1e-5)
        np.testing.assert_allclose([result.poses.root[row] for result, row in mine], expected.root, rtol=1e-4)
        undone = (seen.keypoints != sequence[life].keypoints).any(axis=(1, 2))
        assert undone.any()
        np.testing.assert_array_equal([result.poses.swapped[row].any() for result, row in mine], undone)


@pytest.mark.parametrize("skeleton", SKELETONS.values(), ids=SKELETONS)
def test_every_skeleton_is_lifted(make_lifter, make_walk, skeleton):
    sequence = make_walk(12, skeleton=skeleton.name, joints=len(skeleton))
    lifted = make_lifter().lift(sequence)
    assert lifted.joints.shape == (12, 17, 3)
    assert np.isfinite(lifted.joints).all()
    assert np.isfinite(lifted.root).all()
    assert (lifted.sigma > 0).all()
    np.testing.assert_array_equal(lifted.joints[:, 0], 0)


def test_unseen_joints_have_no_effect(make_lifter, make_walk):
    lifter, sequence = make_lifter(), make_walk(30)
    garbage = sequence.keypoints.copy()
    garbage[sequence.scores == 0] = np.nan
    expected = lifter.lift(sequence)
    got = lifter.lift(replace(sequence, keypoints=garbage))
    np.testing.assert_array_equal(got.joints, expected.joints)
    assert np.isfinite(got.root).all()


def test_time_origin_does_not_change_the_output(make_lifter, make_walk):
    lifter, sequence = make_lifter(), make_walk(100)
    later = replace(sequence, times=sequence.times + 5000)
    np.testing.assert_allclose(lifter.lift(later).joints, lifter.lift(sequence).joints, atol=1e-4)


def test_exact_rays_are_reprojected(make_lifter, make_walk):
    """Fully trusted and not corrected, the joints project onto what was seen, whatever the pose."""
    import torch

    from pose.structures.camera import project

    lifter = make_lifter()
    with torch.no_grad():
        lifter.network.head.weight.zero_()
        lifter.network.head.bias.zero_()
        lifter.network.head.bias[1:18] = torch.linspace(-0.2, 0.2, 17)
        lifter.network.head.bias[18:35] = 50.0
    sequence = make_walk(5)
    sequence = replace(sequence, scores=np.ones_like(sequence.scores), camera=replace(sequence.camera, known=True))
    lifted = lifter.lift(sequence)
    seen = project(lifted.joints + lifted.root[:, None], sequence.camera.matrix)
    np.testing.assert_allclose(seen, sequence.keypoints, atol=0.05)


def test_lookahead_needs_a_streaming_lifter(make_lifter, make_walk):
    with pytest.raises(ValueError, match="use a streaming one"):
        make_lifter().lift(make_walk(5), lookahead=4)
