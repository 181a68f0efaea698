"""Lifters whose answers are known: they stand where a trained network would."""

import numpy as np

from pose.structures.sequences import Sequence3D


class ConstantLifter:
    """Answers every frame with one pose, and counts what it was asked."""

    name, sha256, streaming, averages_mirrored = "constant", "", False, False

    def __init__(self, pose, root=(0.0, 0.0, 5.0), sigma=50.0):
        self.pose, self.root, self.sigma = np.asarray(pose, np.float32), np.float32(root), sigma
        self.asked = []

    def lift_many(self, sequences, lookahead=0, *, mirrored=True):
        self.asked += [(len(sequence), lookahead) for sequence in sequences]
        return [self._answer(sequence) for sequence in sequences]

    def _answer(self, sequence):
        frames = len(sequence)
        joints = np.repeat(self.pose[None] - self.pose[:1], frames, axis=0)
        sigma = np.full((frames, 17), self.sigma, np.float32)
        return Sequence3D(joints, np.repeat(self.root[None], frames, axis=0), sigma, sequence.times)


class DepthLifter(ConstantLifter):
    """Answers with the 2D itself: each pixel's ray at 5 m. Equivariant to mirroring, as a good lifter should be."""

    def _answer(self, sequence):
        lens = sequence.camera.matrix
        rays = (sequence.keypoints - lens[:2, 2]) / [lens[0, 0], lens[1, 1]]
        points = np.concatenate([5 * rays, np.full((*rays.shape[:2], 1), 5.0)], axis=-1).astype(np.float32)
        joints = points - points[:, :1]
        return Sequence3D(joints, points[:, 0], np.full(rays.shape[:2], 50.0, np.float32), sequence.times)
