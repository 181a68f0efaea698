"""An offline lifter as a stream: equal to its slow form, nearer to the whole with every look-ahead, bounded."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pose.lifting import sliding
from pose.lifting.attention import rotary_phases
from pose.lifting.attention.base import Context
from pose.lifting.config import LifterConfig
from pose.lifting.features import decode, observe
from pose.lifting.model import LifterNetwork
from pose.lifting.pending import FinalResults
from pose.lifting.predict import join_outputs, mirror_mean, network_inputs
from pose.lifting.sliding import AGES, SlidingStep
from pose.lifting.stream import LifterStream, Steady, StreamLifter
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.camera import Camera
from pose.structures.sequences import mirror_observations
from pose.structures.skeletons import H36M17
from pose.structures.types import People


@pytest.fixture
def lifter(make_lifter):
    return TorchLifter(make_lifter(dim=32, depth=2, heads=2).network, "test", sliding=True)


@torch.inference_mode()
def slow(network, sequence):
    """Every frame's answers at all `AGES`, by age: the same written out for a whole sequence, without rings, slots and
    masks. Of the image alone."""
    given = [torch.from_numpy(array) for array in network_inputs([sequence]).values()]
    observations, times = observe(*given), given[2]
    tokens, length = network.embed(observations.features), len(sequence)
    kept = [{} for _ in network.blocks]  # frame -> (key, value)
    found = {age: np.full((length, 71), np.nan, np.float32) for age in AGES}
    for now in range(length):
        frames = [now - age for age in AGES if age <= now]
        seen = range(max(0, now - network.config.window + 1), now + 1)
        x, context = tokens[:, frames], Context(*rotary_phases(times[:, frames], network.head_dim))
        for block, memory in zip(network.blocks, kept, strict=True):
            attention = block.attention
            query, key, value = attention.project(block.attention_input(x), context)
            memory |= {f: (key[:, :, i], value[:, :, i]) for i, f in enumerate(frames)}
            keys, values = (torch.stack([memory[f][part] for f in seen if f in memory], dim=2) for part in range(2))
            share = (query @ keys.mT / network.head_dim**0.5).softmax(dim=-1)
            x = block.finish(x, attention.out_proj(attention.merge(share @ values)))
        lifted = decode(network.head(network.norm(x)), observations.frames(frames), network.calibration)
        for frame, answer in zip(frames, join_outputs(lifted)[0], strict=True):
            found[now - frame][frame] = answer
    return found


def both_slow(network, sequence):
    plain, turned = slow(network, sequence), slow(network, mirror_observations(sequence))
    return {age: mirror_mean(plain[age], turned[age]) for age in AGES}


def run(stream, sequence):
    """The answers of one person, (T, 71), NaN where there is none, at the stream's look-ahead and at all ages."""
    person, answers, again = stream.new_person(), [], {age: np.full((len(sequence), 71), np.nan) for age in AGES}
    for frame, (xy, score, time) in enumerate(zip(sequence.keypoints, sequence.scores, sequence.times, strict=True)):
        answers += stream.step([person], xy[None], score[None], float(time))
        for age in AGES:
            if (answer := person.output_of(age)) is not None:
                again[age][frame - age] = answer
    return answers, again


