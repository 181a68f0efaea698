"""Constant bones: lengths that hold through the motion, directions that stay, and frames of doubt that do not count."""

from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import STANDING

from pose.lifting.offline import FIT_SECONDS, PersonBody
from pose.lifting.pending import PendingFrame, PersonFrame
from pose.structures.camera import Camera, intrinsics_from_fov, project
from pose.structures.refine import bone_lengths, constant_bones, estimate_body, refine
from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.skeletons import H36M17
from pose.structures.types import People
from pose.training.evaluation.metrics import flexion

EDGES = np.array(H36M17.edges)
FRAMES = 60
INTRINSICS = intrinsics_from_fov((1280, 720))


def bones(joints):
    return joints[:, EDGES[:, 1]] - joints[:, EDGES[:, 0]]


def directions(joints):
    return bones(joints) / np.linalg.norm(bones(joints), axis=-1, keepdims=True)


def assembled(lengths, towards):
    joints = np.zeros((len(towards), 17, 3))
    for i, (parent, child) in enumerate(EDGES):
        joints[:, child] = joints[:, parent] + lengths[..., i, None] * towards[:, i]
    return joints


@pytest.fixture
def body(rng):
    """Lengths (16,) of a symmetric body, and the directions (T, 16, 3) of its bones."""
    lengths = rng.uniform(0.1, 0.5, 16)
    flip = H36M17.flip_order
    mirror = [H36M17.edges.index((flip[a], flip[b])) for a, b in H36M17.edges]
    lengths = (lengths + lengths[mirror]) / 2
    towards = rng.normal(size=(FRAMES, 16, 3))
    return lengths, towards / np.linalg.norm(towards, axis=-1, keepdims=True)


def sequence_of(joints, sigma=None):
    sigma = np.full((len(joints), 17), 30.0) if sigma is None else sigma
    root = np.tile([0.5, 0.2, 4], (len(joints), 1)).astype(np.float32)
    return Sequence3D(joints.astype(np.float32), root, sigma.astype(np.float32), np.arange(len(joints)) / 30)


def test_body_of_constant_bones_is_unchanged(body):
    sequence = sequence_of(assembled(*body))
    refined = constant_bones(sequence)
    np.testing.assert_allclose(refined.joints, sequence.joints, atol=1e-5)
    np.testing.assert_allclose(bone_lengths(sequence), body[0], atol=1e-5)
    for name in ("root", "sigma", "times"):
        np.testing.assert_array_equal(getattr(refined, name), getattr(sequence, name))


def test_varying_bones_get_one_length(body, rng):
    lengths, towards = body
    sequence = sequence_of(assembled(lengths * rng.normal(1, 0.1, (FRAMES, 16)), towards))
    refined = constant_bones(sequence)
    sizes = np.linalg.norm(bones(refined.joints), axis=-1)
    assert sizes.std(axis=0).max() < 1e-5
    assert np.linalg.norm(bones(sequence.joints), axis=-1).std(axis=0).min() > 1e-3
    np.testing.assert_allclose(directions(refined.joints), directions(sequence.joints), atol=1e-4)
    np.testing.assert_allclose(sizes[0], lengths, rtol=0.05)
    np.testing.assert_array_equal(refined.joints[:, 0], 0)


def test_uncertain_frames_have_little_weight(body):
    """A third of the frames has bones of half the length, and says so."""
    lengths, towards = body
    wrong = np.arange(FRAMES) % 3 == 0
    joints = assembled(np.where(wrong[:, None], 0.5, 1.0) * lengths, towards)
    sigma = np.where(wrong[:, None], 300.0, 20.0) * np.ones((FRAMES, 17))
    np.testing.assert_allclose(bone_lengths(sequence_of(joints, sigma)), lengths, rtol=1e-4)
    sure = np.where(wrong[:, None], 10.0, 300.0) * np.ones((FRAMES, 17))
    np.testing.assert_allclose(bone_lengths(sequence_of(joints, sure)), 0.5 * lengths, rtol=1e-4)


def leg_pose(bends, depth_bend):
    """(T, 17, 3) m of a body 3 m away seen from the front, whose knees are bent by `bends` (T,) degrees sideways in the
    image, and by `depth_bend` degrees more towards the camera, ankles where they were."""
    joints = np.tile(STANDING, (len(bends), 1, 1))
    for hip, knee, ankle in ((1, 2, 3), (4, 5, 6)):
        half, deep = np.radians(bends)[:, None] / 2, np.radians(depth_bend) / 2
        across = np.array([1.0, 0, 0]) * np.sin(half) * 0.42
        down = np.array([0, 1.0, 0]) * np.cos(half) * 0.42
        joints[:, knee] = joints[:, hip] + down + across - np.array([0, 0, 1.0]) * np.tan(deep) * 0.42
        joints[:, ankle] = joints[:, hip] + 2 * down
    return joints


