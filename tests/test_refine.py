"""Constant bones: lengths that hold through the motion, directions that stay, and frames of doubt that do not count."""

import numpy as np
import pytest

from pose.refine import bone_lengths, constant_bones
from pose.sequences import Sequence3D
from pose.skeletons import H36M17

EDGES = np.array(H36M17.edges)
FRAMES = 60


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


def test_a_body_of_constant_bones_stays_as_it_is(body):
    sequence = sequence_of(assembled(*body))
    refined = constant_bones(sequence)
    np.testing.assert_allclose(refined.joints, sequence.joints, atol=1e-5)
    np.testing.assert_allclose(bone_lengths(sequence), body[0], atol=1e-5)
    for name in ("root", "sigma", "times"):
        np.testing.assert_array_equal(getattr(refined, name), getattr(sequence, name))


def test_bones_that_breathe_get_one_length_and_keep_their_directions(body, rng):
    lengths, towards = body
    sequence = sequence_of(assembled(lengths * rng.normal(1, 0.1, (FRAMES, 16)), towards))
    refined = constant_bones(sequence)
    sizes = np.linalg.norm(bones(refined.joints), axis=-1)
    assert sizes.std(axis=0).max() < 1e-5
    assert np.linalg.norm(bones(sequence.joints), axis=-1).std(axis=0).min() > 1e-3
    np.testing.assert_allclose(directions(refined.joints), directions(sequence.joints), atol=1e-4)
    np.testing.assert_allclose(sizes[0], lengths, rtol=0.05)
    np.testing.assert_array_equal(refined.joints[:, 0], 0)


def test_frames_the_lifter_doubts_hardly_count(body):
    """A third of the frames has bones of half the length, and says so."""
    lengths, towards = body
    wrong = np.arange(FRAMES) % 3 == 0
    joints = assembled(np.where(wrong[:, None], 0.5, 1.0) * lengths, towards)
    sigma = np.where(wrong[:, None], 300.0, 20.0) * np.ones((FRAMES, 17))
    np.testing.assert_allclose(bone_lengths(sequence_of(joints, sigma)), lengths, rtol=1e-4)
    sure = np.where(wrong[:, None], 10.0, 300.0) * np.ones((FRAMES, 17))
    np.testing.assert_allclose(bone_lengths(sequence_of(joints, sure)), 0.5 * lengths, rtol=1e-4)


def test_both_sides_share_their_lengths(body):
    lengths, towards = body
    uneven = lengths.copy()
    left = [i for i, (_, child) in enumerate(H36M17.edges) if H36M17.side(child) == "left"]
    uneven[left] *= 1.2
    found = bone_lengths(sequence_of(assembled(uneven, towards)))
    flip = H36M17.flip_order
    mirror = [H36M17.edges.index((flip[a], flip[b])) for a, b in H36M17.edges]
    np.testing.assert_array_equal(found, found[mirror])


def test_a_bone_of_no_length_makes_no_nan(body):
    joints = assembled(*body)
    joints[5, 3] = joints[5, 2]
    assert np.isfinite(constant_bones(sequence_of(joints)).joints).all()


def test_one_frame_is_enough(body):
    assert constant_bones(sequence_of(assembled(*body)[:1])).joints.shape == (1, 17, 3)