@pytest.mark.parametrize(("length", "window"), [(1, 81), (5, 81), (90, 81), (60, 40)])
def test_sliding_stream_equals_recomputation(make_lifter, make_walk, length, window):
    network = make_lifter(dim=32, depth=2, heads=2, window=window, hop=window).network
    lifter, sequence = TorchLifter(network, "test", sliding=True), make_walk(length)
    expected = both_slow(lifter.network, sequence)
    answers, again = run(LifterStream(lifter, H36M17, Camera.of((640, 480))), sequence)
    np.testing.assert_allclose(np.stack(answers), expected[0], rtol=1e-3, atol=2e-4)
    for age in AGES:
        np.testing.assert_allclose(again[age], expected[age], rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("lookahead", [0, 2, 5, 20])
def test_sequence_lifting_equals_streaming(lifter, make_walk, lookahead):
    sequence = make_walk(50)
    stream = LifterStream(lifter, H36M17, Camera.of((640, 480)), lookahead)
    answers, again = run(stream, sequence)
    assert all(answer is None for answer in answers[:lookahead])
    known = again[max(age for age in AGES if age <= lookahead)]
    np.testing.assert_allclose(np.stack(answers[lookahead:]), known[: 50 - lookahead], atol=1e-6)
    joints = np.stack(answers[lookahead:])[:, :51].reshape(-1, 17, 3)
    lifted = lifter.lift(sequence, lookahead)
    np.testing.assert_allclose(lifted.joints[: len(joints)], joints, atol=1e-6)
    assert len(lifted) == 50


def test_outputs_do_not_depend_on_later_frames(lifter, make_walk):
    sequence = make_walk(60)
    changed = sequence.keypoints.copy()
    changed[40:] += 37
    stream = LifterStream(lifter, H36M17, Camera.of((640, 480)))
    (_, before), (_, after) = run(stream, sequence), run(stream, replace(sequence, keypoints=changed))
    for age in AGES:
        np.testing.assert_array_equal(before[age][: 40 - age], after[age][: 40 - age])


def test_people_are_independent_and_may_come_and_go(lifter, make_walk):
    stream = LifterStream(lifter, H36M17, Camera.of((640, 480)))
    one, other = make_walk(60), make_walk(60)
    alone, _ = run(stream, one)
    first, guest, found = stream.new_person(), stream.new_person(), []
    for frame in range(60):
        here = [guest, first] if 20 <= frame < 50 else [first]
        walks = [other, one] if len(here) == 2 else [one]
        xy, score = (np.stack([getattr(walk, name)[frame] for walk in walks]) for name in ("keypoints", "scores"))
        found.append(stream.step(here, xy, score, float(one.times[frame]))[-1])
    np.testing.assert_allclose(np.stack(found), np.stack(alone), rtol=1e-3, atol=2e-4)


def test_stream_is_bounded_and_stable_for_hours(lifter, make_walk):
    stream, sequence = LifterStream(lifter, H36M17, Camera.of((640, 480))), make_walk(90)
    late = replace(sequence, times=sequence.times + 3 * 3600)
    (now, _), (later, _) = run(stream, sequence), run(stream, late)
    np.testing.assert_allclose(np.stack(now), np.stack(later), rtol=1e-2, atol=2e-3)
    person, sizes = stream.new_person(), set()
    for xy, score, time in zip(sequence.keypoints, sequence.scores, sequence.times, strict=True):
        stream.step([person], xy[None], score[None], float(time))
        sizes.add(sum(array.nbytes for array in person.arrays.values()))
    assert len(sizes) == 1


@pytest.mark.parametrize(
    "changes",
    [{"streaming": True}, {"attention": "local"}, {"tokens": "joints"}, {"model": "bigru"}, {"window": 36, "hop": 30}],
)
def test_unsupported_networks_are_rejected(changes):
    usual = {} if "model" in changes else {"heads": 2}
    network = LifterNetwork(LifterConfig(dim=32, depth=2, **usual, **changes))
    assert not sliding.supports(network)
    with pytest.raises(ValueError, match="sliding window"):
        SlidingStep(network)


def played(stage, sequence, present=lambda frame: True):
    """The results of one person, and those that came a second time."""
    first, second = [], []
    for frame in range(len(sequence)):
        n = int(present(frame))
        people = People(
            frame, float(sequence.times[frame]), np.ones(n, np.int64), np.zeros((n, 4), np.float32),
            np.ones(n, np.float32), sequence.keypoints[frame : frame + n], sequence.scores[frame : frame + n],
        )  # fmt: skip
        first += stage.push(people)
        second += stage.take_refined()
        assert len(first) == frame + 1
        assert len(second) == max(0, frame - 9)
    first += stage.flush()
    return first, second + stage.take_refined()


def test_every_frame_is_refined_once(lifter, make_walk):
    sequence = make_walk(60)
    stream = LifterStream(lifter, H36M17, Camera.of((640, 480)))
    first, second = played(StreamLifter(stream, refine=12), sequence)
    assert [result.index for result in second] == list(range(60))
    _, again = run(stream, sequence)
    for frame in range(60):
        np.testing.assert_allclose(first[frame].poses.joints[0].ravel(), again[0][frame, :51], atol=1e-5)
        latest = max(age for age in AGES if age <= min(9, 59 - frame))
        np.testing.assert_allclose(second[frame].poses.joints[0].ravel(), again[latest][frame, :51], atol=1e-5)
        np.testing.assert_allclose(second[frame].poses.sigma[0], again[latest][frame, 54:], rtol=1e-4)


def test_steady_newest_poses_move_less_and_refined_ones_stay(lifter, make_walk):
    sequence = make_walk(40)
    stream = LifterStream(lifter, H36M17, Camera.of((640, 480)))
    (plain, refined), (steady, refined_too) = (
        played(StreamLifter(stream, refine=9, steady=steady), sequence) for steady in (False, True)
    )

    def jitter(results):
        joints = np.stack([result.poses.joints[0] for result in results])
        return np.linalg.norm(joints[2:] - 2 * joints[1:-1] + joints[:-2], axis=-1).mean()

    assert jitter(steady) < 0.75 * jitter(plain)
    for one, other in zip(refined, refined_too, strict=True):
        np.testing.assert_array_equal(one.poses.joints, other.poses.joints)


def test_steady_is_the_documented_filter():
    class Window:
        def output_of(self, age):
            return outputs.get(age)

    outputs = {}
    filtered, still = Steady(), np.ones(71, np.float32)
    np.testing.assert_array_equal(filtered.smooth(still, Window(), 5.0), still)
    outputs |= {1: np.full(71, 4, np.float32), 2: np.full(71, 2, np.float32)}
    found = filtered.smooth(np.full(71, 7, np.float32), Window(), 5.0 + 0.048 * np.log(2))
    np.testing.assert_allclose(found[:51], 0.5 * 7 + 0.5 * (1 + 0.5 * 2), rtol=1e-6)
    np.testing.assert_array_equal(found[51:], 7)
    after_a_gap = filtered.smooth(np.full(71, 9, np.float32), Window(), 6.0)
    np.testing.assert_allclose(after_a_gap, 9, rtol=1e-6)


@pytest.mark.parametrize(("lookahead", "sliding"), [(2, True), (0, False)])
def test_steady_needs_a_sliding_window_without_lookahead(lifter, make_lifter, lookahead, sliding):
    stream = LifterStream(lifter if sliding else make_lifter(streaming=True), H36M17, Camera.of((640, 480)), lookahead)
    with pytest.raises(ValueError, match="steady: smooths the newest poses"):
        StreamLifter(stream, steady=True)


def test_files_contain_refined_frames_once(lifter, make_walk):
    sequence = make_walk(30)
    stream = LifterStream(lifter, H36M17, Camera.of((640, 480)))
    _, second = played(StreamLifter(stream, refine=9), sequence)
    stage, once = FinalResults(StreamLifter(stream, refine=9)), []
    for result in second:
        once += stage.push(result.people)
    assert len(once) == 20
    once += stage.flush()
    for one, other in zip(once, second, strict=True):
        np.testing.assert_array_equal(one.poses.joints, other.poses.joints)


def test_long_lookahead_leaves_no_refinement(lifter):
    streams = [LifterStream(lifter, H36M17, Camera.of((640, 480)), lookahead) for lookahead in (0, 8, 9)]
    assert [stream.refines for stream in streams] == [True, True, False]


def test_a_causal_network_cannot_refine(make_lifter):
    stream = LifterStream(make_lifter(streaming=True), H36M17, Camera.of((640, 480)))
    with pytest.raises(ValueError, match="lifts each frame once"):
        StreamLifter(stream, refine=9)