def seen_of(joints, scores=1.0):
    pixels = project(joints.astype(np.float64) + np.array([0, 0, 3.0]), INTRINSICS).astype(np.float32)
    return Sequence2D(pixels, np.full(pixels.shape[:2], scores, np.float32), np.arange(len(pixels)) / 30,
                      Camera.of((1280, 720), INTRINSICS), "h36m17")  # fmt: skip


def test_legs_straight_in_the_image_become_straight():
    bends = np.where(np.arange(FRAMES) % 20 < 10, 0.0, 50.0)
    true, bent = leg_pose(bends, 0.0), leg_pose(bends, 20.0)
    refined = refine(sequence_of(bent), seen_of(true))
    for joints, most in ((bent, 25), (refined.joints, 6)):
        assert flexion(joints[bends == 0], "knee").max() < most
    assert flexion(bent[bends == 0], "knee").min() > 18
    assert np.abs(refined.joints[:, [3, 6]] - bent[:, [3, 6]]).max() < 0.005  # ankles stay
    assert np.ptp(np.linalg.norm(bones(refined.joints), axis=-1), axis=0).max() < 1e-5
    error = [np.linalg.norm(joints - true, axis=-1).mean() for joints in (bent, refined.joints)]
    assert error[1] < 0.6 * error[0]


@pytest.mark.parametrize("case", ["always bent in the picture", "not seen", "too few frames"])
def test_legs_without_evidence_keep_their_angle(case):
    frames = 8 if case == "too few frames" else FRAMES
    bends = np.full(frames, 30.0 if case == "always bent in the picture" else 0.0)
    lifted = sequence_of(leg_pose(bends, 20.0))
    seen = seen_of(leg_pose(bends, 0.0), scores=0.3 if case == "not seen" else 1.0)
    assert estimate_body(lifted, seen).legs == 1
    np.testing.assert_array_equal(refine(lifted, seen).joints, constant_bones(lifted).joints)


def frame_of(index, pixels, joints):
    """One person in one frame, lifted: (17, 2) px, (17, 3) m."""
    people = People(
        index, index / 30, np.ones(1, np.int64), np.zeros((1, 4), np.float32), np.ones(1, np.float32),
        pixels[None].astype(np.float32), np.ones((1, 17), np.float32),
    )  # fmt: skip
    frame = PersonFrame.of(PendingFrame(people), 0)
    frame.lifted = np.concatenate([joints.ravel(), np.zeros(3), np.full(17, 30)]).astype(np.float32)
    return frame


def joints_of(frames):
    return np.stack([frame.lifted[:51].reshape(17, 3) for frame in frames])


@pytest.mark.parametrize("frames", [1, 160, 280])
def test_streamed_refinement_equals_the_whole_track(frames, rng):
    """Of a person who is there for no longer than the seconds that say what body it is."""
    bends = np.where(np.arange(frames) % 20 < 10, 0.0, 40.0)
    poses = leg_pose(bends, 20.0) * rng.normal(1, 0.02, (frames, 1, 1))
    pixels = seen_of(leg_pose(bends, 0.0)).keypoints
    body, done = PersonBody(H36M17, Camera.of((1280, 720))), []
    for index in range(frames):
        done += body.push([frame_of(index, pixels[index], poses[index])])
    done += body.end()
    assert [frame.pending.people.index for frame in done] == list(range(frames))
    expected = refine(sequence_of(poses), replace(seen_of(poses), keypoints=pixels)).joints
    np.testing.assert_array_equal(joints_of(done), expected)


def test_streamed_bone_lengths_settle_in_seconds():
    frames = 900
    joints = leg_pose(np.zeros(frames), 0.0) * np.linspace(1, 1.3, frames)[:, None, None]
    pixels = seen_of(joints[:1]).keypoints[0]
    body, done = PersonBody(H36M17, Camera.of((1280, 720))), []
    for index in range(frames):
        done += body.push([frame_of(index, pixels, joints[index])])
        assert index + 1 - len(done) <= 30 * FIT_SECONDS + 1
    done += body.end()
    thigh = np.linalg.norm(joints_of(done)[:, 2] - joints_of(done)[:, 1], axis=-1)
    assert len(done) == frames
    assert np.ptp(thigh) < 1e-5
    assert thigh[0] == pytest.approx(0.42 * 1.05, rel=0.01)  # the median of the first 10 of 30 seconds
