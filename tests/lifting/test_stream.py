"""A stream answers what the causal network answers for the whole sequence, forever, at constant cost."""

from dataclasses import replace

import numpy as np
import pytest

from pose.lifting.predict import split_outputs
from pose.lifting.stream import LifterStream, StreamLifter
from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17
from pose.structures.types import People

LOOKAHEADS = (0, 1, 4, 13)


def run_stream(stream, sequence):
    person, answers = stream.new_person(), []
    for xy, score, time in zip(sequence.keypoints, sequence.scores, sequence.times, strict=True):
        answers += stream.step([person], xy[None], score[None], float(time))
    return answers


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_stream_equals_the_causal_forward(make_lifter, make_walk, lookahead):
    lifter, sequence = make_lifter(streaming=True), make_walk(50)
    answers = run_stream(LifterStream(lifter, H36M17, Camera.of((640, 480)), lookahead=lookahead), sequence)
    assert all(answer is None for answer in answers[:lookahead])
    expected = lifter.lift(sequence, lookahead)
    joints, root, sigma = split_outputs(np.stack(answers[lookahead:]))
    count = len(sequence) - lookahead
    np.testing.assert_allclose(joints, expected.joints[:count], atol=1e-5)
    np.testing.assert_allclose(root, expected.root[:count], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sigma, expected.sigma[:count], rtol=1e-4)


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_outputs_do_not_depend_on_later_frames(make_lifter, make_walk, lookahead):
    lifter, sequence = make_lifter(streaming=True), make_walk(40)
    changed = sequence.keypoints.copy()
    changed[25:] += 37
    before = lifter.lift(sequence, lookahead).joints
    after = lifter.lift(replace(sequence, keypoints=changed), lookahead).joints
    np.testing.assert_allclose(before[: 25 - lookahead], after[: 25 - lookahead], atol=1e-6)
    assert np.abs(before[25:] - after[25:]).max() > 1e-3


def test_people_are_independent(make_lifter, make_walk):
    lifter = make_lifter(streaming=True)
    stream = LifterStream(lifter, H36M17, Camera.of((640, 480)), lookahead=2)
    first, second = make_walk(20), make_walk(20)
    people = [stream.new_person(), stream.new_person()]
    together = [
        stream.step(people, np.stack([a, b]), np.stack([s, r]), float(t))
        for a, b, s, r, t in zip(
            first.keypoints, second.keypoints, first.scores, second.scores, first.times, strict=True
        )
    ]
    alone = run_stream(stream, first)
    np.testing.assert_allclose(np.stack([pair[0] for pair in together[2:]]), np.stack(alone[2:]), rtol=1e-4, atol=1e-4)


def test_stream_is_bounded_and_stable_for_hours(make_lifter, make_walk):
    lifter, sequence = make_lifter(streaming=True), make_walk(60)
    stream = LifterStream(lifter, H36M17, Camera.of((640, 480)), lookahead=4)
    late = replace(sequence, times=sequence.times + 3 * 3600)
    now, later = run_stream(stream, sequence), run_stream(stream, late)
    np.testing.assert_allclose(np.stack(now[4:]), np.stack(later[4:]), rtol=1e-3, atol=1e-3)
    person = stream.new_person()
    sizes = set()
    for xy, score, time in zip(sequence.keypoints, sequence.scores, sequence.times, strict=True):
        stream.step([person], xy[None], score[None], float(time))
        sizes.add(sum(array.nbytes for array in person.arrays.values()))
    assert len(sizes) == 1


def people_of(sequence, frame, present):
    ids = np.array([1] if present else [], np.int64)
    n = len(ids)
    return People(
        frame, float(sequence.times[frame]), ids, np.zeros((n, 4), np.float32), np.ones(n, np.float32),
        sequence.keypoints[frame : frame + n], sequence.scores[frame : frame + n],
    )  # fmt: skip


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_the_stage_returns_every_frame_once_and_in_order(make_lifter, make_walk, lookahead):
    sequence = make_walk(90)
    stage = StreamLifter(LifterStream(make_lifter(streaming=True), H36M17, Camera.of((640, 480)), lookahead=lookahead))
    results = []
    for frame in range(90):
        results += stage.push(people_of(sequence, frame, present=not 30 <= frame < 75 and frame != 10))
        assert frame - lookahead <= len(results) <= frame + 1
    results += stage.flush()
    assert [result.index for result in results] == list(range(90))
    assert [len(result.poses) for result in results] == [int(not 30 <= f < 75 and f != 10) for f in range(90)]
    assert all(np.isfinite(result.poses.joints).all() for result in results)


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_stream_restarts_after_a_pause(make_lifter, make_walk, lookahead):
    """After a pause of five seconds the answers are those of a new stream, and what waited before it is answered."""
    walk, lifter = make_walk(60), make_lifter(streaming=True)
    paused = replace(walk, times=walk.times + np.where(np.arange(60) >= 30, 5.0, 0.0))
    stages = [StreamLifter(LifterStream(lifter, H36M17, Camera.of((640, 480)), lookahead=lookahead)) for _ in range(2)]
    results = [result for frame in range(60) for result in stages[0].push(people_of(paused, frame, present=True))]
    results += stages[0].flush()
    anew = [result for frame in range(30, 60) for result in stages[1].push(people_of(paused, frame, present=True))]
    anew += stages[1].flush()
    assert [result.index for result in results] == list(range(60))
    for one, other in zip(results[30:], anew, strict=True):
        np.testing.assert_allclose(one.poses.joints, other.poses.joints, atol=1e-6)


def test_an_offline_lifter_is_refused(make_lifter):
    with pytest.raises(ValueError, match="cannot stream"):
        LifterStream(make_lifter(), H36M17, Camera.of((640, 480)))
